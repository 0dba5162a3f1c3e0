#include "bridge/supervise/supervisor.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/thread_annotations.h"
#include "bridge/supervise/filter.h"
#include "bridge/supervise/operations.h"

namespace sandglass::bridge {
namespace {

constexpr size_t kWorkers = 2;      // with one, handing a descriptor over waits for an idle CPU
constexpr size_t kMaxWorkers = 64;  // held operations and all
constexpr std::chrono::milliseconds kHeldAfter{10};

}  // namespace

struct SupervisedCommand::State {
  State(Shared& shared_state, Fd fd, std::shared_ptr<const WorldView> world)
      : shared(shared_state), listener(std::move(fd)), view(std::move(world)) {}

  void StartWorker() REQUIRES(mutex);
  void Work();
  void Guard();
  void Handle(const seccomp_notif& notification);
  void Answered(uint64_t id, Answer answer);

  Shared& shared;
  const Listener listener;
  const std::shared_ptr<const WorldView> view;  // owners: all commands of the world
  std::atomic<uint64_t> calls{0};

  Mutex mutex;
  CondVar changed;
  std::vector<std::thread> threads GUARDED_BY(mutex);
  size_t workers GUARDED_BY(mutex) = 0;
  size_t idle GUARDED_BY(mutex) = 0;
  uint64_t progress GUARDED_BY(mutex) = 0;
  bool ended GUARDED_BY(mutex) = false;
  bool joined GUARDED_BY(mutex) = false;
};

void SupervisedCommand::State::StartWorker() {
  ++workers;
  ++idle;
  threads.emplace_back([this] { Work(); });
}

void SupervisedCommand::State::Work() {
  ::pthread_setname_np(::pthread_self(), "sg-supervise");
  CHECK(::unshare(CLONE_FS) == 0);
  CHECK(::chdir("/") == 0);
  ::umask(077);
  bool surplus = false;
  while (!surplus) {
    seccomp_notif notification;
    const Listener::Received received = listener.Receive(notification);
    if (received == Listener::Received::kNothing) continue;
    if (received == Listener::Received::kEnded) break;
    {
      MutexLock lock(mutex);
      if (--idle == 0) changed.NotifyAll();
    }
    Handle(notification);
    MutexLock lock(mutex);
    ++progress;
    surplus = idle >= kWorkers;
    if (!surplus) ++idle;
  }
  MutexLock lock(mutex);
  --workers;
  if (!surplus) ended = true;
  changed.NotifyAll();
}

// Sleeps until no worker is idle; if none becomes so in a short while, all are held up and another one is needed.
void SupervisedCommand::State::Guard() {
  MutexLock lock(mutex);
  while (!ended) {
    if (idle > 0) {
      changed.Wait(mutex);
      continue;
    }
    const uint64_t before = progress;
    changed.WaitFor(mutex, kHeldAfter);
    if (!ended && idle == 0 && progress == before && workers < kMaxWorkers) StartWorker();
  }
}

void SupervisedCommand::State::Handle(const seccomp_notif& notification) {
  calls.fetch_add(1, std::memory_order_relaxed);
  const std::span<const uint64_t, 6> args(reinterpret_cast<const uint64_t*>(notification.data.args),
                                          6);
  const Interface interface =
      notification.data.arch == AUDIT_ARCH_I386 ? Interface::kI386 : Interface::kAmd64;
  const SyscallRule* rule = FindRule(interface, static_cast<uint32_t>(notification.data.nr), args);
  if (rule == nullptr) return listener.Continue(notification.id);
  const Result<std::shared_ptr<Task>> task = shared.tasks.Get(static_cast<pid_t>(notification.pid));
  if (!task.ok()) return listener.Fail(notification.id, EPERM);
  Call call{shared, listener, *rule, notification.id, args, **task, (*task)->status(), *view};
  if (!listener.IsWaiting(notification.id)) return;
  Answered(notification.id, Perform(call));
}

void SupervisedCommand::State::Answered(uint64_t id, Answer answer) {
  switch (answer.kind) {
    case Answer::Kind::kContinue:
      return listener.Continue(id);
    case Answer::Kind::kReturn:
      return listener.Return(id, answer.value);
    case Answer::Kind::kFail:
      return listener.Fail(id, static_cast<int>(answer.value));
    case Answer::Kind::kHandOver:
      listener.HandOver(id, std::move(answer.fd), answer.fd_flags);
      return;
    case Answer::Kind::kGone:
      return;
  }
}

Supervisor::Supervisor() : shared_(std::make_unique<Shared>()) {}
Supervisor::~Supervisor() = default;

Result<std::unique_ptr<Supervisor>> Supervisor::Create(const std::vector<ProjectSpec>& projects) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor());
  for (const ProjectSpec& spec : projects) {
    auto project = std::make_unique<Project>();
    project->path = spec.path;
    project->interceptor = spec.interceptor;
    project->root = Fd(::open(spec.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!project->root.valid()) return Error::FromErrno(errno, "open " + spec.path);
    TRY_ASSIGN(std::string real, PathOfFd(project->root.get()));
    if (real != spec.path)
      return Error(Code::kInvalid, spec.path + " is not the real path of the project");
    struct statx st;
    if (::statx(project->root.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0)
      return Error::FromErrno(errno, "statx");
    project->mount = st.stx_mnt_id;
    supervisor->shared_->projects.push_back(std::move(project));
  }
  return supervisor;
}

Result<std::unique_ptr<SupervisedCommand>> Supervisor::Supervise(Fd listener, pid_t pid) {
  TRY_ASSIGN(std::shared_ptr<const WorldView> view, WorldView::Of(pid, shared_->projects));
  auto state =
      std::make_shared<SupervisedCommand::State>(*shared_, std::move(listener), std::move(view));
  {
    MutexLock lock(state->mutex);
    for (size_t i = 0; i < kWorkers; ++i) state->StartWorker();
    state->threads.emplace_back([raw = state.get()] { raw->Guard(); });
  }
  return std::make_unique<SupervisedCommand>(std::move(state));
}

std::vector<undo::ObjectRef> Supervisor::LiveWriters(size_t project) {
  return shared_->writers.Survivors(*shared_->projects[project]);
}

void Supervisor::ForgetWriters() { shared_->writers.Clear(); }

std::string Supervisor::TakeRefusals() { return shared_->refusals.Take(); }

SupervisedCommand::SupervisedCommand(std::shared_ptr<State> state) : state_(std::move(state)) {}

SupervisedCommand::~SupervisedCommand() { Wait(); }

void SupervisedCommand::Wait() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(state_->mutex);
    if (state_->joined) return;
    while (!state_->ended || state_->workers > 0) state_->changed.Wait(state_->mutex);
    state_->joined = true;
    threads.swap(state_->threads);
  }
  for (std::thread& thread : threads) thread.join();
}

size_t SupervisedCommand::in_flight() const {
  MutexLock lock(state_->mutex);
  return state_->workers - state_->idle;
}

uint64_t SupervisedCommand::calls() const { return state_->calls; }

}  // namespace sandglass::bridge

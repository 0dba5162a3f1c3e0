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

// One that answers, one that has the next call before the first is back, and one that still waits: if none did, the guard would be
// woken at every call of a task that makes one after the other.
constexpr size_t kWorkers = 3;
constexpr size_t kMaxWorkers = 64;  // held operations and all
constexpr std::chrono::milliseconds kHeldAfter{10};

}  // namespace

struct SupervisedCommand::State {
  State(Shared& shared_state, Fd fd, std::shared_ptr<const WorldView> world)
      : shared(shared_state), listener(std::move(fd)), view(std::move(world)) {}

  void StartWorker() REQUIRES(mutex);
  void StartFirst() EXCLUDES(mutex);
  void StartOthers() EXCLUDES(mutex);
  void Work();
  void Guard();
  Answer Handle(const seccomp_notif& notification);
  Answer Try(const seccomp_notif& notification);
  Answer Give(const seccomp_notif& call, Answer answer) const;
  void Send(const seccomp_notif& call, const Answer& answer) const;
  void TakeUp() EXCLUDES(mutex);
  bool Finish();

  Shared& shared;
  const Listener listener;
  const std::shared_ptr<const WorldView> view;  // owners: all commands of the world
  std::atomic<uint64_t> calls{0};

  Mutex mutex;
  CondVar changed;
  std::vector<std::thread> threads GUARDED_BY(mutex);
  size_t workers GUARDED_BY(mutex) = 0;
  std::atomic<size_t> idle{0};  // workers that are, or will be next, waiting for a call
  std::atomic<uint64_t> progress{0};
  bool ended GUARDED_BY(mutex) = false;
  bool joined GUARDED_BY(mutex) = false;
};

void SupervisedCommand::State::StartWorker() {
  ++workers;
  ++idle;
  threads.emplace_back([this] { Work(); });
}

// It starts the others, so that whoever has a command supervised waits for one thread to be made, not for four.
void SupervisedCommand::State::StartFirst() {
  MutexLock lock(mutex);
  ++workers;
  ++idle;
  threads.emplace_back([this] {
    StartOthers();
    Work();
  });
}

void SupervisedCommand::State::StartOthers() {
  MutexLock lock(mutex);
  while (workers < kWorkers) StartWorker();
  threads.emplace_back([this] { Guard(); });
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
    TakeUp();
    Answer answer = Handle(notification);
    // A descriptor is taken by the task itself, which may have to wait for a CPU: meanwhile this worker is held up.
    if (answer.kind == Answer::Kind::kHandOver) answer = Give(notification, std::move(answer));
    // The answer comes last: the task goes on at once, on this CPU, and may have made its next call before we run again.
    surplus = !Finish();
    Send(notification, answer);
  }
  MutexLock lock(mutex);
  --workers;
  if (!surplus) ended = true;
  changed.NotifyAll();
}

void SupervisedCommand::State::TakeUp() {
  if (--idle > 0) return;
  MutexLock lock(mutex);
  changed.NotifyAll();
}

// False: there are idle workers enough.
bool SupervisedCommand::State::Finish() {
  ++progress;
  size_t now = idle;
  while (now < kWorkers) {
    if (idle.compare_exchange_weak(now, now + 1)) return true;
  }
  return false;
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

// How many tasks there are, and folders they are in, is up to the commands. What failed for want of a descriptor changed nothing.
Answer SupervisedCommand::State::Handle(const seccomp_notif& notification) {
  calls.fetch_add(1, std::memory_order_relaxed);
  const auto is_short = [](const Answer& answer) {
    return answer.kind == Answer::Kind::kFail && answer.value == EMFILE;
  };
  Answer answer = Try(notification);
  if (is_short(answer)) {
    shared.FreeDescriptors();
    answer = Try(notification);
  }
  // The caller has descriptors left; we have not.
  return is_short(answer) ? Answer::Fail(ENFILE) : std::move(answer);
}

Answer SupervisedCommand::State::Try(const seccomp_notif& notification) {
  const std::span<const uint64_t, 6> args(reinterpret_cast<const uint64_t*>(notification.data.args),
                                          6);
  const Interface interface =
      notification.data.arch == AUDIT_ARCH_I386 ? Interface::kI386 : Interface::kAmd64;
  const SyscallRule* rule = FindRule(interface, static_cast<uint32_t>(notification.data.nr), args);
  if (rule == nullptr) return Answer::Continue();
  const Result<std::shared_ptr<Task>> task = shared.tasks.Get(static_cast<pid_t>(notification.pid));
  if (!task.ok()) return Answer::Fail(task.error().sys_errno() == EMFILE ? EMFILE : EPERM);
  Call call{shared, listener, *rule, notification.id, args, **task, (*task)->status(), *view, {}};
  // Whoever acts on what was read of the task asks first whether it still waits: an answer alone would reach nobody.
  return Perform(call);
}

Answer SupervisedCommand::State::Give(const seccomp_notif& call, Answer answer) const {
  const auto number = listener.Give(call, std::move(answer.fd), answer.fd_flags);
  return number.ok() ? Answer::Return(*number) : Answer::Fail(number.error().sys_errno());
}

void SupervisedCommand::State::Send(const seccomp_notif& call, const Answer& answer) const {
  const uint64_t id = call.id;
  switch (answer.kind) {
    case Answer::Kind::kContinue:
      return listener.Continue(id);
    case Answer::Kind::kReturn:
      return listener.Return(id, answer.value);
    case Answer::Kind::kFail:
      return listener.Fail(id, static_cast<int>(answer.value));
    case Answer::Kind::kHandOver:  // became the number that it has there
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

Result<std::shared_ptr<const WorldView>> Supervisor::ViewOf(pid_t pid) {
  std::shared_ptr<const WorldView> view;
  {
    MutexLock lock(last_view_mutex_);
    view = last_view_;
  }
  if (view != nullptr && view->IsOf(pid)) return view;
  TRY_ASSIGN(view, WorldView::Of(pid, shared_->projects));
  MutexLock lock(last_view_mutex_);
  last_view_ = view;
  return view;
}

Result<std::unique_ptr<SupervisedCommand>> Supervisor::Supervise(Fd listener, pid_t pid) {
  TRY_ASSIGN(std::shared_ptr<const WorldView> view, ViewOf(pid));
  auto state =
      std::make_shared<SupervisedCommand::State>(*shared_, std::move(listener), std::move(view));
  state->StartFirst();
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

uint64_t SupervisedCommand::calls() const { return state_->calls; }

}  // namespace sandglass::bridge

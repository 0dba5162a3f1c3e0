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
#include <deque>
#include <system_error>
#include <thread>

#include "base/thread_annotations.h"
#include "bridge/supervise/filter.h"
#include "bridge/supervise/operations.h"

namespace sandglass::bridge {
namespace {

constexpr size_t kWorkersForParked = 8;
constexpr size_t kMaxWorkers = 64;  // of one command, held operations and all; they end with it
constexpr std::chrono::milliseconds kLookEvery{1};
constexpr int kQuietLooks = 8;  // so many without a call, and the guard sleeps until there is one
constexpr std::chrono::milliseconds kEndsWithin{
    10'000};  // a world that may use little CPU takes its time

// Does performing it use the task's descriptors or folders, which fails if that is gone?
bool HasProof(const SyscallRule& rule) { return rule.fd >= 0 || rule.at.path >= 0; }

}  // namespace

// Who waits at the listener. The kernel wakes all who wait there for every call, so only one does: it has the seat. As long as one
// and the same task calls, whoever has the seat performs each call without giving the seat away: that task makes no other call before
// it is answered. When another one calls, several may be at work, and the seat goes to another worker before the call is performed.
// The guard looks after calls that take long meanwhile (a safeguard asks somebody, content is copied): it gives their seat away.
struct SupervisedState {
  SupervisedState(Shared& shared_state, Fd fd) : shared(shared_state), listener(std::move(fd)) {}

  enum class Started : uint8_t { kNo, kYes };
  Started Start(void (SupervisedState::*work)()) REQUIRES(mutex);
  Started StartWorker() REQUIRES(mutex);
  Status StartFirst() EXCLUDES(mutex);
  void Work();
  // What a worker does next.
  struct Duty {
    enum class Kind : uint8_t { kSit, kPerform, kEnd } kind;
    seccomp_notif call = {};  // kPerform
  };
  Duty NextDuty() EXCLUDES(mutex);
  void Sit();
  void PerformParked(const seccomp_notif& notification);
  enum class Parked : uint8_t { kNo, kYes };
  Parked Park(const seccomp_notif& notification) EXCLUDES(mutex);
  bool HasDue() const REQUIRES(mutex) { return !parked.empty() && !shared.parking.is_on(); }
  void TakeUpParked() EXCLUDES(mutex);
  void FillSeat() REQUIRES(mutex);
  uint64_t TakeUp(pid_t task) EXCLUDES(mutex);
  bool KeepsSeat(uint64_t turn) EXCLUDES(mutex);
  void GiveSeatAway() REQUIRES(mutex);
  void WakeGuard() REQUIRES(mutex);
  void Guard();
  void End() EXCLUDES(mutex);
  Answer Handle(const seccomp_notif& notification);
  Answer Try(const seccomp_notif& notification);
  Answer Give(const seccomp_notif& call, Answer answer) const;
  void Send(const seccomp_notif& call, const Answer& answer) const;

  Shared& shared;
  const Listener listener;
  std::shared_ptr<const WorldView>
      view;  // owners: all commands of the world; there before the workers
  std::function<Status()> look_at_world;  // sets it; empty: it is there. Not for workers
  std::atomic<uint64_t> calls{0};

  Mutex mutex;
  CondVar changed;    // for whoever waits for the end
  CondVar seat_free;  // for resting workers
  CondVar guard_wakeup;
  std::vector<std::thread> threads GUARDED_BY(mutex);
  size_t workers GUARDED_BY(mutex) = 0;
  size_t resting GUARDED_BY(mutex) = 0;  // workers that wait for the seat
  bool seat_taken GUARDED_BY(mutex) = false;
  bool performing GUARDED_BY(mutex) = false;  // whoever has the seat performs a call
  uint64_t turn GUARDED_BY(mutex) = 0;        // counts the calls that were taken up
  pid_t last_task GUARDED_BY(mutex) = 0;
  enum class GuardIs : uint8_t {
    kNotThere,
    kAsleep,
    kAwake
  } guard GUARDED_BY(mutex) = GuardIs::kNotThere;
  std::deque<seccomp_notif> parked GUARDED_BY(mutex);
  bool ended GUARDED_BY(mutex) = false;
  bool joined GUARDED_BY(mutex) = false;
};

// The user may have no more processes to give.
SupervisedState::Started SupervisedState::Start(void (SupervisedState::*work)()) {
  try {
    threads.emplace_back(work, this);
    return Started::kYes;
  } catch (const std::system_error&) {
    return Started::kNo;
  }
}

// None: those that there are take up what is to be done when they have ended theirs.
SupervisedState::Started SupervisedState::StartWorker() {
  const Started started = Start(&SupervisedState::Work);
  if (started == Started::kYes) ++workers;
  return started;
}

Status SupervisedState::StartFirst() {
  MutexLock lock(mutex);
  if (StartWorker() == Started::kYes) return Ok();
  return Error::FromErrno(EAGAIN, "start a thread that serves a command");
}

void SupervisedState::Work() {
  ::pthread_setname_np(::pthread_self(), "sg-supervise");
  CHECK(::unshare(CLONE_FS) == 0);
  CHECK(::chdir("/") == 0);
  ::umask(077);
  for (Duty duty = NextDuty(); duty.kind != Duty::Kind::kEnd; duty = NextDuty()) {
    if (duty.kind == Duty::Kind::kSit)
      Sit();
    else
      PerformParked(duty.call);
  }
  MutexLock lock(mutex);
  --workers;
  changed.NotifyAll();
}

// Waits for it, as long as there are processes: ending and starting workers as calls come and go would cost more than those that rest.
SupervisedState::Duty SupervisedState::NextDuty() {
  MutexLock lock(mutex);
  ++resting;
  while (seat_taken && !HasDue() && !ended) seat_free.Wait(mutex);
  --resting;
  if (ended) return {Duty::Kind::kEnd};
  if (!HasDue()) {
    seat_taken = true;
    return {Duty::Kind::kSit};
  }
  const Duty duty{Duty::Kind::kPerform, parked.front()};
  parked.pop_front();
  shared.parking.Leave(1);
  if (!seat_taken) FillSeat();
  return duty;
}

// Nobody has it.
void SupervisedState::FillSeat() {
  if (resting > 0) return seat_free.NotifyOne();
  if (workers < kMaxWorkers) StartWorker();
}

// Of one that was parked its worker does not have the seat.
void SupervisedState::PerformParked(const seccomp_notif& notification) {
  Answer answer = Handle(notification);
  if (answer.kind == Answer::Kind::kHandOver) answer = Give(notification, std::move(answer));
  Send(notification, answer);
}

// Under the lock with which those that are parked are taken up, so that none comes too late for that.
SupervisedState::Parked SupervisedState::Park(const seccomp_notif& notification) {
  {
    MutexLock lock(mutex);
    if (!shared.parking.is_on()) return Parked::kNo;
    if (shared.parking.Take()) {
      parked.push_back(notification);
      return Parked::kYes;
    }
  }
  Send(notification, Answer::Fail(ENOSPC));
  return Parked::kYes;
}

// As many at once as there may be anyway.
void SupervisedState::TakeUpParked() {
  MutexLock lock(mutex);
  if (ended || parked.empty()) return;
  const size_t wanted = std::min(parked.size(), kWorkersForParked);
  for (size_t free = resting; free < wanted && workers < kMaxWorkers; ++free) {
    if (StartWorker() == Started::kNo) break;
  }
  seat_free.NotifyAll();
}

// Until the seat is another's, or nobody is left that could call.
void SupervisedState::Sit() {
  bool seated = true;
  while (seated) {
    seccomp_notif notification;
    const Listener::Received received = listener.Receive(notification);
    if (received == Listener::Received::kNothing) continue;
    if (received == Listener::Received::kEnded) return End();
    if (Park(notification) == Parked::kYes) continue;
    const uint64_t mine = TakeUp(static_cast<pid_t>(notification.pid));
    Answer answer = Handle(notification);
    if (answer.kind == Answer::Kind::kHandOver) answer = Give(notification, std::move(answer));
    // The answer comes last: the task goes on at once, on this CPU, and may have made its next call before we run again.
    seated = KeepsSeat(mine);
    Send(notification, answer);
  }
}

// Which turn this is; 0: the seat is given away already.
uint64_t SupervisedState::TakeUp(pid_t task) {
  MutexLock lock(mutex);
  ++turn;
  const bool others_call = last_task != task && last_task != 0;
  last_task = task;
  if (others_call) {
    GiveSeatAway();
    return 0;
  }
  performing = true;
  WakeGuard();
  return turn;
}

// The call of that turn is performed. Does its worker still have the seat?
bool SupervisedState::KeepsSeat(uint64_t mine) {
  MutexLock lock(mutex);
  if (!performing || turn != mine) return false;
  performing = false;
  return true;
}

void SupervisedState::GiveSeatAway() {
  seat_taken = performing = false;
  FillSeat();
}

void SupervisedState::WakeGuard() {
  if (guard == GuardIs::kAwake) return;
  if (guard == GuardIs::kNotThere) {
    if (Start(&SupervisedState::Guard) == Started::kNo) return;  // the next call tries again
  } else {
    guard_wakeup.NotifyOne();
  }
  guard = GuardIs::kAwake;
}

// Looks again and again as long as there are calls; if it finds the same one twice, that one is held up.
void SupervisedState::Guard() {
  MutexLock lock(mutex);
  int quiet = 0;
  while (!ended) {
    const uint64_t before = turn;
    const bool was_performing = performing;
    guard_wakeup.WaitFor(mutex, kLookEvery);
    if (ended) break;
    if (turn != before) {
      quiet = 0;
      continue;
    }
    if (performing && was_performing) {
      GiveSeatAway();
    } else if (!performing && ++quiet >= kQuietLooks) {
      quiet = 0;
      guard = GuardIs::kAsleep;
      while (guard == GuardIs::kAsleep && !ended) guard_wakeup.Wait(mutex);
    }
  }
}

void SupervisedState::End() {
  MutexLock lock(mutex);
  ended = true;
  shared.parking.Leave(parked.size());
  parked.clear();
  seat_free.NotifyAll();
  guard_wakeup.NotifyAll();
  changed.NotifyAll();
}

// How many tasks there are, and folders they are in, is up to the commands. What failed for want of a descriptor changed nothing.
Answer SupervisedState::Handle(const seccomp_notif& notification) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (shared.before_call && !shared.before_call().ok()) return Answer::Fail(EIO);
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

Answer SupervisedState::Try(const seccomp_notif& notification) {
  const std::span<const uint64_t, 6> args(reinterpret_cast<const uint64_t*>(notification.data.args),
                                          6);
  const Interface interface =
      notification.data.arch == AUDIT_ARCH_I386 ? Interface::kI386 : Interface::kAmd64;
  const SyscallRule* rule = FindRule(interface, static_cast<uint32_t>(notification.data.nr), args);
  if (rule == nullptr) return Answer::Continue();
  const auto tid = static_cast<pid_t>(notification.pid);
  for (int attempt = 0;; ++attempt) {
    const Result<std::shared_ptr<Task>> task = shared.tasks.Get(tid);
    if (!task.ok()) return Answer::Fail(task.error().sys_errno() == EMFILE ? EMFILE : EPERM);
    Call call{shared, listener, *rule, notification.id, args, **task, (*task)->status(), *view, {}};
    // Whoever acts on what was read of the task asks first whether it still waits: an answer alone would reach nobody.
    Answer answer = HasProof(*rule) || (*task)->IsAlive() ? Perform(call) : Answer::Fail(ESRCH);
    // Of a task that was remembered and is gone nothing was found, so nothing was done.
    const bool doubtful =
        answer.kind == Answer::Kind::kFail || answer.kind == Answer::Kind::kContinue;
    if (!doubtful || attempt > 0 || (*task)->IsAlive()) return answer;
    shared.tasks.Forget(tid);
  }
}

Answer SupervisedState::Give(const seccomp_notif& call, Answer answer) const {
  const auto number = listener.Give(call, std::move(answer.fd), answer.fd_flags);
  return number.ok() ? Answer::Return(*number) : Answer::Fail(number.error().sys_errno());
}

void SupervisedState::Send(const seccomp_notif& call, const Answer& answer) const {
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

Supervisor::Supervisor(size_t max_parked_calls)
    : shared_(std::make_unique<Shared>(max_parked_calls)) {}
Supervisor::~Supervisor() = default;

Result<std::unique_ptr<Supervisor>> Supervisor::Create(const std::vector<ProjectSpec>& projects,
                                                       size_t max_parked_calls) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(max_parked_calls));
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

Result<std::unique_ptr<SupervisedCommand>> Supervisor::Supervise(Fd listener, pid_t pid,
                                                                 Serving serving) {
  auto state = std::make_shared<SupervisedState>(*shared_, std::move(listener));
  auto look = [this, pid, raw = state.get()]() -> Status {
    TRY_ASSIGN(raw->view, ViewOf(pid));
    return Ok();
  };
  // Before it is served: whoever ends a hold must find it, for it may have parked calls by then.
  {
    MutexLock lock(commands_mutex_);
    std::erase_if(commands_, [](const auto& command) { return command.expired(); });
    commands_.push_back(state);
  }
  if (serving == Serving::kOnceCalled) {
    state->look_at_world = std::move(look);
  } else {
    TRY(look());
    TRY(state->StartFirst());
  }
  return std::make_unique<SupervisedCommand>(std::move(state));
}

void Supervisor::BeginHold() { shared_->parking.Begin(); }

void Supervisor::EndHold() {
  if (!shared_->parking.End()) return;
  std::vector<std::shared_ptr<SupervisedState>> commands;
  {
    MutexLock lock(commands_mutex_);
    for (const auto& command : commands_) {
      if (auto state = command.lock()) commands.push_back(std::move(state));
    }
  }
  for (const auto& command : commands) command->TakeUpParked();
}

size_t Supervisor::parked_calls() const { return shared_->parking.parked(); }

void Supervisor::SetBeforeCall(std::function<Status()> before_call) {
  shared_->before_call = std::move(before_call);
}

std::vector<undo::ObjectRef> Supervisor::LiveWriters(size_t project) {
  return shared_->writers.Survivors(*shared_->projects[project]);
}

bool Supervisor::IsLiveWriter(size_t project, uint64_t device, uint64_t inode) const {
  return shared_->writers.ProjectOf(device, inode) == shared_->projects[project].get();
}

void Supervisor::ForgetWriters() { shared_->writers.Clear(); }

std::optional<Error> Supervisor::TakeRefusals() { return shared_->refusals.Take(); }

SupervisedCommand::SupervisedCommand(std::shared_ptr<State> state) : state_(std::move(state)) {}

SupervisedCommand::~SupervisedCommand() { Wait(); }

int SupervisedCommand::unserved() const {
  return state_->look_at_world ? state_->listener.fd() : -1;
}

Status SupervisedCommand::Serve() {
  if (unserved() < 0) return Ok();
  const Listener::Received seen = state_->listener.Look();
  if (seen == Listener::Received::kNothing) return Ok();
  const bool called = seen == Listener::Received::kCall;
  const Status looked = called ? state_->look_at_world() : Ok();
  // Of a world that is ending there is nothing to be seen, and soon no process is left.
  if (!looked.ok() && !state_->listener.EndsWithin(kEndsWithin)) return looked;
  if (called && looked.ok()) TRY(state_->StartFirst());
  state_->look_at_world = nullptr;
  if (called && looked.ok()) return Ok();
  MutexLock lock(state_->mutex);
  state_->ended = true;
  return Ok();
}

void SupervisedCommand::Wait() {
  while (unserved() >= 0) {
    state_->listener.Await();
    (void)Serve();  // an error: until its processes are gone, for nobody serves them
  }
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

bool SupervisedCommand::IsServedHere() const {
  MutexLock lock(state_->mutex);
  return std::ranges::any_of(state_->threads, [](const std::thread& worker) {
    return worker.get_id() == std::this_thread::get_id();
  });
}

uint64_t SupervisedCommand::calls() const { return state_->calls; }

}  // namespace sandglass::bridge

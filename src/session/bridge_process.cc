#include "session/bridge_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/frames.h"
#include "base/signals.h"
#include "bridge/confinement.h"
#include "session/bridge_server.h"

namespace sandglass::session {
namespace {

constexpr int kChannel = 3, kEvents = 4, kQuestions = 5;
// The session denies what nobody answered; this is for one that does not. Longer than a denial takes at most, which ends the processes
// first, and the world if they do not end (held_steps.cc: 2 + 2 + 10 seconds and what it takes to look): else the bridge would answer
// those who are still there.
constexpr std::chrono::milliseconds kLongerThanTheSession{30'000};

struct Ends {
  Fd session, bridge;
};

Result<Ends> MakeEnds(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::FromErrno(errno, "socketpair");
  return Ends{Fd(ends[0]), Fd(ends[1])};
}

// --- In the bridge process.

Status CloseStandardStreams() {
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (!nothing || ::dup2(nothing.get(), stream) < 0)
      return Error::FromErrno(errno, "close the session's streams");
  }
  return Ok();
}

// With fewer it could be short of them with one ordinary command.
constexpr rlim_t kFewestDescriptors = 1024;

// It has a descriptor of everything that any process of the world has open for writing.
Status RaiseDescriptorLimit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return Error::FromErrno(errno, "getrlimit");
  if (files.rlim_max < kFewestDescriptors)
    return Error(Code::kUnsupported,
                 fmt::format("a session needs {} open files at least, and the hard limit is {} "
                             "here: see ulimit -Hn, and raise it in /etc/security/limits.conf, or "
                             "with LimitNOFILE= in a service",
                             kFewestDescriptors, files.rlim_max));
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return Error::FromErrno(errno, "setrlimit");
  return Ok();
}

// The kernel doubles the table of descriptors whenever it is full and, as soon as there are threads, waits each time until every CPU
// has noticed: tens of milliseconds in the middle of a call. So it gets its usual size while there is one thread. Only to be faster.
void MakeRoomForDescriptors() {
  constexpr rlim_t kUsual =
      12288;  // what may be written to before somebody looks who still does (LiveWriters), and the rest
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t last = std::min(files.rlim_cur, kUsual) - 1;
  const Fd reaching(::fcntl(kChannel, F_DUPFD_CLOEXEC, static_cast<int>(last)));
}

struct BridgeEnds {
  int channel, events;
  int questions;  // -1: nobody is asked
};

// At their places, and no other descriptor. One may be where another belongs, so all move away first.
Status TakeEnds(const BridgeEnds& ends) {
  constexpr int kBeyond = 16;
  constexpr int kPlaces[] = {kChannel, kEvents, kQuestions};
  const int given[] = {ends.channel, ends.events, ends.questions};
  int aside[std::size(given)];
  for (size_t i = 0; i < std::size(given); ++i) {
    aside[i] = given[i] < 0 ? -1 : ::fcntl(given[i], F_DUPFD, kBeyond);
    if (given[i] >= 0 && aside[i] < 0) return Error::FromErrno(errno, "dup");
  }
  for (size_t i = 0; i < std::size(given); ++i) {
    if (given[i] >= 0 && ::dup2(aside[i], kPlaces[i]) < 0) return Error::FromErrno(errno, "dup2");
  }
  if (::close_range(ends.questions >= 0 ? kQuestions + 1 : kQuestions, ~0U, 0) != 0)
    return Error::FromErrno(errno, "close_range");
  return Ok();
}

// Nothing but its channels and the standard error; deaf to the terminal; ends with the session.
Status StandAlone(const BridgeEnds& ends, pid_t session) {
  TRY(TakeEnds(ends));
  TRY(CloseStandardStreams());
  if (::setsid() < 0) return Error::FromErrno(errno, "setsid");
  if (const int err = ResetSignals(); err != 0) return Error::FromErrno(err, "reset signals");
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return Error::FromErrno(errno, "setrlimit");
  TRY(RaiseDescriptorLimit());
  MakeRoomForDescriptors();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Error::FromErrno(errno, "prctl");
  if (::getppid() != session) return Error(Code::kCancelled, "the session has ended");
  (void)::prctl(PR_SET_NAME, kBridgeName);  // a help to whoever looks at processes
  return Ok();
}

// Of a session that does not read them, the latest are lost.
void SendEvent(const ExternalModification& event) {
  const std::string text = Encode(event);
  (void)!::send(kEvents, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// What the process is to work with, and by which descriptors it is reached.
struct BridgeStart {
  BridgeEnds ends;
  pid_t session;
  const std::vector<undo::UndoPaths>& projects;
  const undo::UndoOptions& options;
  const WatchOptions& watch;
};

Result<std::unique_ptr<BridgeServer>> MakeServer(const BridgeStart& start) {
  TRY(StandAlone(start.ends, start.session));
  TRY(bridge::ConfineBridge());
  undo::UndoOptions options = start.options;
  options.safeguards.timeout += kLongerThanTheSession;
  return BridgeServer::Open(start.projects, std::move(options), start.watch, SendEvent,
                            start.ends.questions >= 0 ? kQuestions : -1);
}

// Until it is asked to end, or nobody is left to ask.
void Serve(BridgeServer& server) {
  // Whoever is gone meanwhile is noticed by the answer.
  const auto send = [](const std::string& frame) { (void)SendFrame(kChannel, frame); };
  while (true) {
    if (const Status ready = server.AwaitRequest(kChannel); !ready.ok()) {
      if (!SendFrame(kChannel, Encode(Failed{ready.error()})).ok()) return;
    }
    auto frame = ReceiveFrame(kChannel, kMaxRequestBytes);
    if (!frame.ok()) return;
    auto request = DecodeBridgeRequest(frame->bytes);
    const auto answer = request.ok() ? server.Answer(*request, std::move(frame->fds[0]), send)
                                     : Encode(Refused(request.error()));
    const bool ends = request.ok() && std::holds_alternative<End>(*request);
    if ((answer && !SendFrame(kChannel, *answer).ok()) || ends) return;
  }
}

[[noreturn]] void BridgeMain(const BridgeStart& start) {
  {
    auto server = MakeServer(start);
    if (!server.ok()) {
      (void)SendFrame(kChannel, Encode(Refused(server.error())));
    } else if (SendFrame(kChannel, Encode((*server)->opened())).ok()) {
      Serve(**server);
    }
  }
  ::_exit(0);  // what the session has buffered, it writes itself
}

}  // namespace

// --- In the session.

Result<std::unique_ptr<BridgeProcess>> BridgeProcess::Begin(
    const std::vector<undo::UndoPaths>& projects, const undo::UndoOptions& options,
    const WatchOptions& watch, Questions questions) {
  TRY_ASSIGN(Ends channel, MakeEnds(SOCK_STREAM));
  TRY_ASSIGN(Ends events, MakeEnds(SOCK_SEQPACKET));
  Ends asking;
  if (questions == Questions::kGuest) {
    TRY_ASSIGN(asking, MakeEnds(SOCK_STREAM));
  }
  const pid_t session = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno(errno, "start the bridge process");
  if (pid == 0)
    BridgeMain({{channel.bridge.get(), events.bridge.get(), asking.bridge.get()},
                session,
                projects,
                options,
                watch});
  return std::unique_ptr<BridgeProcess>(new BridgeProcess(
      pid, std::move(channel.session), std::move(events.session), std::move(asking.session)));
}

// One that makes no sense is as good as none: nothing depends on them.
std::vector<ExternalModification> BridgeProcess::TakeEvents() {
  std::vector<ExternalModification> events;
  std::string text(kMaxEventBytes, '\0');
  while (true) {
    const ssize_t got = ::recv(events_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return events;
    auto event =
        DecodeExternalModification(std::string_view(text).substr(0, static_cast<size_t>(got)));
    if (event.ok()) events.push_back(std::move(*event));
  }
}

Status BridgeProcess::AwaitOpened() {
  if (!opened_) opened_ = TakeOpened();
  return *opened_;
}

Status BridgeProcess::TakeOpened() {
  TRY_ASSIGN(const std::string frame, NextFrame());
  TRY_ASSIGN(Opened opened, DecodeOpened(frame));
  recoveries_ = std::move(opened.recoveries);
  next_ = opened.next;
  return Ok();
}

void BridgeProcess::BeginEnd() {
  if (!end_sent_) end_sent_ = Send(session::End{});
}

std::vector<std::string> BridgeProcess::End() {
  if (!channel_) return {};
  BeginEnd();
  const auto frame = end_sent_->ok() ? NextAnswer() : Result<std::string>(end_sent_->error());
  if (!frame.ok()) ::kill(pid_, SIGKILL);
  channel_.Reset();
  auto ended = frame.ok() ? DecodeEnded(*frame) : frame.error();
  return ended.ok() ? std::move(ended->notices) : std::vector<std::string>();
}

void BridgeProcess::AwaitGone() {
  if (std::exchange(gone_, true)) return;
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

BridgeProcess::~BridgeProcess() {
  End();
  AwaitGone();
}

Error BridgeProcess::Death() const {
  siginfo_t info{};
  std::string how;
  // It hangs up a moment before it is gone, and stays to be waited for by the destructor. One that only hung up is not waited for.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && info.si_pid == 0; ++i) {
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) != 0) break;
    if (info.si_pid == 0) ::usleep(10'000);
  }
  if (info.si_pid != 0 && info.si_code != CLD_EXITED)
    how = fmt::format(" by signal {}", info.si_status);
  return Error(Code::kIo, fmt::format("the bridge process was ended{}; what the command did is "
                                      "taken back when the next one starts",
                                      how));
}

Result<std::string> BridgeProcess::NextFrame() {
  auto frame = ReceiveFrame(channel_.get(), kMaxAnswerBytes);
  if (frame.ok()) return std::move(frame->bytes);
  if (frame.error().code() == Code::kCancelled) return Death();
  return frame.error().WithContext("the bridge process");
}

Status BridgeProcess::Send(const BridgeRequest& request, std::span<const int> passed) {
  const Status sent = SendFrame(channel_.get(), Encode(request), passed);
  if (!sent.ok()) return sent.error().code() == Code::kCancelled ? Death() : sent.error();
  return Ok();
}

Result<std::string> BridgeProcess::Ask(const BridgeRequest& request, std::span<const int> passed) {
  TRY(Send(request, passed));
  return AnswerOrFailure();
}

Status BridgeProcess::AwaitSent() {
  TRY(AskPosition());
  return Ok();
}

Result<std::string> BridgeProcess::NextAnswer() {
  while (true) {
    TRY_ASSIGN(std::string frame, NextFrame());
    const auto failed = DecodeFailed(frame);
    if (!failed) return frame;
    if (failed_.ok()) failed_ = failed->error;
  }
}

Result<std::string> BridgeProcess::AnswerOrFailure() {
  auto answer = NextAnswer();
  if (const Status failed = std::exchange(failed_, Ok()); answer.ok() && !failed.ok())
    return failed.error();
  return answer;
}

Status BridgeProcess::CheckWork() {
  if (!failed_.ok()) return std::exchange(failed_, Ok());
  pollfd state{channel_.get(), POLLIN, 0};
  if (::poll(&state, 1, 0) <= 0) return Ok();
  if ((state.revents & POLLHUP) != 0) return Death();
  TRY_ASSIGN(const std::string frame, NextFrame());
  const auto failed = DecodeFailed(frame);
  if (!failed) return Error(Code::kInvalid, "the bridge process answers what nobody asked");
  return failed->error;
}

Result<SafeguardAsked> BridgeProcess::TakeQuestion() {
  TRY_ASSIGN(const Frame frame, ReceiveFrame(questions_.get(), kMaxQuestionBytes));
  return DecodeSafeguardAsked(frame.bytes);
}

Status BridgeProcess::AnswerQuestion(const SafeguardAnswered& answer) {
  return SendFrame(questions_.get(), Encode(answer));
}

Status BridgeProcess::Supervise(StepId command, const Fd& listener, pid_t world) {
  const int passed[] = {listener.get()};
  return Send(session::Supervise{command, world}, passed);
}

Status BridgeProcess::Forget(StepId command) { return Send(session::Forget{command}); }

Status BridgeProcess::Announce(StepId step, const std::string& label,
                               undo::IfUnchanged if_unchanged) {
  next_.reset();
  return Send(session::Announce{step, label, if_unchanged});
}

Result<Closed> BridgeProcess::CloseStep(EmptyEntry empty_entry) {
  TRY_ASSIGN(const std::string frame, Ask(session::CloseStep{empty_entry}));
  TRY_ASSIGN(Closed closed, DecodeClosed(frame));
  next_ = closed.next;
  return closed;
}

Result<StepId> BridgeProcess::NextId() {
  if (next_) return *next_;
  TRY_ASSIGN(const Position position, AskPosition());
  return position.next;
}

Result<Position> BridgeProcess::AskPosition() {
  TRY_ASSIGN(const std::string frame, Ask(session::AskPosition{}));
  return DecodePosition(frame);
}

Status BridgeProcess::EnterSteps() {
  TRY(Send(session::EnterSteps{}));
  TRY_ASSIGN(const std::string frame, NextAnswer());
  TRY(DecodePosition(frame));
  return Ok();
}

Result<Written> BridgeProcess::WriteFile(const WriteRequest& request, const Fd& content) {
  next_.reset();
  const int passed[] = {content.get()};
  TRY_ASSIGN(const std::string frame, Ask(request, passed));
  TRY_ASSIGN(Written written, DecodeWritten(frame));
  next_ = written.next;
  return written;
}

RewindAnswer BridgeProcess::Rewind(const RewindRequest& request, const TellProgress& tell) {
  next_.reset();  // what it does may be a step of its own
  const Status sent = Send(request);
  // To its last frame, whatever else has failed: else that would answer what is asked for next.
  auto frame = sent.ok() ? NextAnswer() : Result<std::string>(sent.error());
  while (frame.ok()) {
    const auto progress = DecodeProgress(*frame);
    if (!progress) break;
    if (tell) tell(*progress);
    frame = NextAnswer();
  }
  if (!frame.ok()) return Refused(frame.error());
  auto answer = DecodeRewindAnswer(*frame);
  return answer.ok() ? std::move(*answer) : Refused(answer.error());
}

}  // namespace sandglass::session

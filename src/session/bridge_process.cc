#include "session/bridge_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/frames.h"
#include "base/signals.h"
#include "bridge/confinement.h"
#include "session/bridge_server.h"

namespace sandglass::session {
namespace {

constexpr int kChannel = 3;

// --- In the bridge process.

// Nothing but its channel and the standard error; deaf to the terminal; ends with the session.
Status StandAlone(int channel, pid_t session) {
  if (::dup2(channel, kChannel) < 0) return Error::FromErrno(errno, "dup2");
  if (::close_range(kChannel + 1, ~0U, 0) != 0) return Error::FromErrno(errno, "close_range");
  if (::setsid() < 0) return Error::FromErrno(errno, "setsid");
  if (const int err = ResetSignals(); err != 0) return Error::FromErrno(err, "reset signals");
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) return Error::FromErrno(errno, "setrlimit");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Error::FromErrno(errno, "prctl");
  if (::getppid() != session) return Error(Code::kCancelled, "the session has ended");
  (void)::prctl(PR_SET_NAME, kBridgeName);  // a help to whoever looks at processes
  return Ok();
}

Result<std::unique_ptr<BridgeServer>> MakeServer(int channel, pid_t session,
                                                 const std::vector<undo::UndoPaths>& projects,
                                                 const undo::UndoOptions& options) {
  TRY(StandAlone(channel, session));
  TRY(bridge::ConfineBridge());
  return BridgeServer::Open(projects, options);
}

// Until it is asked to end, or nobody is left to ask.
void Serve(BridgeServer& server) {
  while (true) {
    auto frame = ReceiveFrame(kChannel, kMaxRequestBytes);
    if (!frame.ok()) return;
    auto request = DecodeBridgeRequest(frame->bytes);
    const std::string answer = request.ok() ? server.Answer(*request, std::move(frame->fds[0]))
                                            : Encode(Refused(request.error()));
    const bool ends = request.ok() && std::holds_alternative<End>(*request);
    if (!SendFrame(kChannel, answer).ok() || ends) return;
  }
}

[[noreturn]] void BridgeMain(int channel, pid_t session,
                             const std::vector<undo::UndoPaths>& projects,
                             const undo::UndoOptions& options) {
  {
    auto server = MakeServer(channel, session, projects, options);
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

Result<std::unique_ptr<BridgeProcess>> BridgeProcess::Start(
    const std::vector<undo::UndoPaths>& projects, const undo::UndoOptions& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::FromErrno(errno, "socketpair");
  Fd ours(ends[0]), theirs(ends[1]);
  const pid_t session = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno(errno, "start the bridge process");
  if (pid == 0) BridgeMain(theirs.get(), session, projects, options);
  theirs.Reset();
  std::unique_ptr<BridgeProcess> bridge(new BridgeProcess(pid, std::move(ours)));
  TRY_ASSIGN(const std::string frame, bridge->NextFrame());
  TRY_ASSIGN(Opened opened, DecodeOpened(frame));
  bridge->recoveries_ = std::move(opened.recoveries);
  return bridge;
}

BridgeProcess::~BridgeProcess() {
  if (!Ask(End{}).ok()) ::kill(pid_, SIGKILL);
  channel_.Reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Error BridgeProcess::Death() const {
  siginfo_t info{};
  std::string how;
  // It stays to be waited for by the destructor.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0 &&
      info.si_code != CLD_EXITED)
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

Result<std::string> BridgeProcess::Ask(const BridgeRequest& request, std::span<const int> passed) {
  const Status sent = SendFrame(channel_.get(), Encode(request), passed);
  if (!sent.ok()) return sent.error().code() == Code::kCancelled ? Death() : sent.error();
  return NextFrame();
}

Status BridgeProcess::Supervise(StepId command, const Fd& listener, pid_t world) {
  const int passed[] = {listener.get()};
  TRY_ASSIGN(const std::string frame, Ask(session::Supervise{command, world}, passed));
  TRY(DecodeDone(frame));
  return Ok();
}

Status BridgeProcess::Forget(StepId command) {
  TRY_ASSIGN(const std::string frame, Ask(session::Forget{command}));
  TRY(DecodeDone(frame));
  return Ok();
}

Status BridgeProcess::Announce(StepId step, const std::string& label,
                               undo::IfUnchanged if_unchanged) {
  TRY_ASSIGN(const std::string frame, Ask(session::Announce{step, label, if_unchanged}));
  TRY(DecodeDone(frame));
  return Ok();
}

Result<std::vector<std::string>> BridgeProcess::CloseStep() {
  TRY_ASSIGN(const std::string frame, Ask(session::CloseStep{}));
  TRY_ASSIGN(Closed closed, DecodeClosed(frame));
  return std::move(closed.notices);
}

Result<Position> BridgeProcess::AskPosition() {
  TRY_ASSIGN(const std::string frame, Ask(session::AskPosition{}));
  return DecodePosition(frame);
}

RewindAnswer BridgeProcess::Rewind(const RewindRequest& request) {
  auto frame = Ask(request);
  if (!frame.ok()) return Refused(frame.error());
  auto answer = DecodeRewindAnswer(*frame);
  return answer.ok() ? std::move(*answer) : Refused(answer.error());
}

}  // namespace sandglass::session

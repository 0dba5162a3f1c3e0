#include "session/command_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "session/held_steps.h"
#include "session/take_requests.h"
#include "session/world_link.h"

namespace sandglass::session {
namespace {

using control::Stream;

constexpr size_t kReadBytes = size_t{64} << 10;  // of input
constexpr std::chrono::milliseconds kCloseAgain{5};
constexpr Stream kStreams[] = {Stream::kStdout, Stream::kStderr};

bool IsReady(const std::vector<pollfd>& fds, int fd) {
  const auto found = std::ranges::find(fds, fd, &pollfd::fd);
  return fd >= 0 && found != fds.end() && found->revents != 0;
}

}  // namespace

Result<CommandReport> CommandRun::Run() {
  parts_.running = this;
  auto report = Carry();
  parts_.running = nullptr;
  return report;
}

Result<CommandReport> CommandRun::Carry() {
  if (spec_.shell != nullptr) TRY(OpenShellChannel());
  if (!shell_ && !streams_.terminal()) {
    TRY_ASSIGN(pipes_, OutputPipes::Make());
  }
  TRY_ASSIGN(const auto raw, streams_.BecomeRaw());
  DenyAllQuestions(parts_);  // of ambient steps, which close before this one begins
  TRY(Begin());
  Status status = Act();
  while (status.ok() && !Finished()) status = Turn();
  if (!status.ok()) return GiveUp(status.error());
  if (pipes_) pipes_->LeaveTo(parts_.left_output);
  return std::move(report_);
}

// Nothing is sent, so what the command itself is to blame for leaves everything as it was.
Status CommandRun::Begin() {
  auto step = keeper_.NextId();
  Status begun = step.ok() ? Ok() : Status(step.error());
  if (step.ok()) {
    report_.step = *step;
    begun = parts_.tracker.Start(ExecFor());
    if (begun.ok()) parts_.last_step = *step;
  }
  const bool refused =
      !begun.ok() && step.ok() &&
      (begun.error().code() == Code::kInvalid || begun.error().code() == Code::kLimit);
  parts_.over = !begun.ok() && !refused;
  return begun;
}

// What the command did until now is on record and stays undoable; nothing may add to it unseen.
Error CommandRun::GiveUp(const Error& why) {
  parts_.over = true;
  parts_.world->Kill();
  DenyAllQuestions(parts_);
  for (const StepId command : std::exchange(parts_.ended, {})) (void)parts_.bridge->Forget(command);
  for (const SupervisedProcesses& processes : std::exchange(parts_.processes, {}))
    (void)parts_.bridge->Forget(
        processes.command);                   // before it closes the step, it waits for their end
  (void)parts_.tracker.GiveUp(report_.step);  // it may not know the command, or no longer
  Status closed = closed_ ? Ok() : CloseSteps();
  rewinds_.RefuseAll(why);
  if (closed.ok()) return why;
  return why.WithContext(
      fmt::format("and its step could not be closed ({})", closed.error().message()));
}

Status CommandRun::OpenShellChannel() {
  if (parts_.writable.empty())
    return Error(Code::kInvalid, "a shell needs a project that it may change");
  TRY_ASSIGN(ShellChannel channel, ShellChannel::Open());
  shell_.emplace(parts_, keeper_, rewinds_, *spec_.shell, std::move(channel));
  return Ok();
}

control::Exec CommandRun::ExecFor() const {
  control::Exec exec{.id = report_.step, .argv = spec_.argv, .env = spec_.env};
  if (!spec_.cwd.empty()) exec.cwd = spec_.cwd;
  exec.pty = streams_.terminal();
  exec.takes_input = true;
  exec.more_come = spec_.after == AfterCommand::kSessionGoesOn && !shell_;
  exec.output_given = pipes_.has_value();
  exec.timeout = spec_.timeout;
  return exec;
}

bool CommandRun::Finished() const { return closed_ && OnlyCloses(); }

// Nothing is left to be done but to close its step.
bool CommandRun::OnlyCloses() const {
  const bool shown =
      std::ranges::all_of(pending_, [](const auto& one) { return one.second.empty(); });
  return ended_ && shown && (!pipes_ || pipes_->drained()) && !rewinds_.waiting();
}

// --- What the tracker wants done.

Status CommandRun::Act() {
  for (control::Action& action : parts_.tracker.TakeActions())
    TRY(std::visit([this](const auto& what) { return Do(what); }, action));
  return Ok();
}

Status CommandRun::Do(const control::StepChange& change) {
  if (change.id != report_.step) return Ok();
  if (change.edge == control::StepEdge::kClosed) return CloseSteps();
  return keeper_.Open(report_.step, spec_.label,
                      shell_ ? undo::IfUnchanged::kForgotten : undo::IfUnchanged::kRecorded);
}

Status CommandRun::CloseSteps() {
  closed_ = true;
  const bool last = spec_.after == AfterCommand::kSessionEnds;
  // The kernel takes the world apart while the bridge closes the step.
  if (last && parts_.processes.empty() && OnlyCloses()) parts_.world->Kill();
  auto notices = keeper_.Close(last ? EmptyEntry::kBeforeTheAnswer : EmptyEntry::kLater);
  if (!notices.ok() && notices.error().code() == Code::kBusy && parts_.asks == Questions::kGuest) {
    closed_ = false;
    close_again_ = parts_.clock.Now() + kCloseAgain;
    return Ok();
  }
  if (!notices.ok()) return notices.error();
  for (std::string& notice : *notices) Warn(std::move(notice));
  report_.protection = keeper_.protection();
  TRY_ASSIGN(report_.projects, keeper_.Changes());
  return Ok();
}

Status CommandRun::CloseAgain() {
  if (!close_again_ || parts_.clock.Now() < *close_again_) return Ok();
  close_again_.reset();
  if (parts_.questions.empty()) return CloseSteps();
  close_again_ = parts_.clock.Now() + kCloseAgain;
  return Ok();
}

void CommandRun::Cancel() {
  (void)parts_.tracker.CancelCommand(report_.step);
  DenyQuestionsOfStep(parts_, report_.step);
}

Status CommandRun::Do(const control::Send& send) {
  // That input has ended is said once and is short: it need not wait until a long command line is sent.
  const auto* input = std::get_if<control::Input>(&send.message);
  const bool bulk = input != nullptr && !input->data.empty();
  return parts_.queue.Push(control::Encode(send.message),
                           bulk ? control::LineKind::kBulk : control::LineKind::kUrgent);
}

Status CommandRun::Do(const control::Show& show) {
  pending_[show.output.stream] += show.output.data;
  return WriteOutput(show.output.stream);
}

Status CommandRun::Do(const control::Ended& ended) {
  if (ended.outcome.id != report_.step) return Ok();
  report_.outcome = ended.outcome;
  ended_ = true;
  if (pipes_) pipes_->NoteEnd();
  if (const uint64_t kills = parts_.world->OutOfMemoryKills(); kills > 0)
    Warn(fmt::format("the memory limit was reached, and the kernel killed {} of its processes",
                     kills));
  parts_.log.WithStep(report_.step).Info("command ended", {{"exit_code", ended.outcome.exit_code}});
  return Ok();
}

Status CommandRun::Do(const control::Violation& violation) {
  Warn(fmt::format("the world's shim broke the protocol ({}): {}",
                   control::ViolationName(violation.kind), violation.detail));
  return Ok();
}

Status CommandRun::Do(const control::Complaint& complaint) {
  Warn(fmt::format("the world's shim: {}", complaint.problem.message));
  return Ok();
}

// The shim does not end it, so everything inside ends.
Status CommandRun::Do(const control::Stuck& stuck) {
  Warn("the command could not be ended; the world was");
  parts_.over = true;
  parts_.world->Kill();
  return parts_.tracker.GiveUp(stuck.id);
}

Status CommandRun::Do(const control::WrongVersion& wrong) {
  return Error(Code::kVersion,
               fmt::format("the shim speaks version {} of the control protocol, not {}",
                           wrong.version, control::kProtocolVersion));
}

// --- What other programs ask of us.

Runner& CommandRun::runner() {
  if (spec_.shell != nullptr) return shell_runner_;
  return command_;
}

Status CommandRun::TakeRequests() {
  if (shell_ && !closed_ && !lost_) TRY(shell_->Work());
  session::TakeRequests(parts_, rewinds_);
  return Ok();
}

// --- One turn of the loop.

std::vector<pollfd> CommandRun::Watched() const {
  const bool writes = !parts_.queue.empty();
  const bool room = input_.empty() && parts_.tracker.InputRoom(report_.step) > 0;
  std::vector<pollfd> fds = {
      {parts_.world->control_fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0},
      {parts_.world->listener_fd(), POLLIN, 0},
      {streams_.signal_fd(), POLLIN, 0},
      {takes_input_ && room ? streams_.in() : -1, POLLIN, 0},
  };
  for (Stream stream : kStreams) {
    const auto found = pending_.find(stream);
    const bool waits = found != pending_.end() && !found->second.empty();
    fds.push_back({waits ? streams_.OutputFd(stream) : -1, POLLOUT, 0});
    if (pipes_ && !waits) fds.push_back({pipes_->fd(stream), POLLIN, 0});
  }
  for (const SupervisedProcesses& processes : parts_.processes)
    fds.push_back({processes.listener.get(), 0, 0});
  fds.push_back({parts_.bridge->fd(), POLLIN, 0});
  fds.push_back({parts_.bridge->questions_fd(), POLLIN, 0});
  parts_.server->AddTo(fds);
  if (shell_) shell_->channel().AddTo(fds);
  if (parts_.guest != nullptr) parts_.guest->AddTo(fds);
  parts_.left_output.AddTo(fds);
  fds.push_back({parts_.bridge->events_fd(), POLLIN, 0});
  return fds;
}

int CommandRun::Patience() const {
  return PatienceUntil(parts_, {parts_.tracker.Deadline(), rewinds_.Deadline(), close_again_});
}

Status CommandRun::Turn() {
  std::vector<pollfd> fds = Watched();
  if (::poll(fds.data(), fds.size(), Patience()) < 0 && errno != EINTR)
    return Error::FromErrno(errno, "poll");
  if ((fds[1].revents & POLLIN) != 0) TRY(TakeListeners());
  if (fds[2].revents != 0) TakeSignals();
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadChannel();
  if (fds[3].revents != 0 || !input_.empty()) TakeInput();
  // Before output is written, for the guest may be the one who takes it.
  if (parts_.guest != nullptr) parts_.guest->Work();
  for (Stream stream : kStreams) {
    TRY(WriteOutput(stream));
    TRY(ReadOutput(stream, fds));
  }
  parts_.left_output.Drop();
  TRY(parts_.bridge->CheckWork());
  TRY(WorkOnQuestions(parts_));
  TRY(NoticeEndedProcesses(parts_));
  if ((fds.back().revents & POLLIN) != 0) parts_.TellEvents();
  parts_.tracker.Tick();
  TRY(Act());
  TRY(TakeRequests());
  TRY(Act());
  TRY(CloseAgain());
  WriteChannel(parts_);
  return Ok();
}

void CommandRun::ReadChannel() {
  if (ReadWorld(parts_) == WorldState::kGone) LoseWorld();
}

// The shim was killed, and everything inside with it, in the middle of whatever it did.
void CommandRun::LoseWorld() {
  parts_.over = true;
  parts_.world->Kill();
  lost_ = true;
  if (!ended_) keeper_.Abandon();
  parts_.tracker.ChannelDied();
}

Status CommandRun::TakeListeners() {
  while (true) {
    auto received = parts_.world->ReceiveListener();
    if (!received.ok()) {
      const Code code = received.error().code();
      if (code == Code::kInvalid || code == Code::kExists) {
        Warn(received.error().message());
        continue;
      }
      return Ok();
    }
    TRY(parts_.bridge->Supervise(received->command, received->listener, parts_.world->init_pid()));
    parts_.processes.push_back({received->command, std::move(received->listener)});
    parts_.tracker.SetProcesses(received->command, control::Processes::kAlive);
    TRY(Release(received->command));
  }
}

Status CommandRun::Release(StepId command) {
  if (pipes_ && command == report_.step) {
    const auto given = pipes_->given();
    TRY(parts_.world->Release(command, given));
    pipes_->CloseGiven();
    return Ok();
  }
  if (!shell_ || command != report_.step) return parts_.world->Release(command);
  shell_runner_.NoteShell();
  const auto given = shell_->channel().given();
  TRY(parts_.world->Release(command, given));
  shell_->channel().CloseGiven();
  return Ok();
}

void CommandRun::TakeInput() {
  if (input_.empty() && takes_input_) {
    input_.resize(kReadBytes);
    const ssize_t got = ::read(streams_.in(), input_.data(), input_.size());
    const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
    input_.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (got <= 0 && !later) {
      takes_input_ = false;
      (void)parts_.tracker.CloseInput(report_.step);  // it may have ended meanwhile
    }
  }
  if (input_.empty() || parts_.queue.paused()) return;
  auto sent = parts_.tracker.SendInput(report_.step, input_);
  if (sent.ok())
    input_.erase(0, *sent);
  else
    input_.clear();  // it has ended
}

void CommandRun::TakeSignals() {
  while (const auto number = streams_.TakeSignal()) {
    if (*number == SIGPIPE) continue;
    if (*number != SIGWINCH)
      (void)parts_.tracker.SendSignal(report_.step, *number);
    else if (const auto size = streams_.terminal())
      (void)parts_.tracker.ResizeTerminal(report_.step, *size);
  }
}

// For so long that nothing else has to wait for it. Of a command that has ended, whether or not there is anything: only that shows
// that there is nothing.
Status CommandRun::ReadOutput(Stream stream, const std::vector<pollfd>& fds) {
  constexpr int kReads = 16;
  if (!pipes_ || (!ended_ && !IsReady(fds, pipes_->fd(stream)))) return Ok();
  if (read_.empty()) read_.resize(OutputPipes::kMost);
  std::string& pending = pending_[stream];
  for (int reads = 0; pending.empty() && reads < kReads; ++reads) {
    std::string_view bytes = pipes_->Read(stream, read_);
    if (bytes.empty()) return Ok();
    TRY(PassOn(stream, bytes));
    pending = bytes;
  }
  return Ok();
}

Status CommandRun::WriteOutput(Stream stream) {
  std::string& pending = pending_[stream];
  std::string_view rest = pending;
  TRY(PassOn(stream, rest));
  const size_t taken = pending.size() - rest.size();
  pending.erase(0, taken);
  if (!pipes_ && taken > 0) parts_.tracker.OutputTaken(report_.step, taken);
  return Ok();
}

// Takes away from `bytes` what was taken.
Status CommandRun::PassOn(Stream stream, std::string_view& bytes) {
  while (!bytes.empty()) {
    auto taken = reader_gone_ ? Result(bytes.size()) : streams_.Write(stream, bytes);
    if (!taken.ok() && taken.error().code() == Code::kCancelled) {
      LoseReader(stream);
      bytes = {};
      return Ok();
    }
    if (!taken.ok()) return taken.error();
    if (*taken == 0) return Ok();
    bytes.remove_prefix(*taken);
  }
  return Ok();
}

// As it would be without us between the two.
void CommandRun::LoseReader(Stream stream) {
  if (pipes_) return pipes_->Close(stream);
  reader_gone_ = true;
  (void)parts_.tracker.SendSignal(report_.step, SIGPIPE);
}

}  // namespace sandglass::session

#include "control/command_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sandglass::control {
namespace {

// Acknowledged in pieces of this size at least, so that a chatty command does not double the number of messages.
constexpr size_t kAckBytes = kWindowBytes / 4;

Ending HowEnded(const StepCompleted& completed, bool timed_out, bool cancelled) {
  if (completed.error) return Ending::kNotStarted;
  if (timed_out) return Ending::kTimedOut;
  if (cancelled) return Ending::kCancelled;
  return completed.signal ? Ending::kSignalled : Ending::kExited;
}

}  // namespace

std::string_view EndingName(Ending ending) {
  switch (ending) {
    case Ending::kExited:
      return "exited";
    case Ending::kSignalled:
      return "signalled";
    case Ending::kTimedOut:
      return "timed_out";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kNotStarted:
      return "not_started";
    case Ending::kLost:
      return "lost";
  }
  return "lost";
}

std::string_view ViolationName(ViolationKind kind) {
  switch (kind) {
    case ViolationKind::kMalformed:
      return "malformed";
    case ViolationKind::kUnknownCommand:
      return "unknown_command";
    case ViolationKind::kEndedCommand:
      return "ended_command";
    case ViolationKind::kNotStarted:
      return "not_started";
    case ViolationKind::kStartedTwice:
      return "started_twice";
    case ViolationKind::kBeyondWindow:
      return "beyond_window";
    case ViolationKind::kReadyTwice:
      return "ready_twice";
    case ViolationKind::kAfterDeath:
      return "after_death";
  }
  return "unknown";
}

CommandTracker::CommandTracker(const Clock& clock, BoundaryTimes times, StepId first_ambient)
    : clock_(clock), boundaries_(clock, times, first_ambient) {}

// --- What the host wants ---

Status CommandTracker::Start(Exec exec) {
  if (dead_) return Error(Code::kCancelled, "the world's shim is gone; start the world again");
  if (exec.id <= highest_) {
    return Error(Code::kExists,
                 fmt::format("command id {} is not above {}", exec.id.value, highest_.value));
  }
  if (commands_.size() >= kMaxCommands) {
    return Error(Code::kBusy, fmt::format("{} commands run already", kMaxCommands));
  }
  HostMessage message(std::move(exec));
  TRY(Validate(message));
  const Exec& checked = std::get<Exec>(message);
  Command command{.has_terminal = checked.pty.has_value(),
                  .input_open = checked.takes_input,
                  .grace = checked.grace};
  if (checked.timeout) {
    command.times_out = clock_.Now() + *checked.timeout + checked.grace + kShimSlack;
  }
  highest_ = checked.id;
  commands_.emplace(checked.id, command);
  boundaries_.CommandBegins(checked.id);
  AddStepChanges();
  Add(Send{std::move(message)});
  return Ok();
}

Result<CommandTracker::Command*> CommandTracker::Find(StepId id) {
  const auto found = commands_.find(id);
  if (found == commands_.end()) {
    return Error(Code::kNotFound, fmt::format("command {} does not run", id.value));
  }
  return &found->second;
}

void CommandTracker::Cancelling(StepId id, Command& command) {
  if (command.cancelled) return;
  command.cancelled = true;
  command.stuck_at = clock_.Now() + command.grace + kShimSlack;
  Add(Send{Cancel{id}});
}

Status CommandTracker::CancelCommand(StepId id) {
  TRY_ASSIGN(Command* const command, Find(id));
  Cancelling(id, *command);
  return Ok();
}

Status CommandTracker::SendSignal(StepId id, int number) {
  TRY(Find(id));
  const HostMessage message = Signal{id, number};
  TRY(Validate(message));
  Add(Send{message});
  return Ok();
}

Status CommandTracker::ResizeTerminal(StepId id, TerminalSize size) {
  TRY_ASSIGN(const Command* const command, Find(id));
  if (!command->has_terminal) {
    return Error(Code::kInvalid, fmt::format("command {} has no terminal", id.value));
  }
  const HostMessage message = Resize{id, size};
  TRY(Validate(message));
  Add(Send{message});
  return Ok();
}

Result<size_t> CommandTracker::SendInput(StepId id, std::string_view data) {
  TRY_ASSIGN(Command* const command, Find(id));
  if (!command->input_open) {
    return Error(Code::kInvalid, fmt::format("command {} takes no input", id.value));
  }
  const size_t room = std::min({data.size(), InputRoom(id), kMaxDataBytes});
  if (room > 0) Add(Send{Input{.id = id, .data = std::string(data.substr(0, room))}});
  command->input_sent += room;
  return room;
}

Status CommandTracker::CloseInput(StepId id) {
  TRY_ASSIGN(Command* const command, Find(id));
  if (!command->input_open) return Ok();
  command->input_open = false;
  Add(Send{Input{.id = id, .eof = true}});
  return Ok();
}

size_t CommandTracker::InputRoom(StepId id) const {
  const auto found = commands_.find(id);
  if (found == commands_.end() || !found->second.input_open) return 0;
  return kWindowBytes - found->second.input_sent;
}

void CommandTracker::OutputTaken(StepId id, size_t bytes) {
  const auto found = Find(id);
  if (!found.ok()) return;
  Command& command = **found;
  const size_t taken = std::min(bytes, command.output_shown);
  command.output_shown -= taken;
  command.output_taken += taken;
  if (command.output_taken < kAckBytes) return;
  Add(Send{Ack{id, std::exchange(command.output_taken, 0)}});
}

void CommandTracker::NotifyRollback(StepId step) {
  if (!dead_) Add(Send{RollbackNotify{step}});
}

Status CommandTracker::GiveUp(StepId id) {
  TRY(Find(id));
  End({.id = id, .ending = Ending::kLost});
  return Ok();
}

// --- What comes from the world ---

void CommandTracker::Receive(const Result<std::string_view>& line) {
  if (dead_) return AfterDeath();
  if (!line.ok()) return Violate(ViolationKind::kMalformed, {}, line.error().message());
  auto message = DecodeShimMessage(*line);
  if (!message.ok()) return Violate(ViolationKind::kMalformed, {}, message.error().message());
  Receive(std::move(*message));
}

void CommandTracker::Receive(ShimMessage message) {
  if (dead_) return AfterDeath();
  std::visit([this](auto& one) { On(std::move(one)); }, message);
}

void CommandTracker::AfterDeath() {
  Violate(ViolationKind::kAfterDeath, {}, "a message came after the shim's end");
}

void CommandTracker::ChannelDied() {
  if (std::exchange(dead_, true)) return;
  LoseAll();
}

void CommandTracker::LoseAll() {
  while (!commands_.empty()) End({.id = commands_.begin()->first, .ending = Ending::kLost});
}

void CommandTracker::Violate(ViolationKind kind, std::optional<StepId> id, std::string detail) {
  if (++violations_ > kMaxReportedViolations) return;
  Add(Violation{kind, id, std::move(detail)});
}

CommandTracker::Command* CommandTracker::FindClaimed(StepId id, std::string_view type) {
  const auto found = commands_.find(id);
  if (found != commands_.end()) return &found->second;
  const bool used = id <= highest_;
  Violate(used ? ViolationKind::kEndedCommand : ViolationKind::kUnknownCommand, id,
          fmt::format("{} for command {}, which {}", type, id.value,
                      used ? "has ended" : "was never sent"));
  return nullptr;
}

CommandTracker::Command* CommandTracker::FindStarted(StepId id, std::string_view type) {
  Command* const command = FindClaimed(id, type);
  if (command == nullptr || command->started) return command;
  Violate(ViolationKind::kNotStarted, id,
          fmt::format("{} for command {}, which has not started", type, id.value));
  return nullptr;
}

void CommandTracker::On(const Ready& ready) {
  if (ready_) return Violate(ViolationKind::kReadyTwice, {}, "the shim was ready already");
  ready_ = true;
  if (ready.version == kProtocolVersion) return;
  Add(WrongVersion{ready.version});
  ChannelDied();
}

void CommandTracker::On(const StepStarted& started) {
  Command* const command = FindClaimed(started.id, "step_started");
  if (command == nullptr) return;
  if (command->started) {
    return Violate(ViolationKind::kStartedTwice, started.id,
                   fmt::format("command {} had started already", started.id.value));
  }
  command->started = true;
  Add(Started{started.id});
}

void CommandTracker::On(Output output) {
  Command* const command = FindStarted(output.id, "output");
  if (command == nullptr) return;
  // What was taken but not acknowledged still counts: the shim cannot know of it.
  const size_t under_way = command->output_shown + command->output_taken;
  if (output.data.size() > kWindowBytes - under_way) {
    return Violate(ViolationKind::kBeyondWindow, output.id,
                   fmt::format("command {} sent more output than it may", output.id.value));
  }
  if (output.data.empty()) return;
  command->output_shown += output.data.size();
  Add(Show{std::move(output)});
}

void CommandTracker::On(const StepCompleted& completed) {
  const Command* const command = FindStarted(completed.id, "step_completed");
  if (command == nullptr) return;
  const bool timed_out = command->timed_out || completed.timed_out;
  End({.id = completed.id,
       .ending = HowEnded(completed, timed_out, command->cancelled),
       .exit_code = completed.exit_code,
       .signal = completed.signal,
       .error = completed.error.value_or("")});
}

void CommandTracker::On(const Ack& ack) {
  Command* const command = FindStarted(ack.id, "ack");
  if (command == nullptr) return;
  if (ack.bytes > command->input_sent) {
    return Violate(ViolationKind::kBeyondWindow, ack.id,
                   fmt::format("ack of more input than command {} was sent", ack.id.value));
  }
  command->input_sent -= ack.bytes;
}

void CommandTracker::On(Problem problem) {
  if (++complaints_ <= kMaxReportedComplaints) Add(Complaint{std::move(problem)});
}

void CommandTracker::End(Outcome outcome) {
  const StepId id = outcome.id;
  commands_.erase(id);
  Add(Ended{std::move(outcome)});
  boundaries_.CommandEnds(id);
  AddStepChanges();
}

// --- What the bridge and the host's own eyes tell ---

StepId CommandTracker::OperationBegins() {
  const StepId step = boundaries_.OperationBegins();
  AddStepChanges();
  return step;
}

void CommandTracker::OperationEnds(StepId step) {
  boundaries_.OperationEnds(step);
  AddStepChanges();
}

void CommandTracker::LetGo(StepId step) {
  boundaries_.LetGo(step);
  AddStepChanges();
}

void CommandTracker::SetProcesses(StepId command, Processes processes) {
  boundaries_.SetProcesses(command, processes);
  AddStepChanges();
}

void CommandTracker::Tick() {
  const Instant now = clock_.Now();
  for (auto& [id, command] : commands_) {
    if (command.times_out && *command.times_out <= now) {
      command.times_out.reset();
      command.timed_out = !command.cancelled;
      Cancelling(id, command);
    }
    if (command.stuck_at && *command.stuck_at <= now) {
      command.stuck_at.reset();
      Add(Stuck{id});
    }
  }
  boundaries_.Tick();
  AddStepChanges();
}

std::optional<Instant> CommandTracker::Deadline() const {
  std::optional<Instant> first = boundaries_.Deadline();
  const auto consider = [&first](std::optional<Instant> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& [id, command] : commands_) {
    consider(command.times_out);
    consider(command.stuck_at);
  }
  return first;
}

void CommandTracker::Add(Action action) { actions_.push_back(std::move(action)); }

void CommandTracker::AddStepChanges() {
  for (const StepChange& change : boundaries_.TakeChanges()) Add(change);
}

std::vector<Action> CommandTracker::TakeActions() { return std::exchange(actions_, {}); }

}  // namespace sandglass::control

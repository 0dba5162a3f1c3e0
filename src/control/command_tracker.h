// CommandTracker: what the host believes about the commands of one world, and what follows from what the shim says.
//
// The shim is not trusted: a command inside the world may have taken its place. Ids are made here, a step is open before its
// command is sent, and a message that does not fit what this class knows is a violation: reported, counted, and otherwise without
// effect. The worst that a false shim can do is to lie about the output and the exit code of a command that was really sent; a
// false end only starts the quiescence window (see step_boundaries.h), and what the command writes after that is ambient, and can
// be undone all the same.
//
//   exec sent ──step_started──► started ──output*──► ──step_completed──► ended
//
// Pure: calls come in, actions come out of TakeActions() in order; no I/O. Call Tick() when Deadline() is reached. Memory is
// bounded: at most kMaxCommands commands, of each at most kWindowBytes of output that nobody has taken yet. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "control/messages.h"
#include "control/step_boundaries.h"

namespace sandglass::control {

inline constexpr size_t kMaxCommands = 64;
// A shim that only sends nonsense fills no log: further violations are counted but not reported, further complaints dropped.
inline constexpr uint64_t kMaxReportedViolations = 100;
inline constexpr uint64_t kMaxReportedComplaints = 100;
// How much longer than asked the shim may take to end a command before the host steps in.
inline constexpr std::chrono::milliseconds kShimSlack{1'000};

enum class Ending : uint8_t {
  kExited,
  kSignalled,
  kTimedOut,
  kCancelled,
  kNotStarted,  // no such program, no such folder; `error` says which
  kLost,        // the shim is gone or was given up; how the command ended is not known
};

// "exited", "timed_out" and so on.
std::string_view EndingName(Ending ending);

// As the shim tells it, but for kTimedOut and kCancelled, which the host may know better.
struct Outcome {
  StepId id;
  Ending ending = Ending::kLost;
  int exit_code = 0;
  std::optional<int> signal;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

enum class ViolationKind : uint8_t {
  kMalformed,       // no message: not JSON, unknown type, wrong members, too long
  kUnknownCommand,  // an id that was never sent
  kEndedCommand,    // an id whose command has ended
  kNotStarted,      // output or end before step_started
  kStartedTwice,
  kBeyondWindow,  // more output than was acknowledged, or an ack of more input than was sent
  kReadyTwice,
  kAfterDeath,
};
std::string_view ViolationName(ViolationKind kind);

// --- Actions ---

// Put it into the writer queue; input is bulk.
struct Send {
  HostMessage message;
};
struct Started {
  StepId id;
};
// Hand it to whoever wants the output, then say so with OutputTaken().
struct Show {
  Output output;
};
struct Ended {
  Outcome outcome;
};
struct Violation {
  ViolationKind kind = ViolationKind::kMalformed;
  std::optional<StepId> id;
  std::string detail;
};
// The shim reports a problem; for people.
struct Complaint {
  Problem problem;
};
// The command was to be ended and has not: end its processes by the host's own means, then call GiveUp().
struct Stuck {
  StepId id;
};
// The shim speaks another version; the channel counts as dead.
struct WrongVersion {
  int64_t version = 0;
};

// StepChange: open or close the step at the bridge, before going on with the next action.
using Action =
    std::variant<StepChange, Send, Started, Show, Ended, Violation, Complaint, Stuck, WrongVersion>;

class CommandTracker {
 public:
  CommandTracker(const Clock& clock, BoundaryTimes times, StepId first_ambient = {-1});

  // --- What the host wants ---

  // Opens the step, then sends the command. kExists: the id is not above all ids before. kBusy: too many commands. kCancelled:
  // the channel is dead. kInvalid, kLimit: the message cannot be sent (messages.h). After an error nothing has happened.
  Status Start(Exec exec);
  // kNotFound: no such command, or it has ended. The same for all below. To cancel twice is to cancel once.
  Status CancelCommand(StepId id);
  Status SendSignal(StepId id, int number);
  // kInvalid: it has no terminal.
  Status ResizeTerminal(StepId id, TerminalSize size);
  // How many bytes from the front were sent, in one message at most, so that a writer queue that is not paused takes it; the rest
  // is for the next call. 0: the window is full, wait for InputRoom() to grow.
  // kInvalid: the command takes no input, or its input was closed.
  Result<size_t> SendInput(StepId id, std::string_view data);
  Status CloseInput(StepId id);
  // 0 if it has ended or takes no input.
  size_t InputRoom(StepId id) const;
  // `bytes` of the output that was shown are gone from the host's memory; the shim may send more. No command: nothing happens.
  void OutputTaken(StepId id, size_t bytes);
  void NotifyRollback(StepId step);
  // The host has ended the command's processes itself.
  Status GiveUp(StepId id);

  // --- What comes from the world ---

  // A line from the line reader, or why it is none.
  void Receive(const Result<std::string_view>& line);
  void Receive(ShimMessage message);
  // The channel is closed or the shim has died: all commands are lost, and nothing is believed any more.
  void ChannelDied();

  // --- What the bridge and the host's own eyes tell ---

  StepId OperationBegins();
  void OperationEnds(StepId step);
  void SetProcesses(StepId command, Processes processes);
  // As of StepBoundaries.
  void Hold(StepId step) { boundaries_.Hold(step); }
  void LetGo(StepId step);

  void Tick();
  std::optional<Instant> Deadline() const;

  std::vector<Action> TakeActions();
  uint64_t violations() const { return violations_; }
  bool dead() const { return dead_; }
  bool ready() const { return ready_; }
  size_t running() const { return commands_.size(); }

 private:
  struct Command {
    bool started = false;
    bool has_terminal = false;
    bool input_open = false;
    bool cancelled = false;  // by the host
    bool timed_out = false;  // the host's own view
    std::chrono::milliseconds grace{};
    std::optional<Instant> times_out;  // the host steps in
    std::optional<Instant> stuck_at;
    size_t output_shown = 0;  // not taken yet
    size_t output_taken = 0;  // not acknowledged yet
    size_t input_sent = 0;    // not acknowledged yet
  };
  using Commands = std::map<StepId, Command>;

  void On(const Ready& ready);
  void On(const StepStarted& started);
  void On(Output output);
  void On(const StepCompleted& completed);
  void On(const Ack& ack);
  void On(Problem problem);

  Result<Command*> Find(StepId id);
  // Of a command that is under way; else reports what is wrong with the id, and null.
  Command* FindClaimed(StepId id, std::string_view type);
  // The same, of a command that has started.
  Command* FindStarted(StepId id, std::string_view type);
  void Violate(ViolationKind kind, std::optional<StepId> id, std::string detail);
  void Cancelling(StepId id, Command& command);
  void End(Outcome outcome);
  void AfterDeath();
  void LoseAll();
  void Add(Action action);
  void AddStepChanges();

  const Clock& clock_;
  StepBoundaries boundaries_;
  Commands commands_;
  StepId highest_{0};  // ids up to this one were used
  uint64_t violations_ = 0;
  uint64_t complaints_ = 0;
  bool ready_ = false;
  bool dead_ = false;
  std::vector<Action> actions_;
};

}  // namespace sandglass::control

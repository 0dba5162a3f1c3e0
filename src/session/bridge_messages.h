// What a session asks of its bridge process, and what that answers: one frame of JSON each; docs/session.md describes them.
//
// The bridge process handles what commands hand in and may have been taken over: its answers are decoded with care. Decoding is pure;
// what a decoder returns is within all limits below. Value types; any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "session/files/opening.h"
#include "session/rewind_request.h"
#include "undo/types.h"

namespace sandglass::session {

// --- What is asked. What is answered is so in order; the rest, of which nobody waits for the end, is told only if it failed (Failed).

// Serve the filter of a command; its listener comes with the frame.
struct Supervise {
  StepId command;
  pid_t world = -1;  // any process of it
  friend bool operator==(const Supervise&, const Supervise&) = default;
};
// No process of that command is left; what is asked for next waits until its last call is done.
struct Forget {
  StepId command;
  friend bool operator==(const Forget&, const Forget&) = default;
};
// Begin a step in all projects with its first change.
struct Announce {
  StepId step;
  std::string label;
  undo::IfUnchanged if_unchanged = undo::IfUnchanged::kForgotten;
  friend bool operator==(const Announce&, const Announce&) = default;
};
// When a step that changed nothing gets its entry in the history. Later: see step_book.h.
enum class EmptyEntry : uint8_t { kBeforeTheAnswer, kLater };
// Close the step in all projects. Answer: Closed.
struct CloseStep {
  EmptyEntry empty_entry = EmptyEntry::kBeforeTheAnswer;
  friend bool operator==(const CloseStep&, const CloseStep&) = default;
};
// Answer: Position.
struct AskPosition {
  friend bool operator==(const AskPosition&, const AskPosition&) = default;
};
// Make the entries of steps that were put off. Answer: Position.
struct EnterSteps {
  friend bool operator==(const EnterSteps&, const EnterSteps&) = default;
};
// Whether folders on the way to a file are made if they are missing.
enum class FoldersAround : uint8_t { kMustExist, kMade };
// Put the content, which comes with the frame as a descriptor, in the place of a file, as a step of kind api. Answer: Written.
struct WriteRequest {
  StepId step;
  std::string project;  // absolute
  std::string path;     // from it
  std::string label;
  FoldersAround folders = FoldersAround::kMustExist;
  std::optional<files::FileVersion> expected = {};  // of another version nothing is replaced
  friend bool operator==(const WriteRequest&, const WriteRequest&) = default;
};
// Nothing is left to be served. Answer: Ended, and the process ends.
struct End {
  friend bool operator==(const End&, const End&) = default;
};
// A RewindRequest is answered by a RewindAnswer.
using BridgeRequest = std::variant<Supervise, Forget, Announce, CloseStep, AskPosition, EnterSteps,
                                   RewindRequest, WriteRequest, End>;

std::string Encode(const BridgeRequest& request);
// kLimit: too long or too large. kInvalid: no request.
Result<BridgeRequest> DecodeBridgeRequest(std::string_view frame);

// --- What is answered. Any answer may be an error instead, as that of a RewindAnswer; decoding returns it as its error.

// What was to be done without an answer could not be. Comes at any time.
struct Failed {
  Error error;
};
// Unasked, as the first frame: the process is confined, all logs are open.
struct Opened {
  std::vector<undo::RecoveryReport> recoveries;  // one for each project
  StepId next{0};                                // as of a Position
};
struct Closed {
  std::vector<std::string> notices;  // what people should know of the step
  bool changed = true;               // false: it changed nothing in any project, for sure
  bool unprotected = false;          // it is not recorded in full in one of them
  StepId next{0};                    // as of a Position
};
struct Ended {
  std::vector<std::string> notices;  // what has come up since the last step was closed
};
struct Written {
  std::vector<std::string> notices;  // what people should know of the step
  StepId next{0};                    // as of a Position
};
struct Position {
  StepId next{0};      // an id that no project has used
  bool begun = false;  // a step is open, and has changed something
};

std::string Encode(const Failed& failed);
std::string Encode(const Opened& answer);
std::string Encode(const Closed& answer);
std::string Encode(const Position& answer);
std::string Encode(const Ended& answer);
// nullopt: it is none, but maybe an answer.
std::optional<Failed> DecodeFailed(std::string_view frame);
std::string Encode(const Written& answer);
Result<Opened> DecodeOpened(std::string_view frame);
Result<Closed> DecodeClosed(std::string_view frame);
Result<Position> DecodePosition(std::string_view frame);
Result<Ended> DecodeEnded(std::string_view frame);
Result<Written> DecodeWritten(std::string_view frame);

}  // namespace sandglass::session

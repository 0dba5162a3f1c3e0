// RewindRequest: what `undo`, `redo` and `restore` ask for, and what they are told, whether the one who asks does it with a log of
// its own or has a running session do it. As messages: one line of JSON each; docs/session.md describes them.
//
// Decoding is pure: what a decoder returns is within all limits below. Value types; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// Lines without their newline.
inline constexpr size_t kMaxRequestBytes = size_t{1} << 20;
inline constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
inline constexpr uint32_t kMaxRewindCount = 1'000'000;

enum class RewindKind : uint8_t { kUndo, kRedo, kRestore };
enum class Deed : uint8_t { kDone, kPlanned };  // kPlanned: a dry run
// What becomes of the processes that still run in the world.
enum class Runners : uint8_t {
  kStay,  // where they are in the way, the answer is kBusy
  kEnd,   // first they get SIGTERM, after a while SIGKILL
};

// Whether who asks wants to know how far it is until the answer comes.
enum class ProgressWanted : uint8_t { kNo, kYes };

struct RewindRequest {
  RewindKind kind = RewindKind::kUndo;
  std::string project;             // absolute
  uint32_t count = 1;              // of undo and redo
  StepId step{0};                  // of restore
  std::vector<std::string> paths;  // of restore; relative to the project
  undo::Force force = undo::Force::kNo;
  Deed deed = Deed::kDone;
  Runners runners = Runners::kStay;
  ProgressWanted progress = ProgressWanted::kNo;
  friend bool operator==(const RewindRequest&, const RewindRequest&) = default;
};

struct RewindAnswer {
  std::optional<undo::RewindReport> report;  // none: it failed
  std::optional<Error> error;
  std::vector<undo::Conflict> conflicts;  // why it was refused
  std::vector<pid_t> running;             // of kBusy: who is in the way
};

// "undo", "redo", "restore".
std::string_view NameOf(RewindKind kind);
RewindAnswer Refused(Error error);
// With a log that the caller owns.
RewindAnswer Perform(undo::UndoLog& log, const RewindRequest& request);

std::string Encode(const RewindRequest& request);
// kLimit: the line or a value in it is too long or too large. kInvalid: no request.
Result<RewindRequest> DecodeRewindRequest(std::string_view line);
Result<RewindRequest> RewindRequestFrom(const Json& json);

// Sent before the answer, any number of times.
using TellProgress = std::function<void(const undo::RewindProgress&)>;
std::string Encode(const undo::RewindProgress& progress);
// Nothing: the line is an answer, or makes no sense as one either.
std::optional<undo::RewindProgress> DecodeProgress(std::string_view line);

// Within kMaxAnswerBytes: a report that is longer is told without its changes.
std::string Encode(const RewindAnswer& answer);
// kLimit, kInvalid as above.
Result<RewindAnswer> DecodeRewindAnswer(std::string_view line);

}  // namespace sandglass::session

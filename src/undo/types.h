// The vocabulary of undo: what a caller configures, asks and is told. Value types only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/log.h"

namespace sandglass::undo {

enum class StepKind : uint8_t { kCommand = 0, kApi = 1, kAmbient = 2 };
std::string_view KindName(StepKind kind);

// What a caller says about a step when it opens it.
struct StepSpec {
  StepKind kind = StepKind::kCommand;
  std::string label;  // the command line, or what the API did
  // Default: one more than the newest. Positive, and never that of a step that was open here before, even if it was aborted.
  std::optional<StepId> id;
};

// What becomes of an announced step that changed nothing.
enum class IfUnchanged : uint8_t {
  kForgotten,
  kRecorded,  // as an empty step, unless that would cost something that can be redone
};

enum class ChangeKind : uint8_t { kCreated, kModified, kDeleted, kRenamed };
std::string_view ChangeName(ChangeKind kind);

// One line of a step's summary.
struct Change {
  ChangeKind kind;
  std::string path;
  std::string old_path;  // kRenamed only
  uint64_t old_size = 0;
  uint64_t new_size = 0;
};

struct ChangeCounts {
  uint32_t created = 0, modified = 0, deleted = 0, renamed = 0;
  uint32_t total() const { return created + modified + deleted + renamed; }
};

enum class Protection : uint8_t { kFull = 0, kUnprotected = 1 };

struct StepInfo {
  StepId id;
  StepKind kind = StepKind::kCommand;
  Protection protection = Protection::kFull;
  std::string label;
  Instant opened, closed;
  ChangeCounts counts;
  uint64_t copied_bytes = 0;    // what the store copied for it
  uint64_t retained_bytes = 0;  // what the store keeps from being freed
  bool damaged = false;         // its journal cannot be read to the end: only the id is certain
};

// An edit that did not come through the interceptor. Rolling back `after` would lose it.
struct Barrier {
  StepId after;
  Instant at;
  uint32_t
      redo_depth;  // how many rollbacks came before it and could be redone: a redo of one of these crosses it
  std::vector<std::string> paths;  // empty: the whole tree (a watcher lost events)
};

// One entry of the history, oldest first: a step or a barrier.
struct HistoryEntry {
  std::optional<StepInfo> step;
  std::optional<Barrier> barrier;
};

enum class ConflictKind : uint8_t {
  kEdited,    // content or metadata changed since the step
  kReplaced,  // another object has the name now
  kMissing,   // the object is gone
  kOccupied,  // a name that should be free is taken
  kBarrier,   // a recorded external edit lies in between
  kCorrupt,   // what was kept for this path fails its checksum or is missing
  kBusy,      // a live writer has it open
};
std::string_view ConflictName(ConflictKind kind);

struct Conflict {
  ConflictKind kind;
  std::string path;  // "": the project folder, or a whole step
  std::string detail;
  std::optional<StepId> step = {};  // it is about this step as a whole, and about no path
};
// "edited    src/a.txt: has been changed since", "corrupt   step 3: cannot be read".
std::string ConflictText(const Conflict& conflict);
// What a refusal because of these is.
Code RefusalCode(const std::vector<Conflict>& conflicts);
// "`head`:", and below it the first of the conflicts, one line each.
Error Refusal(std::string_view head, const std::vector<Conflict>& conflicts);

// What a rollback, redo, restore or recovery did, or by plan would do.
struct RewindReport {
  std::vector<StepId> steps;        // in the order they were taken back (or redone)
  std::vector<Change> changes;      // as seen by the project: what the rewind itself changed
  std::vector<Conflict> conflicts;  // crossed by force, or kept as a person left them
  std::vector<std::string> kept;    // directories that stay because they hold something unrecorded
  std::vector<std::string> warnings;
};

// What a step itself changed, as text. A path of which nobody can tell any more what the step found or left there is among `missing`.
struct StepDiff {
  std::string text;
  std::vector<Conflict> missing;
};

// A project with a store, as the registry knows it. Real paths.
struct RegisteredProject {
  std::string project, store;
};

// What opening a store found and did.
struct RecoveryReport {
  bool recovered = false;  // an interrupted step was rolled back or an ambient one promoted
  std::optional<StepId> step;
  // A killed rollback or redo was undone; one over several steps is completed.
  bool interrupted_rewind = false;
  RewindReport rewind;
};

enum class Force : uint8_t { kNo, kYes };

enum class SymlinkPolicy : uint8_t { kIgnore, kReadOnly, kReadWrite };
// What an edit from outside becomes. kWarn: the observer is told and nothing is stored, so what only a watcher or an older step could
// have known does not hold up a rollback. An edit that the disk still shows does under both.
enum class ExternalPolicy : uint8_t { kBarrier, kWarn };
enum class Durability : uint8_t { kProcess, kPower };
enum class GitignoreMode : uint8_t { kOff, kSkipIgnored };
enum class OversizePolicy : uint8_t { kAsk, kRefuse, kUnprotected };
enum class Compression : uint8_t { kOff, kBackground };

struct Limits {
  uint64_t max_copied_bytes = 1ull << 30;         // all steps together, with their journals
  uint64_t max_step_copied_bytes = 200ull << 20;  // one step
  uint32_t max_steps = 100;  // that changed something; others do not count, and have the same limit
  // Anchored bytes cost nothing until their last name in the project is gone; then they keep disk space from
  // being freed. Budget: at most this many, and at most this share of what is free.
  uint64_t max_retained_bytes = 64ull << 30;
  uint32_t max_retained_percent_of_free = 50;
};

enum class SafeguardKind : uint8_t {
  kDeleteCount,
  kOverwriteLarge,
  kTruncateLarge,
  kRenameOver,
  kUndoLimit
};
std::string_view SafeguardName(SafeguardKind kind);

// A threshold of nullopt switches that safeguard off.
struct SafeguardConfig {
  std::optional<uint32_t> delete_count;
  std::optional<uint64_t> overwrite_bytes;
  std::optional<uint64_t> truncate_bytes;
  std::optional<uint32_t> rename_over_count;
  std::chrono::milliseconds timeout{30'000};
};

struct SafeguardQuestion {
  uint64_t id = 0;
  SafeguardKind kind;
  StepId step;
  uint64_t amount = 0;                    // deletions so far plus this one, bytes, ...
  std::vector<std::string> sample_paths;  // at most 20, the one that triggered last
};

enum class Decision : uint8_t { kAllow, kDeny };

// Asked before the operation that would cross a threshold. Called on the thread of that operation with no lock
// held; may block. Must be thread-safe.
class SafeguardHandler {
 public:
  virtual ~SafeguardHandler() = default;
  virtual Decision Decide(const SafeguardQuestion& question) = 0;
};

// Told about what happens by itself. Called with no lock held; must be quick and thread-safe.
class UndoObserver {
 public:
  virtual ~UndoObserver() = default;
  virtual void OnEvicted(const std::vector<StepId>&) {}
  virtual void OnExternalModification(const Barrier&) {}
  // From here on the step is not recorded in full; or, if `why` begins with a path, what a process writes to that file after the step.
  virtual void OnUnprotected(StepId, std::string_view /*why*/) {}
};

// How far a rollback or a redo has come, in paths that its steps had changed; an estimate within a step.
struct RewindProgress {
  uint64_t done = 0, total = 0;
  friend bool operator==(const RewindProgress&, const RewindProgress&) = default;
};

struct UndoOptions {
  Limits limits;
  OversizePolicy on_oversize = OversizePolicy::kAsk;
  SafeguardConfig safeguards;
  SymlinkPolicy symlinks = SymlinkPolicy::kReadWrite;
  ExternalPolicy external = ExternalPolicy::kBarrier;
  Durability durability = Durability::kProcess;
  GitignoreMode gitignore = GitignoreMode::kOff;
  // What is not recorded either: lines as in a .gitignore of the root, which no .gitignore overrules.
  std::vector<std::string> unrecorded;
  Compression compression = Compression::kBackground;
  std::chrono::milliseconds ambient_idle{5'000};
  std::chrono::milliseconds ambient_max{60'000};
  // How often an open step says "still alive"; zero: only with each record. Recovery tells a person's edits
  // after a crash from the step's own writes by it.
  std::chrono::milliseconds heartbeat{100};
  const Clock* clock = nullptr;  // default: the system's
  // How long ambient steps last. Default: `clock` if there is one, else a steady one, which nobody can set.
  const Clock* steady_clock = nullptr;
  SafeguardHandler* safeguard_handler =
      nullptr;  // default: nobody to ask, so every question is denied
  UndoObserver* observer = nullptr;
  // Called now and then while a rollback or a redo is at work, on its thread; must not call the log. Default: nobody is told.
  std::function<void(const RewindProgress&)> progress;
  Logger log = Logger::Null();  // warnings
};

}  // namespace sandglass::undo

// UndoLog: one project's steps and the store that keeps them.
//
//   TRY_ASSIGN(auto log, UndoLog::Open({.project = "/home/me/app", .store = store}, options));   // recovers first
//   TRY_ASSIGN(StepId id, log->OpenStep({.label = "make"}));
//   ... bridges call Interceptor(*log) ...
//   TRY(log->CloseStep());
//   TRY_ASSIGN(RewindReport report, log->Rollback(1, Force::kNo));
//
// One UndoLog owns the store (a lock file says so: kLocked otherwise); readers use StoreReader beside it. Thread-safe. Rollback,
// Redo and Restore refuse with kBusy while a step is open. docs/formats/undo.md describes the store.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "undo/capture_stats.h"
#include "undo/interceptor.h"
#include "undo/types.h"

namespace sandglass::undo {

struct UndoPaths {
  std::string project;
  std::string store;  // "": StoreLocationFor(project)
  // Where projects are registered, so that none is opened inside another. "": RegistryLocation() if `store` is "" too, else none.
  std::string registry = {};
};

// How the store can keep content of this project, as found at open.
struct StoreAbilities {
  bool handles = false;   // objects have identities that survive renames and reuse of inode numbers
  bool links = false;     // an inode can be linked from the project into the store
  bool reflinks = false;  // FICLONE works
  bool leases = false;    // F_SETLEASE works
  bool exchange = false;  // RENAME_EXCHANGE between project and store works
  bool fine_timestamps = false;  // two changes never share a ctime once it was looked at
  std::string file_system;
};

class LogCore;
struct Place;

class UndoLog {
 public:
  // kVersion: the store has another format; Discard() it first. kLocked: in use. kForeign: the store belongs to another project,
  // or the project was replaced, or it lies inside or around another one with a store. kUnsupported: the place cannot be protected (the message says why).
  static Result<std::unique_ptr<UndoLog>> Open(const UndoPaths& paths,
                                               const UndoOptions& options = {});
  // Wipes the store, whatever its version, and leaves an empty one of the current version; the registry forgets it. The project
  // is not touched.
  static Status Discard(const UndoPaths& paths);
  ~UndoLog();

  const RecoveryReport& recovery() const;
  const StoreAbilities& abilities() const;
  // How often each way of keeping content was used since Open.
  const CaptureStats& stats() const;
  Interceptor& interceptor();

  // kBusy: one is open already. kInvalid, kExists: the id is none or was used. Closes an ambient step first. Empties the redo stack.
  Result<StepId> OpenStep(const StepSpec& spec);
  // A step that opens with its first change. Until then it is in nobody's way: rewinds go on, and what can be redone stays so. Its id
  // is taken until it is forgotten. CloseStep and AbortStep end it, begun or not. Errors as of OpenStep.
  Result<StepId> AnnounceStep(const StepSpec& spec, IfUnchanged if_unchanged);
  // Promotes the open step; `live_writers` are descriptors (any kind) of objects that a process may still write to.
  // Returns what was evicted to stay within the limits. On failure the step stays open.
  Result<std::vector<StepId>> CloseStep(std::span<const ObjectRef> live_writers = {});
  // Asked for more of them whenever a step closes, also an ambient one, while no operation is under way: whatever began before has
  // to be among them. It must not call the log, and must live as long as steps are closed.
  using LiveWriterSource = std::function<std::vector<ObjectRef>()>;
  void SetLiveWriterSource(LiveWriterSource source);
  // Takes back everything that the open step did and forgets it.
  Result<RewindReport> AbortStep();
  // Closes an ambient step that has been idle too long; call it from a timer. True: one was closed.
  Result<bool> Tick();
  // At the end of whatever makes ambient changes. Otherwise the next step closes it, or the next open.
  Status CloseAmbientStep();
  std::optional<StepId> open_step() const;
  // Did a process have something open for writing when the last step closed? What it wrote since is seen when the next one does.
  bool has_shadows() const;
  // The id that OpenStep would choose.
  StepId next_step_id() const;

  // Takes back the newest `count` steps that changed something (steps without changes in between go along).
  // kConflict: a person's edit is in the way; the error lists the paths, nothing was touched. PlanRollback has the details.
  Result<RewindReport> Rollback(uint32_t count, Force force = Force::kNo);
  // Dry run: changes and conflicts. Closes an ambient step first, as Rollback does: what already happened is no plan.
  Result<RewindReport> PlanRollback(uint32_t count) const;
  // The same count leads back to where Rollback came from: steps without changes go along here too.
  // kCorrupt: what a rollback kept is damaged, and nothing below it can be redone either; force does not help.
  Result<RewindReport> Redo(uint32_t count, Force force = Force::kNo);
  Result<RewindReport> PlanRedo(uint32_t count) const;
  uint32_t redo_depth() const;
  // Brings single paths (folders with all below) back to what they were before `step`, as a new step of kind api. Where all of them are
  // so already, there is no new step, and the report is empty.
  Result<RewindReport> Restore(StepId step, std::span<const std::string> paths,
                               Force force = Force::kNo);
  // Dry run; `steps` stays empty, for there is none yet.
  Result<RewindReport> PlanRestore(StepId step, std::span<const std::string> paths) const;

  // A watcher saw an edit that no bridge made. No paths: it lost track, so everything may have changed.
  Status NoteExternalModification(std::span<const std::string> paths);

  Result<std::vector<HistoryEntry>> History() const;
  Result<std::vector<Change>> Changes(StepId step) const;
  Result<StepDiff> Diff(StepId step) const;

  // Waits until background compression and clean-up have nothing left to do.
  void WaitForBackground();

 private:
  explicit UndoLog(std::unique_ptr<LogCore> core);
  std::unique_ptr<LogCore> core_;
  std::unique_ptr<Interceptor> interceptor_;
};

// Reads a store without owning it, also while an UndoLog does.
class StoreReader {
 public:
  // kNotFound: there is no store yet. kInvalid: that folder is none. kVersion. kForeign: it belongs to another project.
  static Result<StoreReader> Open(const UndoPaths& paths);
  StoreReader(StoreReader&&) noexcept;
  StoreReader& operator=(StoreReader&&) noexcept;
  ~StoreReader();

  Result<std::vector<HistoryEntry>> History() const;
  uint32_t redo_depth() const;
  Result<std::vector<Change>> Changes(StepId step) const;
  Result<StepDiff> Diff(StepId step) const;
  // A step as a readable manifest (JSON).
  Result<std::string> Show(StepId step) const;

 private:
  explicit StoreReader(std::unique_ptr<Place> place);
  std::unique_ptr<Place> place_;
};

// Where a project's store goes: the state folder when its file system and mount are the project's, else a hidden folder
// beside the project.
Result<std::string> StoreLocationFor(const std::string& project);
// Where projects with such stores are registered: in the state folder. kInvalid, kNotFound: nothing says where that is.
Result<std::string> RegistryLocation();

// For hints where a folder has no store of its own. The nearest project above it that the registry knows; nullopt: none.
std::optional<RegisteredProject> FindProjectAround(const std::string& registry,
                                                   const std::string& folder);
// Where this very folder was, and still has its store, before it was moved; nullopt: nothing tells.
std::optional<RegisteredProject> FindFormerPlace(const std::string& registry,
                                                 const std::string& folder);

}  // namespace sandglass::undo

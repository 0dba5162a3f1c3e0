// ModelRun: one sequence of commands against one project, judged after every rewind.
//
// The model is a stack of whole-tree snapshots, one before and one after each step; it knows nothing of how the undo library
// works. After a rollback the tree must be the snapshot before the oldest step taken back, after a redo the one after the
// newest step redone, after a restore of a path that path must be as it was and nothing else may have changed. An edit that a
// person made must be refused by name, and must not spoil the steps after it. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/model/command.h"
#include "tests/model/counts.h"
#include "tests/model/project_actor.h"
#include "tests/model/trace.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_snapshot.h"
#include "undo/undo_log.h"

namespace sandglass::model {

// For some sequences the store is on another file system: nothing can be kept by a link there, and all is copied.
class StoreElsewhere {
 public:
  explicit StoreElsewhere(const Sequence& sequence);
  ~StoreElsewhere();
  StoreElsewhere(const StoreElsewhere&) = delete;
  StoreElsewhere& operator=(const StoreElsewhere&) = delete;
  const std::string& path() const { return path_; }  // "": it is beside the project, as usual

 private:
  std::string path_;
};

class ModelRun {
 public:
  ModelRun(const test::TempWorkspace& workspace, Counts& counts, const Sequence& sequence);

  // Plants the project, opens the log, runs the commands and unwinds everything at the end. The error says what was wrong.
  Status Run();

  const Trace& trace() const { return trace_; }
  uint64_t operations() const { return operations_; }
  uint64_t steps() const { return steps_; }

 private:
  // Which inode each path is: tells an object that a step changed from one that it only moved.
  using Inodes = std::map<std::string, ino_t>;
  struct Step {
    StepId id;
    test::TreeSnapshot before;
    test::TreeSnapshot after;
    std::vector<std::string>
        changed;  // files with one name that it made or changed, as named after it
    std::vector<std::string>
        changed_in_place;  // those of them that were there before, under the same name
    std::vector<std::string>
        folders;  // but the root, that it made or changed in place: not only names in them
    std::vector<std::string> named_folders;  // that it changed only names in
    std::string edited;      // a person changed this path between this step and the next
    ino_t edited_inode = 0;  // what has it since; 0: nothing
    std::optional<test::EntrySnapshot> edited_to;  // the same
  };

  Status OpenLog();
  Status RunCommand(const Command& command);
  Status Act(const Command& command);
  Status ActOutsideOfStep(const Command& command);
  Status WriteBetweenSteps(const Command& command);
  Status BeginStep();
  Status EndStep();
  Status AbortStep();
  Status Reopen();
  Status Rollback(const Command& command);
  Status RollbackPlanned(uint32_t count, const undo::RewindReport& plan);
  Status RollbackOverEdit(uint32_t count, Dice& dice);
  Status RefuseRollback(uint32_t count, const std::string& edited);
  bool IsPersons(const Step& step, const test::EntrySnapshot& entry, ino_t inode) const;
  Status ForceRollback(uint32_t count);
  Result<undo::RewindReport> RollbackDespiteWriters(uint32_t count);
  Status Redo(const Command& command);
  Status RefuseRedo(const std::string& edited);
  Status Restore(const Command& command);
  Status CheckRestored(const test::TreeSnapshot& wanted, const test::TreeSnapshot& seen,
                       const std::string& path);
  std::optional<std::string> PathToRestore(const test::TreeSnapshot& wanted, uint32_t choice) const;
  Status PushRestore(test::TreeSnapshot seen, const Inodes& inodes_before);
  Status ExternalEdit(const Command& command);
  Status EditNamedFolder(const Command& command);
  Status Unwind();

  Result<test::TreeSnapshot> Look();
  Result<Inodes> LookAtInodes() const;
  // nullopt: nothing has it.
  Result<std::optional<std::string>> PathOfInode(ino_t wanted) const;
  Status FinishStep(Step& step, const Inodes& before) const;
  Status ExpectCounted(const Step& step) const;
  Status ExpectTree(const test::TreeSnapshot& wanted, const char* when);
  Status ExpectUntouched(const char* when) { return ExpectTree(current_, when); }
  // The first of the steps on the stack that a rewind of `plan` takes back. kInvalid: the plan does not fit the stack.
  Result<size_t> OldestOf(const undo::RewindReport& plan) const;
  // Of the newest step that is closed; kInvalid: there is none.
  Result<StepId> NewestClosed() const;
  // From this step on, no person's edit lies in between.
  size_t FirstUnspoiled() const;
  bool HasEditFrom(size_t index) const;
  void MoveToRedo(size_t from);
  void TakeFromRedo(size_t count);
  void ForgetRedo();
  void Done(const Command& command) { ++counts_.done[static_cast<size_t>(command.op)]; }

  const test::TempWorkspace& workspace_;
  Counts& counts_;
  const Sequence& sequence_;
  const StoreElsewhere elsewhere_;
  Trace trace_;
  std::unique_ptr<undo::UndoLog> log_;
  std::optional<ProjectActor> actor_;  // ends before the log that it uses

  std::vector<Step> stack_;  // oldest first
  std::vector<Step> redo_;   // the next to be redone last
  size_t floor_ =
      0;  // steps below this index have snapshots that no longer say what a rollback leads to
  bool redo_spoiled_ = false;
  bool folder_edited_ = false;  // from outside, at any time before
  bool step_open_ = false;
  uint64_t operations_in_step_ = 0;
  uint64_t operations_ = 0;
  uint64_t steps_ = 0;
  test::TreeSnapshot current_;  // at the last boundary
  Inodes inodes_;               // when the open step began
};

}  // namespace sandglass::model

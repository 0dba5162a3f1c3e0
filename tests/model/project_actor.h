// ProjectActor: carries out the commands that change the project, through the interceptor, choosing targets by what exists.
// It also holds the files that a world would keep open. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "tests/model/command.h"
#include "tests/model/inventory.h"
#include "tests/model/trace.h"
#include "tests/support/project_ops.h"
#include "undo/undo_log.h"

namespace sandglass::model {

enum class Effect : uint8_t {
  kNothing,  // nothing to act on
  kDone,
  kUnsupported,  // this file system or this user cannot do it
};

class ProjectActor {
 public:
  // `trace` gets a line per command, for the report of a failure.
  ProjectActor(undo::UndoLog& log, const std::string& project, uint32_t directories, Trace& trace);

  // An error means that the interceptor refused what the file system allows, or allowed what it refuses.
  Result<Effect> Apply(const Command& command);

  // What a bridge would report at the end of a step: files that can still be written to.
  std::vector<undo::ObjectRef> LiveWriters() const;
  void CloseWriters();

 private:
  struct KeptFile {
    Fd fd;
    std::string path;  // when it was opened; "": it had lost its name by then
    bool writable;
  };
  // One command on its way.
  struct Turn {
    const Command& command;
    Inventory inventory;
    Dice dice;
  };
  using Handler = Result<Effect> (ProjectActor::*)(Turn&);
  static Handler HandlerOf(Op op);

  Result<Effect> Create(Turn& turn);
  Result<Effect> WriteNew(Turn& turn);
  Result<Effect> Overwrite(Turn& turn);
  Result<Effect> WriteUnseen(Turn& turn);
  Result<Effect> WriteAnnounced(Turn& turn);
  Result<Effect> AppendUnseen(Turn& turn);
  Result<Effect> AppendAnnounced(Turn& turn);
  Result<Effect> TruncateUp(Turn& turn);
  Result<Effect> TruncateDown(Turn& turn);
  Result<Effect> PunchHole(Turn& turn);
  Result<Effect> Fallocate(Turn& turn);
  Result<Effect> CopyRange(Turn& turn);
  Result<Effect> MmapWrite(Turn& turn);
  Result<Effect> RenameWithin(Turn& turn);
  Result<Effect> RenameAcross(Turn& turn);
  Result<Effect> RenameOver(Turn& turn);
  Result<Effect> RenameExchange(Turn& turn);
  Result<Effect> RenameDirectory(Turn& turn);
  Result<Effect> HardLink(Turn& turn);
  Result<Effect> WriteOtherLink(Turn& turn);
  Result<Effect> UnlinkOneLink(Turn& turn);
  Result<Effect> UnlinkLast(Turn& turn);
  Result<Effect> UnlinkOpen(Turn& turn);
  Result<Effect> RelinkOpen(Turn& turn);
  Result<Effect> RelinkGone(Turn& turn);
  Result<Effect> OpenUnchanged(Turn& turn);
  Result<Effect> KeepOpen(Turn& turn);
  Result<Effect> WriteKept(Turn& turn);
  Result<Effect> CloseKept(Turn& turn);
  Result<Effect> Mkdir(Turn& turn);
  Result<Effect> Rmdir(Turn& turn);
  Result<Effect> RemoveTree(Turn& turn);
  Result<Effect> RecreateName(Turn& turn);
  Result<Effect> Stage(Turn& turn);
  Result<Effect> PassThrough(Turn& turn);
  Result<Effect> Symlink(Turn& turn);
  Result<Effect> Mknod(Turn& turn);
  Result<Effect> Chmod(Turn& turn);
  Result<Effect> Chown(Turn& turn);
  Result<Effect> Utimes(Turn& turn);
  Result<Effect> SetXattr(Turn& turn);
  Result<Effect> RemoveXattr(Turn& turn);
  Result<Effect> SetFlags(Turn& turn);
  Result<Effect> Failing(Turn& turn);

  Result<Effect> WriteSomewhere(Turn& turn, undo::WriteVisibility visibility);
  Result<Effect> AppendSomething(Turn& turn, undo::WriteVisibility visibility);
  Result<Effect> RenameTo(Turn& turn, const Spot* from, const Spot* to, undo::RenameMode mode);
  Result<Effect> Judge(const Status& status) const;
  Status MustFail(const Status& status, int expected_errno) const;
  Status ChangeInside(const std::string& dir, Turn& turn);
  std::string FreeName(const std::string& wanted) const;
  void Keep(KeptFile file);
  void Note(const Command& command, std::string text);

  testing::ProjectOps ops_;
  const uint32_t directories_;
  Trace& trace_;
  std::vector<KeptFile> kept_;
};

}  // namespace sandglass::model

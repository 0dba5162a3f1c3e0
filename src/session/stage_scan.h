// What a command did in a stage, read from its upper folder: whiteouts, opaque folders, copies and new objects become a list of
// changes. Looks and changes nothing. Free functions; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/stage.h"
#include "undo/metadata.h"
#include "undo/types.h"

namespace sandglass::session {

struct StagedChange {
  // kCreated, kModified or kDeleted. A deleted folder stands for all below it. What became another type is deleted, then created.
  undo::Change change;
  bool folder = false;
  std::string conflict;  // what somebody else did to it meanwhile; "": nothing
};

struct StageScan {
  std::vector<StagedChange> changes;  // folders before what is in them
  std::vector<std::string> folders;   // all that the stage holds, likewise
};

Result<StageScan> ScanStage(const Stage& stage);

// An object of the stage as it is to be in the project: without the marks of overlayfs, and without what is not the command's to set.
Result<undo::Metadata> StagedMetadata(const undo::OpenObject& object);
// Attributes that a command can set, and that are taken over.
bool IsOfTheCommand(std::string_view xattr);
// A descriptor that reads the content of a file of the stage, whatever its mode.
Result<Fd> OpenStagedFile(const undo::OpenObject& object);

}  // namespace sandglass::session

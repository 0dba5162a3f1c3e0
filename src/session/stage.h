// Stage: the folders of an overlay on top of a project. A command that runs in it sees the project and changes only the stage; what
// it did is then read from there (stage_scan.h) and applied (stage_apply.h), or goes with the stage.
//
//   TRY_ASSIGN(Stage stage, Stage::Make(project, {state + "/stages", ...}));
//   ... run with stage.upper() and stage.work() ...
//   TRY_ASSIGN(auto changes, ScanStage(stage));
//
// The folders are removed with the object, unless they are kept. Those of a process that died are removed by the next Make in the
// same place. Movable handle; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::session {

class Stage {
 public:
  // In the first of these folders, which are made if need be, that can be the upper layer of an overlay. kUnsupported: none can.
  static Result<Stage> Make(const std::string& project, const std::vector<std::string>& places);
  Stage(Stage&& other) noexcept = default;
  Stage& operator=(Stage&&) = delete;
  ~Stage();

  const std::string& project() const { return project_; }
  const std::string& folder() const { return folder_; }
  std::string upper() const { return folder_ + "/upper"; }
  std::string work() const { return folder_ + "/work"; }
  // What changed in the project after this was changed by somebody else.
  int64_t started_ns() const { return started_ns_; }

  // It stays, under a name that nobody cleans up; that of its upper folder.
  Result<std::string> Keep();

 private:
  Stage() = default;
  static Result<Stage> MakeIn(const std::string& project, const std::string& place);
  Status Prepare();

  std::string project_, folder_;
  Fd lock_;  // while it is held the stage is in use; invalid: nothing is to be removed
  int64_t started_ns_ = 0;
};

}  // namespace sandglass::session

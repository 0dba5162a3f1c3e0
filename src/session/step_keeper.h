// StepKeeper: the step of what runs now, in all projects at once and under one id. It begins with its first change: until then it
// stands in nobody's way. One thread.
#pragma once

#include <string>
#include <vector>

#include "session/parts.h"

namespace sandglass::session {

class StepKeeper {
 public:
  explicit StepKeeper(Session::Parts& parts) : parts_(parts) {}

  // One that no project has used.
  StepId NextId() const;
  Status Open(StepId id, const std::string& label, undo::IfUnchanged if_unchanged);
  // In all projects, whatever fails in one of them; the first failure is returned. Without a step nothing happens.
  Result<std::vector<ProjectStep>> Close();

  bool has_step() const;
  // Something was changed in it.
  bool has_begun() const;

 private:
  Result<ProjectStep> CloseIn(size_t project);

  Session::Parts& parts_;
  StepId id_{0};
};

}  // namespace sandglass::session

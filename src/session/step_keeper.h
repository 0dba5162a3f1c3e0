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
  Result<StepId> NextId() const;
  Status Open(StepId id, const std::string& label, undo::IfUnchanged if_unchanged);
  // In all projects. Returns what people should know of it. Without a step nothing happens.
  Result<std::vector<std::string>> Close(EmptyEntry empty_entry = EmptyEntry::kBeforeTheAnswer);
  // What the step that was closed last did.
  Result<std::vector<ProjectStep>> Changes() const;
  // Leaves it open, as if the bridge had been killed: the next start takes it back, and redo brings it again.
  void Abandon() { has_step_ = false; }

  // Of the step that was closed last.
  undo::Protection protection() const { return protection_; }
  const std::string& label() const { return label_; }
  // Something was changed in it.
  bool has_begun() const;

 private:
  Session::Parts& parts_;
  StepId id_{0};
  bool has_step_ = false;
  bool changed_ = true;  // what was closed last, something
  undo::Protection protection_ = undo::Protection::kFull;
  std::string label_;
};

}  // namespace sandglass::session

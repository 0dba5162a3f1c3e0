// How a rename begins: the operation with two names, two folders and up to two objects.
#pragma once

#include <optional>
#include <string>

#include "undo/attempt.h"

namespace sandglass::undo {

// A rename on its way, in the order of its steps.
class Renaming {
 public:
  Renaming(LogCore& log, Attempt& attempt, const NameRef& from, const NameRef& to, RenameMode mode)
      : log_(log), attempt_(attempt), from_(from), to_(to), mode_(mode) {}

  // Enters the step and finds out who has the two names. Their folders are held from here on.
  Status Look();
  // nullopt: it is to be recorded.
  std::optional<Result<Ticket>> Shortcut();
  Status HoldAndAsk();
  Status KeepBoth();
  Status Intend();
  Ticket Finish();

 private:
  // Renaming a folder moves every path below it, so nothing else may be under way.
  Result<bool> LooksLikeFolder() const;
  bool LeavesOut() const;
  bool replaces() const { return target_ && mode_ == RenameMode::kReplace; }

  LogCore& log_;
  Attempt& attempt_;
  const NameRef &from_, &to_;
  const RenameMode mode_;
  bool folder_ = false;
  Attempt::Dir from_dir_, to_dir_;
  std::string from_path_, to_path_;
  OpenObject object_;
  std::optional<OpenObject> target_;
  Keep keep_;
};

}  // namespace sandglass::undo

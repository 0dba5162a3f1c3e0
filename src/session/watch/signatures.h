// Signatures: how steps and rewinds left objects, read from the store's table beside the log that owns it. Only what was added since the
// last look is read. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "undo/objects_format.h"

namespace sandglass::session {

class Signatures {
 public:
  Status CatchUp(int store_fd);

  // nullopt: no step on record has left it.
  std::optional<undo::Signature> Find(undo::ObjectId object) const;
  // Of a folder that a step changed itself: what no stat tells.
  std::optional<uint64_t> FindAttributes(undo::ObjectId object) const;
  // What the step with this uid left is in the table.
  bool IsAdopted(uint64_t step_uid) const { return content_.adopted.contains(step_uid); }

 private:
  Fd file_;
  uint64_t inode_ = 0;
  uint64_t end_ = 0;  // of what was read
  undo::ObjectsContent content_;
};

}  // namespace sandglass::session

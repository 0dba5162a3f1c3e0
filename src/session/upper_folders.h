// Folders of the host that are, or hold, the upper layer of an overlay. Who uses one has it locked, so that what a process left that
// died can be told from what is in use.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::session {

// kUnsupported: what an overlay changes cannot be kept there, and why.
Status CheckCanBeUpper(const std::string& folder);
// kBusy: somebody else uses it. kNotFound: it is gone, or another one has its name by now.
Result<Fd> LockFolder(const std::string& folder);
struct LockedFolder {
  std::string path;
  Fd lock;
};
// A new one in `place` whose name begins so.
Result<LockedFolder> MakeLockedFolder(const std::string& place, std::string_view prefix);
void RemoveFolder(const std::string& folder);
// Removes what nobody has locked of the folders in `place` whose names begin so.
void RemoveUnused(const std::string& place, std::string_view prefix);

}  // namespace sandglass::session

// The registry: which projects have a store, so that none is opened inside or around another. Where two overlap, a change would be
// recorded in one store and look like a person's edit to the other.
//
//   TRY_ASSIGN(RegistryClaim claim, RegistryClaim::Take(folder, project, log));  // refuses; nobody else can claim meanwhile
//   ... open the store ...
//   TRY(claim.Register(store));  // from here on others are refused
//
// A folder with one small file per project, and a lock file around looking and writing. An entry only counts while its project
// and its store are there, so a registry that is lost or out of date costs nothing but a refusal that could have been. A claim
// belongs to one thread.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/log.h"
#include "base/result.h"
#include "undo/state_files.h"
#include "undo/undo_log.h"

namespace sandglass::undo {

// The registry that these paths ask for; "": none.
Result<std::string> RegistryFor(const UndoPaths& paths);

class RegistryClaim {
 public:
  // kForeign: another project lies above or below; the message says which and what to do. kBusy: the lock was not to be had.
  // Entries above or below whose project or store is gone are removed. An entry that cannot be read is passed over with a
  // warning. Without a `folder` there is nothing to claim, and Register does nothing.
  static Result<RegistryClaim> Take(const std::string& folder, const std::string& project,
                                    const Logger& log);

  // Enters the project and gives the lock back. The store must be complete by now: until then the entry would count as stale.
  Status Register(const std::string& store);

 private:
  RegistryClaim() = default;
  Status CheckOthers(const Logger& log) const;

  std::string project_;  // real path
  Fd folder_, lock_;     // neither: no registry
};

// Removes the entry of a project whose store was discarded, unless it names another store. That this fails does no harm: an
// entry without a store is stale.
void ForgetProject(const std::string& folder, const std::string& project, const std::string& store);

}  // namespace sandglass::undo

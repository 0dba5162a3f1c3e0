// From --project and --store to an open store. A command that only looks at history reads beside an
// owner; one that changes the project owns the store while it runs. No command but the library's
// own users creates a store.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "session/rewind_request.h"
#include "undo/undo_log.h"

namespace sandglass::cli {

// The real path of a folder that can be looked into. kNotFound; kInvalid: it is no folder.
Result<std::string> FindProject(const std::string& given);
// Where --store and --undo-dir, or else the library, put the store of this project, which is a real path.
Result<undo::UndoPaths> PathsOf(const Arguments& arguments, const std::string& project);
// The project that is meant: the one that was named, else the nearest at or above the current folder that has a store, else the
// current folder. Errors as of FindProject.
Result<undo::UndoPaths> FindPaths(const Arguments& arguments);
// A path that someone typed, from the project's root: an absolute one must lie in it, another one is meant from the current folder if
// that lies in the project, else from the project. It need not exist. kOutsideRoot.
Result<std::string> PathInProject(const std::string& project, const std::string& given);
// What belongs to this project in a folder of many.
std::string FolderNameFor(const std::string& project);
// An empty folder is none yet; one that cannot be looked at counts, so that opening it says why.
bool StoreExists(const undo::UndoPaths& paths);

// Where no store exists: a sentence on which project or store may be meant, or "". A project that was moved, or a folder inside one.
std::string WhereElse(const undo::UndoPaths& paths);

// The same, where there is a store. kNotFound: no such project, or nothing was ever recorded for it.
Result<undo::UndoPaths> FindExistingStore(const Arguments& arguments);
// Errors as above.
Result<undo::StoreReader> OpenReader(const Arguments& arguments);
// Also recovers, once the world of a session that was killed is gone. `tell` hears how far its rewinds are, and lives as long as the
// log.
Result<std::unique_ptr<undo::UndoLog>> OpenLogSilently(const undo::UndoPaths& paths,
                                                       const Console& console,
                                                       const session::TellProgress& tell = {});
// The same, and notes on the console what recovery did.
Result<std::unique_ptr<undo::UndoLog>> OpenLog(const undo::UndoPaths& paths, const Console& console,
                                               const session::TellProgress& tell = {});
// A refusal because a store is locked names the process that holds the lock, which works for a session: people know the session. Any
// other error as it is.
Error NamingTheSession(const Error& error, const std::string& store);
// Notes what opening a store did, if it had anything to do.
void TellRecovery(const undo::RecoveryReport& recovery, const Console& console);

// kNotFound: the history has no such step.
Result<undo::StepInfo> FindStep(const undo::StoreReader& reader, StepId step);

}  // namespace sandglass::cli

// The world of a session that was killed. It ends by itself, but one that may use little of the machine's time can take a while, and
// one whose first process was stopped does not end at all. As long as one of its processes lives, it may write to files that it has
// open, so nobody may recover the project before. Each store of a session holds a note that says which world that is. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace sandglass::session {

inline constexpr char kWorldNote[] = "world";

// Before commands run: this process has a world with that first process.
Status NoteWorld(const std::string& store, pid_t init);
// The world is gone: ours, or one that was ended. A file of that name that is no such note stays.
void ForgetWorld(const std::string& store);

// The session that has a world on this store now; nullopt: none lives, or nothing tells.
std::optional<pid_t> LivingSession(const std::string& store);

// Ends the world of a session that is gone, and waits for the end of its last process. Leaves that of a session that lives alone: the
// store's lock keeps others out. kBusy: it does not end.
Status EndFormerWorld(const std::string& store);

}  // namespace sandglass::session

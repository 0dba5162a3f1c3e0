// A second lock on writing, between clone and exec: nothing here allocates.
//
// A command holds descriptors that the bridge handed out; they lie on a mount that can be written to. Through /proc/self/fd it could
// open such a file anew, and where a call is continued by the bridge it could swap its path for that at the last moment. So the
// kernel is told (Landlock) that files may be opened for writing, and cut, only in the world's own places: the bridge's mount is in
// none of them. What is mounted within one counts as a part of it; there the read-only mount is the only lock.
#pragma once

#include "world/local/child/plan.h"

namespace sandglass::world {

// Does the kernel's Landlock know of opening and of cutting files?
bool CanLockAllWriting();

// For this process and all that it starts, for good; no_new_privs must be set. 0 or an errno; 0 also where the kernel has no
// Landlock, or one from before 5.19: then the read-only mount is the only lock. Before 6.2 it does not know of cutting files.
int AllowWritingOnlyInOwnPlaces(const ChildPlan& plan);

}  // namespace sandglass::world

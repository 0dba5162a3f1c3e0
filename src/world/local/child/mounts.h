// Building the world's tree of mounts. Between clone and exec: nothing here allocates. Results are errno values, 0 on success; the
// functions that make descriptors return -1 and set errno.
//
// Every tree is made detached, gets its attributes, and only then becomes visible, so that no moment exists in which something is
// there that should not be.
#pragma once

#include "world/local/child/plan.h"

namespace sandglass::world {

// Detaches a copy of what the host has there, before anything covers it.
int TakeHostTree(MountEntry& entry);
// The same for a stage, which is made of the host's folders.
int TakeStage(MountEntry& entry);
// The host's whole tree, read-only, becomes a mount on top of "/"; its descriptor.
int MountRoot();
// Where entries are mounted.
struct NewRoot {
  int root = -1;
  int empty = -1;  // the first kEmpty that was mounted, of which the others are copies
};
// Mounts one entry below the root.
int MountBelow(NewRoot& at, MountEntry& entry);
int Seal(MountEntry& entry);
// The links of /dev that programs expect.
int LinkDevices(int root);
// `root` becomes "/", and what was there before is gone.
int EnterRoot(int root);

}  // namespace sandglass::world

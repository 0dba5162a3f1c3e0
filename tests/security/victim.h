// A victim tries one known escape and tells by its exit code how it went. It is linked statically and knows nothing of Sandglass.
#pragma once

#include <string>

namespace sandglass::victim {

enum class Ended : int { kEscaped = 0, kRefused = 1, kUnknownVictim = 2, kCannotBeTried = 77 };

// What a victim is told of the place that it wants to leave: `victim NAME TARGET NUMBER`.
struct Task {
  std::string target;  // a path or a name
  int number = 0;      // a process, or how often
};

using Victim = Ended (*)(const Task&);

// Prints why; errno is what the kernel said.
Ended Judge(bool escaped);

// victim_kernel.cc: mounts, namespaces, other processes, keys, terminals.
Ended Remount(const Task&);
Ended Unmount(const Task&);
Ended NewMountInterface(const Task&);
Ended NewUserNamespace(const Task&);
Ended OpenByHandle(const Task&);
Ended StealDescriptor(const Task&);
Ended StealDescriptorOfParent(const Task&);
Ended Trace(const Task&);
Ended WriteMemory(const Task&);
Ended Signal(const Task&);
Ended Keyring(const Task&);
Ended TypeIntoTerminal(const Task&);
Ended IoUring(const Task&);

// victim_files.cc: files, descriptors, sockets.
Ended OpenForWriting(const Task&);
Ended WriteThroughSymlink(const Task&);
Ended RootOfProcess(const Task&);
Ended UseInheritedDescriptor(const Task&);
Ended RelinkKeptInode(const Task&);
Ended LinkFromOutside(const Task&);
Ended WriteToFifo(const Task&);
Ended ConnectTo(const Task&);
Ended ConnectToAbstract(const Task&);
Ended SendDatagram(const Task&);

// victim_races.cc: a second thread swaps the path while the call is judged.
Ended SwapIntoProject(const Task&);
Ended SwapChmod(const Task&);
Ended SwapOpen(const Task&);

}  // namespace sandglass::victim

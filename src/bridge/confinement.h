// What the bridge process gives up before it reads the first byte of a command's making.
//
// It may change files (which ones, only its code decides: see docs/decisions), read the memory and descriptors of the world's
// processes, and start threads. It cannot execute a program, start a process, reach a network, end or trace a process, mount,
// load code into the kernel, or gain a right.
#pragma once

#include <span>

#include "base/result.h"
#include "bridge/supervise/syscall_table.h"

namespace sandglass::bridge {

// For this process and for good; while it has one thread. What cannot be given up is an error.
Status ConfineBridge();

// The calls that are refused, for tests.
std::span<const SyscallRule> RefusedOfBridge();

}  // namespace sandglass::bridge

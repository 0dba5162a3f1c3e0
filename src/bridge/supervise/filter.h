// The seccomp program made from the system call table, and its installation. Pure but for InstallFilter.
#pragma once

#include <linux/filter.h>

#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "bridge/supervise/syscall_table.h"

namespace sandglass::bridge {

// Order: interface, x32, then the rows of the table. The kernel remembers which numbers are always allowed, so only calls
// in the table walk it.
std::vector<sock_filter> BuildFilter();

// A program that answers the rows of another table with their errors and lets everything else pass; for processes of this
// machine's own interface only.
std::vector<sock_filter> BuildRefusals(std::span<const SyscallRule> rules);

// In the process that is to be supervised, while it has one thread: sets no_new_privs, installs the program and returns the listener.
// Allocates nothing, so that it may run between fork and exec. -1 with errno: EBUSY when a listener exists already,
// EINVAL on a kernel without WAIT_KILLABLE_RECV (before 5.19).
int InstallFilter(std::span<const sock_filter> program);

}  // namespace sandglass::bridge

// Opening what lies beneath a root directory, and nothing else: the kernel resolves the path with
// openat2() and refuses every way out (`..`, absolute paths, symlinks, magic links, other mounts),
// so no race with a rename can lead elsewhere. Needs Linux 5.6. Free functions, any thread; they
// block as open() does.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass {

// Opens `rel_path` ("" is the root itself) with open()'s `flags`; O_CLOEXEC is always added. `mode`
// counts only with O_CREAT or O_TMPFILE. Paths longer than PATH_MAX work. A symlink in last place
// can be opened with O_PATH | O_NOFOLLOW, as an object of its own.
// kOutsideRoot: the path leaves the root, or a symlink or a mount point is in the way (sys_errno
// EXDEV or ELOOP).
// kInvalid: a NUL byte or a name too long. Others as the kernel says, e.g. kNotFound, kDenied.
Result<Fd> OpenBeneath(int root_fd, std::string_view rel_path, int flags, mode_t mode = 0);

// The directory at `rel_path` as a handle for *at() calls (O_PATH: no permission on the directory
// itself is needed).
Result<Fd> OpenDirBeneath(int root_fd, std::string_view rel_path);

}  // namespace sandglass

// What the projects of one session must be to each other, and what they may stand on.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "session/session.h"

namespace sandglass::session {

// Does the path, with all its symlinks followed as far as there is something, lie in the folder, which has none? What cannot be told
// counts as a yes.
bool LeadsInto(const std::string& path, const std::string& folder);
// kInvalid: too few or too many, two of them overlap, or the store of one lies in another, where commands could reach it.
// kDenied: one is too broad. kUnsupported: one is to be changed, and its file system is read-only or another machine's.
Status CheckProjects(const SessionOptions& options);

// The name of a file system that other machines may change as well, so that their changes could not be told from a command's; "": it is
// none that we know. `magic` is statfs's f_type, `type` is as mountinfo has it, and matters to FUSE alone.
std::string_view NetworkFileSystem(uint64_t magic, std::string_view type);

}  // namespace sandglass::session

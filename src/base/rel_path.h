// Paths beneath a root, as text: normal form and the few questions asked about it. Pure functions,
// no I/O, any thread.
//
// A normalised path has no leading or trailing slash, no empty, `.` or `..` component; "" is the
// root itself. Names are bytes: newlines and invalid UTF-8 are allowed. A path may be longer than
// PATH_MAX. Whether a path stays beneath its root on disk is not decided here, where no symlink can
// be seen, but by base/beneath.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sandglass {

inline constexpr size_t kMaxNameBytes = 255;  // NAME_MAX of every file system that we support

// The normal form of a path that someone gave us.
// kOutsideRoot: absolute, or has a `..` component (even one that would cancel out: behind a symlink
// it need not).
// kInvalid: holds a NUL byte, or a component of more than kMaxNameBytes.
Result<std::string> NormalizeRelPath(std::string_view raw);

// Is it one component that names something: not empty, not `.` or `..`, no slash, no NUL, not too long?
bool IsName(std::string_view name);
// Is it in the normal form?
bool IsNormalRelPath(std::string_view path);

// The functions below expect normalised paths; the views that they return point into their
// argument.

// `name` inside `dir`.
std::string JoinPath(std::string_view dir, std::string_view name);
// "a/b" for "a/b/c", "" for "a" and for the root.
std::string_view ParentOf(std::string_view path);
// "c" for "a/b/c", "" for the root.
std::string_view BaseName(std::string_view path);
// Is `path` the directory `dir` or below it? Component-wise: "ab" is not beneath "a". Everything is
// beneath "".
bool IsBeneath(std::string_view path, std::string_view dir);
// The number of components: 0 for the root, 3 for "a/b/c".
size_t PathDepth(std::string_view path);

// The next two expect absolute paths without `.` and `..`; "/" holds all of them.

// What leads from the folder to `path`, "" to itself; nullopt: it lies elsewhere.
std::optional<std::string_view> PathBelow(std::string_view path, std::string_view folder);
// Is it the folder, or does it lie below?
inline bool LiesIn(std::string_view path, std::string_view folder) {
  return PathBelow(path, folder).has_value();
}

}  // namespace sandglass

#include "tests/parity/path_cases.h"

#include <sys/stat.h>

#include <climits>
#include <span>

namespace sandglass::parity {
namespace {

struct Target {
  Kind kind;
  const char* what;
  const char* path;
  Who who = Who::kCaller;
};

constexpr Target kNewNames[] = {
    {Kind::kPlain, "a new name", "new"},
    {Kind::kPlain, "a new name in a folder", "dir/new"},
    {Kind::kMissing, "in no folder", "missing/new"},
    {Kind::kMissing, "an empty path", ""},
    {Kind::kExists, "a file's name", "file"},
    {Kind::kExists, "a folder's name", "dir"},
    {Kind::kExists, "a FIFO's name", "fifo"},
    {Kind::kNotFolder, "below a file", "file/new"},
    {Kind::kSymlink, "a symlink's name", "link"},
    {Kind::kSymlink, "the name of a symlink to a folder", "dirlink"},
    {Kind::kSymlink, "below a symlink to a folder", "dirlink/new"},
    {Kind::kSymlink, "below a symlink to a file", "link/new"},
    {Kind::kSymlink, "below a loop of symlinks", "loop1/new"},
    {Kind::kDangling, "the name of a dangling symlink", "dangling"},
    {Kind::kDangling, "below a dangling symlink", "dangling/new"},
    {Kind::kSlash, "a new name with a slash", "new/"},
    {Kind::kSlash, "a file's name with a slash", "file/"},
    {Kind::kSlash, "a folder's name with slashes", "dir//"},
    {Kind::kSlash, "a dangling symlink with a slash", "dangling/"},
    {Kind::kSlash, "slashes in between", "dir///new"},
    {Kind::kDots, "dot", "."},
    {Kind::kDots, "dot dot", ".."},
    {Kind::kDots, "dots on the way", "dir/../dir/./new"},
    {Kind::kDots, "dot dot from a symlink", "dirlink/../new"},
    {Kind::kDots, "an absolute path", "ABS/new"},
    {Kind::kDots, "the root folder", "/"},
    {Kind::kTooLong, "a name too long", "LONG"},
    {Kind::kTooLong, "a path too long", "HUGE"},
    {Kind::kBadArgument, "an address without memory", "BAD"},
    {Kind::kRights, "in a folder without write permission", "locked/new", Who::kOther},
    {Kind::kRights, "in a folder without search permission", "closed/new", Who::kOther},
    {Kind::kRights, "in somebody's folder", "dir/new", Who::kOther},
    {Kind::kRights, "in a sticky folder", "sticky/new", Who::kOther},
    {Kind::kRights, "somebody's name in a sticky folder", "sticky/kept", Who::kOther},
    {Kind::kSetGid, "in a set-group-id folder", "setgid/new"},
    {Kind::kSetGid, "in another group's set-group-id folder", "setgid/new", Who::kOther},
    {Kind::kOtherPlace, "in no folder out of the project", "/proc/no-such-folder/new"},
};

constexpr Target kExisting[] = {
    {Kind::kPlain, "a file", "file"},
    {Kind::kPlain, "a file in a folder", "dir/inner"},
    {Kind::kPlain, "a file with two names", "hard"},
    {Kind::kMissing, "no file", "missing"},
    {Kind::kMissing, "in no folder", "missing/file"},
    {Kind::kMissing, "an empty path", ""},
    {Kind::kNotFolder, "below a file", "file/x"},
    {Kind::kFolder, "a folder", "dir"},
    {Kind::kFolder, "an empty folder", "empty"},
    {Kind::kSymlink, "a symlink", "link"},
    {Kind::kSymlink, "a symlink to a folder", "dirlink"},
    {Kind::kSymlink, "below a symlink to a folder", "dirlink/inner"},
    {Kind::kSymlink, "a loop of symlinks", "loop1"},
    {Kind::kSymlink, "below a loop of symlinks", "loop1/x"},
    {Kind::kSymlink, "an absolute symlink", "abslink"},
    {Kind::kDangling, "a dangling symlink", "dangling"},
    {Kind::kSlash, "a file with a slash", "file/"},
    {Kind::kSlash, "a folder with a slash", "empty/"},
    {Kind::kSlash, "a symlink to a file with a slash", "link/"},
    {Kind::kSlash, "a symlink to a folder with a slash", "dirlink/"},
    {Kind::kDots, "dot", "."},
    {Kind::kDots, "dot dot of a folder", "empty/.."},
    {Kind::kDots, "dot of a folder", "empty/."},
    {Kind::kDots, "dots on the way", "dir/../dir/./inner"},
    {Kind::kDots, "an absolute path", "ABS/file"},
    {Kind::kTooLong, "a name too long", "LONG"},
    {Kind::kTooLong, "a path too long", "HUGE"},
    {Kind::kBadArgument, "an address without memory", "BAD"},
    {Kind::kDescriptor, "the path of a descriptor", "FD:file"},
    {Kind::kDescriptor, "the path of a folder's descriptor", "FD:dir"},
    {Kind::kDescriptor, "below the path of a descriptor", "FD:dir|/inner"},
    {Kind::kDescriptor, "the path of a descriptor that is not open", "/proc/self/fd/99"},
    {Kind::kRights, "somebody's file", "file", Who::kOther},
    {Kind::kRights, "a read-only file", "readonly"},
    {Kind::kRights, "somebody's read-only file", "readonly", Who::kOther},
    {Kind::kRights, "somebody's file that all may write", "shared", Who::kOther},
    {Kind::kRights, "in a folder without write permission", "locked/inside", Who::kOther},
    {Kind::kRights, "in a folder without search permission", "closed/inside", Who::kOther},
    {Kind::kRights, "somebody's file in a sticky folder", "sticky/kept", Who::kOther},
    {Kind::kSetGid, "a set-group-id folder", "setgid"},
    {Kind::kOtherObject, "a FIFO", "fifo"},
    {Kind::kOtherPlace, "a file out of the project", "/proc/self/status"},
    {Kind::kOtherPlace, "no file out of the project", "/proc/no-such-file"},
};

struct Start {
  const char* what;
  const char* folder;  // what the descriptor is open on; null: none is
  int flags;
  const char* prefix;  // before the name
};
constexpr Start kStarts[] = {
    {"from a folder's descriptor", "dir", O_RDONLY | O_DIRECTORY, ""},
    {"from a descriptor that is only a path", "dir", O_PATH, ""},
    {"up from a folder's descriptor", "empty", O_RDONLY | O_DIRECTORY, "../dir/"},
    {"from a file's descriptor", "file", O_RDONLY, ""},
    {"from a descriptor that is not open", nullptr, 0, ""},
    {"an absolute path and no descriptor", nullptr, 0, "ABS/dir/"},
    {"an absolute path and a file's descriptor", "file", O_RDONLY, "ABS/dir/"},
    {"from a symlink's descriptor", "dirlink", O_PATH | O_NOFOLLOW, ""},
    {"from a folder out of the project", "/proc", O_RDONLY | O_DIRECTORY, "no-such-folder/"},
};

void AddTargets(Cases& cases, std::span<const Target> targets, const std::string& call,
                const AtCall& act, const std::string& prefix) {
  for (const Target& target : targets) {
    cases.push_back({.call = call,
                     .kind = target.kind,
                     .what = prefix + target.what + (target.who == Who::kOther ? " (other)" : ""),
                     .act =
                         [act, path = std::string(target.path)] {
                           const StagePath expanded(path);
                           return act(AT_FDCWD, expanded.get());
                         },
                     .who = target.who});
  }
}

void AddStarts(Cases& cases, const std::string& call, const AtCall& act, const std::string& prefix,
               const std::string& name) {
  for (const Start& start : kStarts) {
    cases.push_back({.call = call,
                     .kind = Kind::kDirfd,
                     .what = prefix + start.what,
                     .act = [act, start, name] {
                       const int dirfd =
                           start.folder == nullptr ? 99 : ::open(start.folder, start.flags);
                       const StagePath path(start.prefix + name);
                       return act(dirfd, path.get());
                     }});
  }
}

}  // namespace

StagePath::StagePath(std::string_view pattern) : text_(pattern) {
  if (pattern == "BAD") bad_ = true;
  if (pattern == "LONG") text_ = std::string(NAME_MAX + 1, 'n');
  if (pattern == "HUGE")
    for (text_ = "dir"; text_.size() < PATH_MAX;) text_ += "/../dir";
  if (pattern.starts_with("ABS/")) {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) != nullptr) text_ = std::string(here) + text_.substr(3);
  }
  if (pattern.starts_with("FD:")) {
    const size_t bar = text_.find('|');
    const int fd = ::open(text_.substr(3, bar - 3).c_str(), O_RDONLY);
    const std::string rest = bar == std::string::npos ? "" : text_.substr(bar + 1);
    text_ = "/proc/self/fd/" + std::to_string(fd) + rest;
  }
}

const char* StagePath::get() const {
  // The kernel hands out nothing below its first page.
  return bad_ ? reinterpret_cast<const char*>(16) : text_.c_str();
}

void AddNewNameCases(Cases& cases, const std::string& call, TakesDirfd takes, const AtCall& act,
                     const std::string& prefix) {
  AddTargets(cases, kNewNames, call, act, prefix);
  if (takes == TakesDirfd::kYes) AddStarts(cases, call, act, prefix, "new");
}

void AddExistingCases(Cases& cases, const std::string& call, TakesDirfd takes, const AtCall& act,
                      const std::string& prefix) {
  AddTargets(cases, kExisting, call, act, prefix);
  if (takes == TakesDirfd::kYes) AddStarts(cases, call, act, prefix, "inner");
}

void AddDescriptorCases(Cases& cases, const std::string& call,
                        const std::function<long(int fd)>& act, const std::string& prefix) {
  const auto add = [&](Kind kind, const char* what, const std::function<int()>& open,
                       Who who = Who::kCaller) {
    cases.push_back({call, kind, prefix + what, [act, open] { return act(open()); }, who});
  };
  const auto opened = [](const char* path, int flags) {
    return [path, flags] { return ::open(path, flags); };
  };
  const auto unlinked = [](int flags) {
    return [flags] {
      const int fd = ::open("other", flags);
      ::unlink("other");
      return fd;
    };
  };
  add(Kind::kPlain, "open for reading", opened("file", O_RDONLY));
  add(Kind::kPlain, "open for writing", opened("file", O_WRONLY));
  add(Kind::kPlain, "open for both", opened("file", O_RDWR));
  add(Kind::kFlags, "open for appending", opened("file", O_RDWR | O_APPEND));
  add(Kind::kDescriptor, "only a path", opened("file", O_PATH));
  add(Kind::kDescriptor, "a symlink as a path", opened("link", O_PATH | O_NOFOLLOW));
  add(Kind::kDescriptor, "not open", [] { return 99; });
  add(Kind::kDescriptor, "negative", [] { return -1; });
  add(Kind::kFolder, "a folder", opened("dir", O_RDONLY));
  add(Kind::kMissing, "unlinked and open for reading", unlinked(O_RDONLY));
  add(Kind::kMissing, "unlinked and open for both", unlinked(O_RDWR));
  add(Kind::kMissing, "renamed since it was opened", [] {
    const int fd = ::open("file", O_RDWR);
    ::rename("file", "dir/renamed");
    return fd;
  });
  add(Kind::kMissing, "without a name", opened(".", O_TMPFILE | O_RDWR));
  add(Kind::kRights, "somebody's file", opened("file", O_RDONLY), Who::kOther);
  add(Kind::kRights, "somebody's file that all may write", opened("shared", O_RDWR), Who::kOther);
  add(Kind::kRights, "a read-only file", opened("readonly", O_RDONLY));
  add(Kind::kOtherObject, "a FIFO", opened("fifo", O_RDWR));
  add(Kind::kOtherObject, "a pipe", [] {
    int ends[2] = {-1, -1};
    return ::pipe(ends) == 0 ? ends[1] : -1;
  });
  add(Kind::kOtherPlace, "a file out of the project", opened("/proc/self/status", O_RDONLY));
}

}  // namespace sandglass::parity

// Calls with two names.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

// On another file system than most projects.
long WithElsewhere(const std::function<long(const char* path)>& act) {
  const std::string path = "/dev/shm/sandglass-parity-" + std::to_string(::getpid());
  ::close(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
  const long result = act(path.c_str());
  ::unlink(path.c_str());
  return result;
}

void AddRenamePairs(Cases& cases) {
  struct Pair {
    Kind kind;
    const char *from, *to;
    Who who = Who::kCaller;
  };
  constexpr Pair kPairs[] = {
      {Kind::kExists, "file", "other"},
      {Kind::kExists, "file", "hard"},
      {Kind::kExists, "file", "file"},
      {Kind::kFolder, "file", "empty"},
      {Kind::kFolder, "empty", "file"},
      {Kind::kFolder, "dir", "empty"},
      {Kind::kFolder, "empty", "dir"},
      {Kind::kFolder, "dir", "dir/below"},
      {Kind::kFolder, "dir", "dir"},
      {Kind::kFolder, "dir/inner", "dir"},
      {Kind::kFolder, "dir", "empty/moved"},
      {Kind::kSymlink, "link", "other"},
      {Kind::kSymlink, "file", "link"},
      {Kind::kSymlink, "dir", "dirlink"},
      {Kind::kSlash, "empty/", "new/"},
      {Kind::kSlash, "file", "new/"},
      {Kind::kSlash, "dir/", "empty/"},
      {Kind::kDots, ".", "new"},
      {Kind::kDots, "dir/..", "new"},
      {Kind::kDots, "file", "dir/.."},
      {Kind::kOtherObject, "fifo", "other"},
      {Kind::kRights, "sticky/kept", "sticky/new", Who::kOther},
      {Kind::kRights, "shared", "sticky/kept", Who::kOther},
      {Kind::kRights, "shared", "dir/inner", Who::kOther},
      {Kind::kRights, "locked/inside", "new", Who::kOther},
      {Kind::kRights, "empty", "sticky/new", Who::kOther},
      {Kind::kOtherPlace, "file", "/proc/self/status"},
  };
  for (const Pair& pair : kPairs) {
    cases.push_back({"rename", pair.kind, std::string(pair.from) + " to " + pair.to,
                     [pair] { return Sys(SYS_rename, pair.from, pair.to); }, pair.who});
  }
  cases.push_back({"rename", Kind::kOtherPlace, "to another file system", [] {
                     return WithElsewhere(
                         [](const char* path) { return Sys(SYS_rename, "file", path); });
                   }});
  cases.push_back({"rename", Kind::kOtherPlace, "from another file system", [] {
                     return WithElsewhere(
                         [](const char* path) { return Sys(SYS_rename, path, "new"); });
                   }});
}

void AddRenameFlags(Cases& cases) {
  struct Flagged {
    const char* what;
    unsigned flags;
  };
  constexpr Flagged kFlags[] = {
      {"RENAME_NOREPLACE", RENAME_NOREPLACE},
      {"RENAME_EXCHANGE", RENAME_EXCHANGE},
      {"RENAME_WHITEOUT", RENAME_WHITEOUT},
      {"RENAME_NOREPLACE|EXCHANGE", RENAME_NOREPLACE | RENAME_EXCHANGE},
      {"no such flag", 0x80},
  };
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"file", "new"},   {"file", "other"}, {"file", "dir"},     {"dir", "dir/inner"},
      {"file", "hard"},  {"link", "dir"},   {"missing", "file"}, {"file", "missing/new"},
      {"empty", "new/"}, {"file", "link"},  {"dir", "locked"},   {"file", "file"}};
  for (const Flagged& flagged : kFlags) {
    for (const auto& [from, to] : kNames) {
      cases.push_back({"renameat2", Kind::kFlags,
                       std::string(flagged.what) + ", " + from + " to " + to, [flagged, from, to] {
                         return Sys(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flagged.flags);
                       }});
    }
  }
}

void AddRename(Cases& cases) {
  AddExistingCases(
      cases, "rename", TakesDirfd::kNo,
      [](int, const char* path) { return Sys(SYS_rename, path, "new"); }, "from ");
  AddNewNameCases(
      cases, "rename", TakesDirfd::kNo,
      [](int, const char* path) { return Sys(SYS_rename, "file", path); }, "a file to ");
  AddNewNameCases(
      cases, "rename", TakesDirfd::kNo,
      [](int, const char* path) { return Sys(SYS_rename, "empty", path); }, "a folder to ");
  AddExistingCases(
      cases, "renameat", TakesDirfd::kYes,
      [](int dirfd, const char* path) { return Sys(SYS_renameat, dirfd, path, AT_FDCWD, "new"); },
      "from ");
  AddNewNameCases(
      cases, "renameat", TakesDirfd::kYes,
      [](int dirfd, const char* path) { return Sys(SYS_renameat, AT_FDCWD, "file", dirfd, path); },
      "to ");
  AddNewNameCases(
      cases, "renameat2", TakesDirfd::kYes,
      [](int dirfd, const char* path) {
        return Sys(SYS_renameat2, AT_FDCWD, "file", dirfd, path, RENAME_NOREPLACE);
      },
      "RENAME_NOREPLACE to ");
  AddExistingCases(
      cases, "renameat2", TakesDirfd::kYes,
      [](int dirfd, const char* path) {
        return Sys(SYS_renameat2, dirfd, path, AT_FDCWD, "shared", RENAME_EXCHANGE);
      },
      "RENAME_EXCHANGE with ");
  AddRenamePairs(cases);
  AddRenameFlags(cases);
}

void AddLinkatForms(Cases& cases) {
  const auto add = [&](Kind kind, const char* what, const std::function<long()>& act,
                       Who who = Who::kCaller) {
    cases.push_back({"linkat", kind, what, act, who});
  };
  const auto from_fd = [](const char* path, int open_flags) {
    return [path, open_flags] {
      const int fd = ::open(path, open_flags, 0644);
      return Sys(SYS_linkat, fd, "", AT_FDCWD, "new", AT_EMPTY_PATH);
    };
  };
  const auto from_proc = [](const char* path, int open_flags, int flags) {
    return [path, open_flags, flags] {
      const std::string link = "/proc/self/fd/" + std::to_string(::open(path, open_flags, 0644));
      return Sys(SYS_linkat, AT_FDCWD, link.c_str(), AT_FDCWD, "new", flags);
    };
  };
  add(Kind::kDescriptor, "an empty path, read", from_fd("file", O_RDONLY));
  add(Kind::kDescriptor, "an empty path, written", from_fd("file", O_RDWR));
  add(Kind::kDescriptor, "an empty path, only a path", from_fd("file", O_PATH));
  add(Kind::kDescriptor, "an empty path, a symlink", from_fd("link", O_PATH | O_NOFOLLOW));
  add(Kind::kDescriptor, "an empty path, a folder", from_fd("dir", O_RDONLY));
  add(Kind::kDescriptor, "an empty path, not open", from_fd("missing", O_RDONLY));
  add(Kind::kDescriptor, "an empty path, without a name", from_fd(".", O_TMPFILE | O_RDWR));
  add(Kind::kDescriptor, "an empty path, never to have a name",
      from_fd(".", O_TMPFILE | O_RDWR | O_EXCL));
  add(Kind::kDescriptor, "the path of a descriptor without a name",
      from_proc(".", O_TMPFILE | O_RDWR, AT_SYMLINK_FOLLOW));
  add(Kind::kDescriptor, "the path of a descriptor",
      from_proc("file", O_RDONLY, AT_SYMLINK_FOLLOW));
  add(Kind::kDescriptor, "the path of a descriptor itself", from_proc("file", O_RDONLY, 0));
  add(Kind::kMissing, "an empty path, unlinked", [] {
    const int fd = ::open("other", O_RDWR);
    ::unlink("other");
    return Sys(SYS_linkat, fd, "", AT_FDCWD, "new", AT_EMPTY_PATH);
  });
  for (const char* from : {"link", "dirlink", "dangling", "loop1", "abslink"})
    cases.push_back({"linkat", Kind::kSymlink, std::string("AT_SYMLINK_FOLLOW, ") + from, [from] {
                       return Sys(SYS_linkat, AT_FDCWD, from, AT_FDCWD, "new", AT_SYMLINK_FOLLOW);
                     }});
  add(Kind::kBadArgument, "no such flag",
      [] { return Sys(SYS_linkat, AT_FDCWD, "file", AT_FDCWD, "new", 0x40000); });
  add(Kind::kOtherPlace, "from another file system", [] {
    return WithElsewhere(
        [](const char* path) { return Sys(SYS_linkat, AT_FDCWD, path, AT_FDCWD, "new", 0); });
  });
  add(Kind::kOtherPlace, "to another file system", [] {
    return WithElsewhere([](const char* path) {
      ::unlink(path);
      return Sys(SYS_linkat, AT_FDCWD, "file", AT_FDCWD, path, 0);
    });
  });
}

void AddLink(Cases& cases) {
  AddExistingCases(
      cases, "link", TakesDirfd::kNo,
      [](int, const char* path) { return Sys(SYS_link, path, "new"); }, "from ");
  AddNewNameCases(
      cases, "link", TakesDirfd::kNo,
      [](int, const char* path) { return Sys(SYS_link, "file", path); }, "to ");
  AddExistingCases(
      cases, "linkat", TakesDirfd::kYes,
      [](int dirfd, const char* path) { return Sys(SYS_linkat, dirfd, path, AT_FDCWD, "new", 0); },
      "from ");
  AddNewNameCases(
      cases, "linkat", TakesDirfd::kYes,
      [](int dirfd, const char* path) { return Sys(SYS_linkat, AT_FDCWD, "file", dirfd, path, 0); },
      "to ");
  AddLinkatForms(cases);
}

}  // namespace

void AddLinkCases(Cases& cases) {
  AddRename(cases);
  AddLink(cases);
}

}  // namespace sandglass::parity

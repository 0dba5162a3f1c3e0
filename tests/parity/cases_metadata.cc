// Modes, owners, times.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include "tests/parity/path_cases.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

namespace sandglass::parity {
namespace {

// The forms of a call that takes AT_* flags. `what` names the flag.
void AddAtFlags(Cases& cases, const std::string& call,
                const std::function<long(int dirfd, const char* path, int flags)>& act) {
  AddExistingCases(
      cases, call, TakesDirfd::kNo,
      [act](int dirfd, const char* path) { return act(dirfd, path, AT_SYMLINK_NOFOLLOW); },
      "AT_SYMLINK_NOFOLLOW, ");
  const auto empty = [&](const char* what, const char* path, int open_flags,
                         Who who = Who::kCaller) {
    cases.push_back({call, Kind::kDescriptor, std::string("AT_EMPTY_PATH, ") + what,
                     [act, path, open_flags] {
                       const int fd = ::open(path, open_flags, 0600);
                       return act(fd, "", AT_EMPTY_PATH);
                     },
                     who});
  };
  empty("read", "file", O_RDONLY);
  empty("written", "file", O_RDWR);
  empty("only a path", "file", O_PATH);
  empty("a symlink", "link", O_PATH | O_NOFOLLOW);
  empty("a folder", "dir", O_RDONLY);
  empty("a path of a folder", "dir", O_PATH);
  empty("not open", "missing", O_RDONLY);
  empty("without a name", ".", O_TMPFILE | O_RDWR);
  empty("somebody's", "shared", O_PATH, Who::kOther);
  cases.push_back({call, Kind::kDescriptor, "AT_EMPTY_PATH, the working folder",
                   [act] { return act(AT_FDCWD, "", AT_EMPTY_PATH); }});
  cases.push_back({call, Kind::kFlags, "AT_EMPTY_PATH with a path",
                   [act] { return act(AT_FDCWD, "file", AT_EMPTY_PATH); }});
  cases.push_back(
      {call, Kind::kBadArgument, "no such flag", [act] { return act(AT_FDCWD, "file", 0x40000); }});
}

void AddChmod(Cases& cases) {
  // With the right to search: some of the folders are what the case itself works in.
  constexpr mode_t kMode = 0714;
  AddExistingCases(cases, "chmod", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_chmod, path, kMode); });
  AddDescriptorCases(cases, "fchmod", [](int fd) { return Sys(SYS_fchmod, fd, kMode); });
  AddExistingCases(cases, "fchmodat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_fchmodat, dirfd, path, kMode);
  });
  AddExistingCases(cases, "fchmodat2", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_fchmodat2, dirfd, path, kMode, 0);
  });
  AddAtFlags(cases, "fchmodat2", [](int dirfd, const char* path, int flags) {
    return Sys(SYS_fchmodat2, dirfd, path, kMode, flags);
  });
  for (const mode_t mode : {0u, 07777u, 04755u, 02755u, 0170644u, 0644u}) {
    for (const char* path : {"file", "dir", "setgid"}) {
      cases.push_back({"chmod", Kind::kFlags, std::string(path) + " to " + std::to_string(mode),
                       [mode, path] { return Sys(SYS_chmod, path, mode); }});
    }
  }
  cases.push_back({"chmod", Kind::kAfterwards, "set-user-id goes with a write", [] {
                     const long result = Sys(SYS_chmod, "shared", 06777);
                     const int fd = ::open("shared", O_WRONLY);
                     if (::geteuid() == 0 && ::setresuid(kOtherUser, kOtherUser, kOtherUser) != 0)
                       return -1L;
                     NoteNumber("written", static_cast<uint64_t>(::write(fd, "x", 1)));
                     return result;
                   }});
}

void AddChown(Cases& cases) {
  const auto own = [] { return std::pair(::getuid(), ::getgid()); };
  AddExistingCases(cases, "chown", TakesDirfd::kNo, [own](int, const char* path) {
    return Sys(SYS_chown, path, own().first, own().second);
  });
  AddExistingCases(cases, "lchown", TakesDirfd::kNo, [own](int, const char* path) {
    return Sys(SYS_lchown, path, own().first, own().second);
  });
  AddDescriptorCases(cases, "fchown",
                     [own](int fd) { return Sys(SYS_fchown, fd, own().first, own().second); });
  AddExistingCases(cases, "fchownat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_fchownat, dirfd, path, 55, 66, 0);
  });
  AddAtFlags(cases, "fchownat", [](int dirfd, const char* path, int flags) {
    return Sys(SYS_fchownat, dirfd, path, 55, 66, flags);
  });
  constexpr std::pair<const char*, std::pair<int, int>> kOwners[] = {
      {"nothing", {-1, -1}},
      {"only the owner", {88, -1}},
      {"only the group", {-1, 88}},
      {"to root", {0, 0}},
      {"far numbers", {4000000000u, 4000000000u}}};
  for (const auto& [what, ids] : kOwners) {
    for (const Who who : {Who::kCaller, Who::kOther}) {
      cases.push_back({"chown", Kind::kRights,
                       std::string(what) + (who == Who::kOther ? " (other)" : ""),
                       [ids] { return Sys(SYS_chown, "shared", ids.first, ids.second); }, who});
    }
  }
  cases.push_back({"chown", Kind::kAfterwards, "takes set-user-id away", [] {
                     NoteNumber("chmod", static_cast<uint64_t>(Sys(SYS_chmod, "file", 06755)));
                     return Sys(SYS_chown, "file", ::getuid(), ::getgid());
                   }});
}

void AddTimeValues(Cases& cases) {
  struct Times {
    const char* what;
    timespec access, change;
  };
  constexpr Times kTimes[] = {
      {"both set", {1111, 1}, {2222, 2}},
      {"only the access", {1111, 1}, {0, UTIME_OMIT}},
      {"only the change", {0, UTIME_OMIT}, {2222, 2}},
      {"nothing", {0, UTIME_OMIT}, {0, UTIME_OMIT}},
      {"now", {0, UTIME_NOW}, {0, UTIME_NOW}},
      {"one now, one set", {0, UTIME_NOW}, {2222, 2}},
      {"before 1970", {-5, 0}, {-5, 0}},
      {"far ahead", {4'000'000'000, 0}, {4'000'000'000, 0}},
      {"too many nanoseconds", {1111, 1'000'000'000}, {2222, 0}},
      {"negative nanoseconds", {1111, -1}, {2222, 0}},
  };
  for (const Times& times : kTimes) {
    for (const auto& [path, who] :
         {std::pair("file", Who::kCaller), std::pair("shared", Who::kOther),
          std::pair("readonly", Who::kOther)}) {
      cases.push_back({"utimensat", Kind::kFlags, std::string(times.what) + ", " + path,
                       [times, path] {
                         const timespec both[2] = {times.access, times.change};
                         return Sys(SYS_utimensat, AT_FDCWD, path, both, 0);
                       },
                       who});
    }
  }
  for (const char* path : {"shared", "readonly"})
    cases.push_back({"utimensat", Kind::kRights, std::string("no times, somebody's ") + path,
                     [path] { return Sys(SYS_utimensat, AT_FDCWD, path, nullptr, 0); },
                     Who::kOther});
}

void AddTimes(Cases& cases) {
  static constexpr timespec kTimes[2] = {{1'000'000'111, 5}, {1'000'000'222, 6}};
  static constexpr timeval kCoarse[2] = {{1'000'000'333, 7}, {1'000'000'444, 8}};
  static constexpr utimbuf kSeconds = {1'000'000'555, 1'000'000'666};
  AddExistingCases(cases, "utimensat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_utimensat, dirfd, path, kTimes, 0);
  });
  AddAtFlags(cases, "utimensat", [](int dirfd, const char* path, int flags) {
    return Sys(SYS_utimensat, dirfd, path, kTimes, flags);
  });
  AddExistingCases(cases, "utimes", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_utimes, path, kCoarse); });
  AddExistingCases(cases, "utime", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_utime, path, &kSeconds); });
  AddExistingCases(cases, "futimesat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_futimesat, dirfd, path, kCoarse);
  });
  AddDescriptorCases(
      cases, "utimensat", [](int fd) { return Sys(SYS_utimensat, fd, nullptr, kTimes, 0); },
      "no path, ");
  AddTimeValues(cases);
  cases.push_back(
      {"utime", Kind::kFlags, "no times", [] { return Sys(SYS_utime, "file", nullptr); }});
  cases.push_back(
      {"utimes", Kind::kFlags, "no times", [] { return Sys(SYS_utimes, "file", nullptr); }});
  cases.push_back({"utimes", Kind::kBadArgument, "too many microseconds", [] {
                     const timeval wrong[2] = {{1, 1'000'000}, {1, 0}};
                     return Sys(SYS_utimes, "file", wrong);
                   }});
  cases.push_back({"futimesat", Kind::kDescriptor, "no path",
                   [] { return Sys(SYS_futimesat, ::open("file", O_RDONLY), nullptr, kCoarse); }});
  cases.push_back({"utimensat", Kind::kBadArgument, "times without memory",
                   [] { return Sys(SYS_utimensat, AT_FDCWD, "file", 16, 0); }});
}

void AddInodeFlags(Cases& cases) {
  AddDescriptorCases(cases, "ioctl FS_IOC_SETFLAGS", [](int fd) {
    int flags = 0;
    if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) Note(" no flags");
    flags |= FS_NODUMP_FL;
    const long result = Sys(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
    if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) NoteNumber("nodump", flags & FS_NODUMP_FL);
    return result;
  });
  cases.push_back({"ioctl FS_IOC_SETFLAGS", Kind::kRights, "immutable without the right", [] {
                     int flags = FS_IMMUTABLE_FL;
                     return Sys(SYS_ioctl, ::open("file", O_RDONLY), FS_IOC_SETFLAGS, &flags);
                   }});
  cases.push_back({"ioctl FS_IOC_SETFLAGS", Kind::kBadArgument, "an address without memory", [] {
                     return Sys(SYS_ioctl, ::open("file", O_RDONLY), FS_IOC_SETFLAGS, nullptr);
                   }});
  AddDescriptorCases(cases, "ioctl FS_IOC_FSSETXATTR", [](int fd) {
    fsxattr attributes{};
    if (::ioctl(fd, FS_IOC_FSGETXATTR, &attributes) != 0) Note(" no attributes");
    attributes.fsx_xflags |= FS_XFLAG_NODUMP;
    return Sys(SYS_ioctl, fd, FS_IOC_FSSETXATTR, &attributes);
  });
}

}  // namespace

void AddMetadataCases(Cases& cases) {
  AddChmod(cases);
  AddChown(cases);
  AddTimes(cases);
  AddInodeFlags(cases);
}

}  // namespace sandglass::parity

// Opening for writing and creating.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

constexpr int kMode = 0640;

struct OpenFlags {
  const char* what;
  int flags;
};
// With each of them all new names and all objects are opened.
constexpr OpenFlags kFlagSets[] = {
    {"O_WRONLY", O_WRONLY},
    {"O_RDWR|O_CREAT", O_RDWR | O_CREAT},
    {"O_WRONLY|O_CREAT|O_EXCL", O_WRONLY | O_CREAT | O_EXCL},
    {"O_RDONLY|O_CREAT", O_RDONLY | O_CREAT},
    {"O_WRONLY|O_TRUNC|O_NONBLOCK", O_WRONLY | O_TRUNC | O_NONBLOCK},
    {"O_RDONLY|O_TRUNC", O_RDONLY | O_TRUNC | O_NONBLOCK},
    {"O_WRONLY|O_NOFOLLOW|O_CREAT", O_WRONLY | O_NOFOLLOW | O_CREAT | O_NONBLOCK},
};

// Opens of one name with every flag that there is.
constexpr OpenFlags kOddFlags[] = {
    {"O_APPEND", O_RDWR | O_APPEND},
    {"O_CLOEXEC", O_RDWR | O_CLOEXEC},
    {"O_SYNC", O_RDWR | O_SYNC},
    {"O_DSYNC", O_RDWR | O_DSYNC},
    {"O_NOATIME", O_RDWR | O_NOATIME},
    {"O_NOCTTY", O_RDWR | O_NOCTTY},
    {"O_NONBLOCK", O_RDWR | O_NONBLOCK},
    {"O_ASYNC", O_RDWR | O_ASYNC},
    {"O_DIRECTORY", O_RDWR | O_DIRECTORY},
    {"O_DIRECTORY|O_CREAT", O_RDWR | O_DIRECTORY | O_CREAT},
    {"O_PATH|O_WRONLY", O_PATH | O_WRONLY},
    {"O_PATH|O_CREAT", O_PATH | O_CREAT},
    {"O_PATH|O_TRUNC", O_PATH | O_TRUNC},
    {"O_TMPFILE", O_TMPFILE | O_RDWR},
    {"O_TMPFILE|O_RDONLY", O_TMPFILE},
    {"O_TMPFILE|O_EXCL", O_TMPFILE | O_WRONLY | O_EXCL},
    {"O_TMPFILE|O_CREAT", O_TMPFILE | O_RDWR | O_CREAT},
    {"O_EXCL", O_WRONLY | O_EXCL},
    {"both access modes", 3},
    {"both access modes and O_CREAT", 3 | O_CREAT},
    {"O_TRUNC|O_APPEND", O_WRONLY | O_TRUNC | O_APPEND},
    {"O_CREAT|O_TRUNC", O_RDWR | O_CREAT | O_TRUNC},
    {"O_CREAT|O_TRUNC|O_EXCL", O_RDWR | O_CREAT | O_TRUNC | O_EXCL},
    {"no such flag", O_WRONLY | 0x40000000},
};

// An open of a FIFO waits for the other end, so there is one.
void HoldFifo() { ::open("fifo", O_RDWR | O_NONBLOCK); }

void AddFlagSets(Cases& cases) {
  for (const OpenFlags& set : kFlagSets) {
    const auto openat = [set](int dirfd, const char* path) {
      HoldFifo();
      return NoteOpened(Sys(SYS_openat, dirfd, path, set.flags, kMode));
    };
    const auto open = [set](int, const char* path) {
      HoldFifo();
      return NoteOpened(Sys(SYS_open, path, set.flags, kMode));
    };
    const std::string prefix = std::string(set.what) + ", ";
    AddNewNameCases(cases, "openat", TakesDirfd::kYes, openat, prefix + "to make ");
    AddExistingCases(cases, "openat", TakesDirfd::kYes, openat, prefix);
    // The two differ only in where a path starts.
    if (set.flags != (O_RDWR | O_CREAT)) continue;
    AddNewNameCases(cases, "open", TakesDirfd::kNo, open, prefix + "to make ");
    AddExistingCases(cases, "open", TakesDirfd::kNo, open, prefix);
  }
  const auto creat = [](int, const char* path) {
    HoldFifo();
    return NoteOpened(Sys(SYS_creat, path, kMode));
  };
  AddNewNameCases(cases, "creat", TakesDirfd::kNo, creat, "to make ");
  AddExistingCases(cases, "creat", TakesDirfd::kNo, creat);
}

void AddOddFlags(Cases& cases) {
  for (const OpenFlags& odd : kOddFlags) {
    for (const char* path : {"file", "dir", "new", "link", "dangling", "fifo"}) {
      cases.push_back({"openat", Kind::kFlags, std::string(odd.what) + ", " + path, [odd, path] {
                         HoldFifo();
                         return NoteOpened(Sys(SYS_openat, AT_FDCWD, path, odd.flags, kMode));
                       }});
    }
  }
}

void AddModes(Cases& cases) {
  for (const int mask : {0, 022, 077, 0777}) {
    cases.push_back({"open", Kind::kUmask, "umask " + std::to_string(mask), [mask] {
                       ::umask(static_cast<mode_t>(mask));
                       return NoteOpened(Sys(SYS_open, "new", O_RDWR | O_CREAT, 07777));
                     }});
  }
  cases.push_back({"open", Kind::kUmask, "a mode without rights still opens",
                   [] {
                     const long fd = NoteOpened(Sys(SYS_open, "new", O_RDWR | O_CREAT, 0));
                     NoteNumber("written",
                                static_cast<uint64_t>(::write(static_cast<int>(fd), "x", 1)));
                     return fd;
                   },
                   Who::kOther});
  cases.push_back({"open", Kind::kFlags, "O_NOFOLLOW is told as a flag", [] {
                     const long fd = Sys(SYS_open, "file", O_RDWR | O_NOFOLLOW);
                     NoteNumber("flag",
                                static_cast<uint64_t>(::fcntl(static_cast<int>(fd), F_GETFL)) &
                                    O_NOFOLLOW);
                     return fd;
                   }});
  cases.push_back({"open", Kind::kFlags, "more descriptors than allowed", [] {
                     const rlimit few{4, 4};
                     ::setrlimit(RLIMIT_NOFILE, &few);
                     NoteOpened(Sys(SYS_open, "file", O_WRONLY));
                     return Sys(SYS_open, "new", O_WRONLY | O_CREAT, kMode);
                   }});
  cases.push_back(
      {"open", Kind::kAfterwards, "writing by two descriptors", [] {
         const long one = Sys(SYS_open, "file", O_WRONLY);
         const long two = Sys(SYS_open, "hard", O_RDWR | O_APPEND);
         NoteNumber("one", static_cast<uint64_t>(::write(static_cast<int>(one), "1", 1)));
         NoteNumber("two", static_cast<uint64_t>(::write(static_cast<int>(two), "2", 1)));
         return two;
       }});
  cases.push_back(
      {"open", Kind::kOtherPlace, "a device for writing",
       [] { return NoteOpened(Sys(SYS_open, "/dev/null", O_RDWR | O_CREAT | O_TRUNC, kMode)); }});
  cases.push_back({"open", Kind::kOtherObject, "a FIFO that nobody reads",
                   [] { return Sys(SYS_open, "fifo", O_WRONLY | O_NONBLOCK); }});
}

long Open2(int dirfd, const char* path, uint64_t flags, uint64_t mode, uint64_t resolve,
           size_t size = sizeof(open_how)) {
  struct {
    open_how how;
    uint64_t more[8];
  } argument{.how = {.flags = flags, .mode = mode, .resolve = resolve}, .more = {}};
  return NoteOpened(Sys(SYS_openat2, dirfd, path, &argument.how, size));
}

void AddResolve(Cases& cases) {
  constexpr std::pair<const char*, uint64_t> kResolve[] = {
      {"RESOLVE_NO_XDEV", RESOLVE_NO_XDEV},
      {"RESOLVE_NO_MAGICLINKS", RESOLVE_NO_MAGICLINKS},
      {"RESOLVE_NO_SYMLINKS", RESOLVE_NO_SYMLINKS},
      {"RESOLVE_BENEATH", RESOLVE_BENEATH},
      {"RESOLVE_IN_ROOT", RESOLVE_IN_ROOT},
      {"RESOLVE_BENEATH|RESOLVE_IN_ROOT", RESOLVE_BENEATH | RESOLVE_IN_ROOT},
      {"no such way", 0x8000}};
  constexpr const char* kPaths[] = {"file",     "link",        "dirlink/inner", "../file",
                                    "ABS/file", "dir/../file", "abslink",       "/file",
                                    "FD:file",  "dangling"};
  for (const auto& [what, resolve] : kResolve) {
    for (const char* path : kPaths) {
      cases.push_back({"openat2", Kind::kFlags, std::string(what) + ", " + path, [resolve, path] {
                         const StagePath expanded(path);
                         return Open2(AT_FDCWD, expanded.get(), O_RDWR, 0, resolve);
                       }});
    }
    // An absolute path would lead to the root of the machine itself.
    const bool rooted = (resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
    for (const char* path : {"new", "../dirlink/new", "../new", "../dangling", "/new"}) {
      if (path[0] == '/' && !rooted) continue;
      cases.push_back(
          {"openat2", Kind::kFlags, std::string(what) + ", to make " + path, [resolve, path] {
             const int dirfd = ::open("dir", O_PATH);
             return Open2(dirfd, path, O_RDWR | O_CREAT, kMode, resolve);
           }});
    }
  }
}

void AddOpen2(Cases& cases) {
  AddExistingCases(cases, "openat2", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Open2(dirfd, path, O_RDWR | O_NONBLOCK, 0, 0);
  });
  AddNewNameCases(
      cases, "openat2", TakesDirfd::kYes,
      [](int dirfd, const char* path) {
        return Open2(dirfd, path, O_RDWR | O_CREAT | O_NONBLOCK, kMode, 0);
      },
      "to make ");
  AddResolve(cases);
  const auto add = [&](const char* what, const std::function<long()>& act) {
    cases.push_back({"openat2", Kind::kBadArgument, what, act});
  };
  add("a mode without O_CREAT", [] { return Open2(AT_FDCWD, "file", O_RDWR, kMode, 0); });
  add("a mode of too many bits",
      [] { return Open2(AT_FDCWD, "new", O_RDWR | O_CREAT, 0100644, 0); });
  add("no such flag", [] { return Open2(AT_FDCWD, "file", uint64_t{1} << 40, 0, 0); });
  add("a structure too small", [] { return Open2(AT_FDCWD, "file", O_RDWR, 0, 0, 8); });
  add("a larger structure of zeros", [] { return Open2(AT_FDCWD, "file", O_RDWR, 0, 0, 64); });
  add("a structure without memory",
      [] { return Sys(SYS_openat2, AT_FDCWD, "file", nullptr, sizeof(open_how)); });
  add("O_PATH with others", [] { return Open2(AT_FDCWD, "file", O_PATH | O_RDWR, 0, 0); });
}

}  // namespace

void AddOpenCases(Cases& cases) {
  AddFlagSets(cases);
  AddOddFlags(cases);
  AddModes(cases);
  AddOpen2(cases);
}

}  // namespace sandglass::parity

// Making, removing and renaming names.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

constexpr mode_t kSpecial = 07777;

void AddMakeDir(Cases& cases) {
  const auto make = [](int dirfd, const char* path) { return Sys(SYS_mkdirat, dirfd, path, 0755); };
  AddNewNameCases(cases, "mkdirat", TakesDirfd::kYes, make);
  AddNewNameCases(cases, "mkdir", TakesDirfd::kNo,
                  [](int, const char* path) { return Sys(SYS_mkdir, path, 0755); });
  cases.push_back({"mkdir", Kind::kUmask, "all mode bits", [] {
                     ::umask(0);
                     return Sys(SYS_mkdir, "new", kSpecial);
                   }});
  cases.push_back({"mkdir", Kind::kUmask, "umask 077", [] {
                     ::umask(077);
                     return Sys(SYS_mkdir, "new", 0777);
                   }});
}

void AddMakeNode(Cases& cases) {
  AddNewNameCases(cases, "mknod", TakesDirfd::kNo,
                  [](int, const char* path) { return Sys(SYS_mknod, path, S_IFREG | 0644, 0); });
  AddNewNameCases(cases, "mknodat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_mknodat, dirfd, path, S_IFIFO | 0644, 0);
  });
  const std::pair<const char*, mode_t> types[] = {{"a socket", S_IFSOCK},
                                                  {"no type", 0},
                                                  {"a folder", S_IFDIR},
                                                  {"a symlink", S_IFLNK},
                                                  {"a block device", S_IFBLK},
                                                  {"a character device", S_IFCHR},
                                                  {"a type that does not exist", 0150000}};
  for (const auto& [what, type] : types) {
    cases.push_back({"mknod", Kind::kOtherObject, what,
                     [type] { return Sys(SYS_mknod, "new", type | 0640, makedev(1, 7)); }});
  }
  cases.push_back({"mknod", Kind::kOtherObject, "a whiteout",
                   [] { return Sys(SYS_mknod, "new", S_IFCHR | 0600, 0); }});
  cases.push_back({"mknod", Kind::kUmask, "umask 027 and all mode bits", [] {
                     ::umask(027);
                     return Sys(SYS_mknod, "new", S_IFIFO | kSpecial, 0);
                   }});
}

void AddRemove(Cases& cases) {
  AddExistingCases(cases, "unlink", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_unlink, path); });
  AddExistingCases(cases, "rmdir", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_rmdir, path); });
  AddExistingCases(cases, "unlinkat", TakesDirfd::kYes,
                   [](int dirfd, const char* path) { return Sys(SYS_unlinkat, dirfd, path, 0); });
  AddExistingCases(
      cases, "unlinkat", TakesDirfd::kNo,
      [](int dirfd, const char* path) { return Sys(SYS_unlinkat, dirfd, path, AT_REMOVEDIR); },
      "AT_REMOVEDIR, ");
  cases.push_back({"unlinkat", Kind::kBadArgument, "flags that do not exist",
                   [] { return Sys(SYS_unlinkat, AT_FDCWD, "file", 0x40000); }});
  cases.push_back({"unlinkat", Kind::kDescriptor, "an empty path with a descriptor", [] {
                     const int fd = ::open("file", O_RDONLY);
                     return Sys(SYS_unlinkat, fd, "", AT_EMPTY_PATH);
                   }});
  cases.push_back({"unlink", Kind::kAfterwards, "an open file lives on", [] {
                     const int fd = ::open("other", O_RDWR);
                     const long result = Sys(SYS_unlink, "other");
                     struct stat seen;
                     ::fstat(fd, &seen);
                     NoteNumber("written", static_cast<uint64_t>(::pwrite(fd, "new", 3, 0)));
                     NoteNumber("size", static_cast<uint64_t>(seen.st_size));
                     return result;
                   }});
  cases.push_back({"unlink", Kind::kAfterwards, "links of an open file", [] {
                     const int fd = ::open("other", O_RDONLY);
                     const long result = Sys(SYS_unlink, "other");
                     struct stat seen;
                     ::fstat(fd, &seen);
                     NoteNumber("nlink", seen.st_nlink);
                     return result;
                   }});
  cases.push_back({"rmdir", Kind::kAfterwards, "making in a removed working folder", [] {
                     if (::chdir("empty") != 0) return -1L;
                     NoteNumber("removed", static_cast<uint64_t>(Sys(SYS_rmdir, "../empty")));
                     return Sys(SYS_mkdir, "new", 0755);
                   }});
}

void AddSymlink(Cases& cases) {
  AddNewNameCases(cases, "symlink", TakesDirfd::kNo,
                  [](int, const char* path) { return Sys(SYS_symlink, "any target", path); });
  AddNewNameCases(cases, "symlinkat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_symlinkat, "../any/target", dirfd, path);
  });
  const std::pair<const char*, const char*> targets[] = {
      {"an empty target", ""}, {"an absolute target", "/no/such"}, {"itself", "new"}};
  for (const auto& [what, target] : targets) {
    cases.push_back({"symlink", Kind::kBadArgument, what,
                     [target] { return Sys(SYS_symlink, target, "new"); }});
  }
  cases.push_back({"symlink", Kind::kTooLong, "a target too long",
                   [] { return Sys(SYS_symlink, std::string(5000, 't').c_str(), "new"); }});
  cases.push_back({"symlink", Kind::kTooLong, "a long target",
                   [] { return Sys(SYS_symlink, std::string(4000, 't').c_str(), "new"); }});
  cases.push_back({"symlink", Kind::kBadArgument, "a target without memory",
                   [] { return Sys(SYS_symlink, nullptr, "new"); }});
}

}  // namespace

void AddNameCases(Cases& cases) {
  AddMakeDir(cases);
  AddMakeNode(cases);
  AddRemove(cases);
  AddSymlink(cases);
}

}  // namespace sandglass::parity

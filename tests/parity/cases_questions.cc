// May it be written, and where does it lie.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

void AddAccess(Cases& cases) {
  AddExistingCases(cases, "access", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_access, path, W_OK); });
  AddExistingCases(cases, "faccessat", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_faccessat, dirfd, path, W_OK | R_OK);
  });
  AddExistingCases(cases, "faccessat2", TakesDirfd::kYes, [](int dirfd, const char* path) {
    return Sys(SYS_faccessat2, dirfd, path, W_OK, 0);
  });
  for (const int mode : {W_OK | X_OK, W_OK | R_OK | X_OK, 0xff}) {
    for (const char* path : {"file", "dir", "readonly"}) {
      cases.push_back({"access", Kind::kFlags, std::string(path) + " for " + std::to_string(mode),
                       [mode, path] { return Sys(SYS_access, path, mode); }});
    }
  }
  const std::pair<const char*, int> flags[] = {{"AT_EACCESS", AT_EACCESS},
                                               {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
                                               {"AT_EMPTY_PATH", AT_EMPTY_PATH},
                                               {"no such flag", 0x40000}};
  for (const auto& [what, flag] : flags) {
    for (const char* path : {"file", "link", "dangling", "", "readonly"}) {
      cases.push_back({"faccessat2", Kind::kFlags, std::string(what) + ", '" + path + "'",
                       [flag, path] { return Sys(SYS_faccessat2, AT_FDCWD, path, W_OK, flag); }});
    }
  }
  cases.push_back({"faccessat2", Kind::kDescriptor, "AT_EMPTY_PATH, a file", [] {
                     return Sys(SYS_faccessat2, ::open("file", O_PATH), "", W_OK, AT_EMPTY_PATH);
                   }});
  // The real user asks, not the effective one.
  const auto as_two = [](int flag) {
    return [flag] {
      if (::geteuid() == 0 && ::setresuid(0, kOtherUser, 0) != 0) return -1L;
      return Sys(SYS_faccessat2, AT_FDCWD, "other", W_OK, flag);
    };
  };
  cases.push_back({"faccessat2", Kind::kRights, "the real user", as_two(0)});
  cases.push_back({"faccessat2", Kind::kRights, "the effective user", as_two(AT_EACCESS)});
}

// What is free changes all the time.
long NoteFileSystem(long result, const struct statfs& seen) {
  if (result < 0) return result;
  NoteNumber("type", static_cast<uint64_t>(seen.f_type));
  NoteNumber("block", static_cast<uint64_t>(seen.f_bsize));
  NoteNumber("name", static_cast<uint64_t>(seen.f_namelen));
  NoteNumber("read-only", static_cast<uint64_t>(seen.f_flags & 1 /* ST_RDONLY */));
  return result;
}

void AddStatFs(Cases& cases) {
  AddExistingCases(cases, "statfs", TakesDirfd::kNo, [](int, const char* path) {
    struct statfs seen{};
    return NoteFileSystem(Sys(SYS_statfs, path, &seen), seen);
  });
  AddDescriptorCases(cases, "fstatfs", [](int fd) {
    struct statfs seen{};
    return NoteFileSystem(Sys(SYS_fstatfs, fd, &seen), seen);
  });
  cases.push_back({"statfs", Kind::kBadArgument, "an answer without memory",
                   [] { return Sys(SYS_statfs, "file", nullptr); }});
  cases.push_back({"fstatfs", Kind::kBadArgument, "an answer without memory",
                   [] { return Sys(SYS_fstatfs, ::open("file", O_RDONLY), nullptr); }});
}

}  // namespace

void AddQuestionCases(Cases& cases) {
  AddAccess(cases);
  AddStatFs(cases);
}

}  // namespace sandglass::parity

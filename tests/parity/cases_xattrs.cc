// Extended attributes.
#include <fcntl.h>
#include <sys/xattr.h>

#include <climits>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

constexpr char kName[] = "user.parity";

void AddSetForms(Cases& cases) {
  const auto set = [](const std::string& name, const std::string& value, int flags) {
    return Sys(SYS_setxattr, "file", name.c_str(), value.data(), value.size(), flags);
  };
  const auto add = [&](Kind kind, const char* what, const std::function<long()>& act) {
    cases.push_back({"setxattr", kind, what, act});
  };
  add(Kind::kFlags, "XATTR_CREATE", [set] { return set(kName, "1", XATTR_CREATE); });
  add(Kind::kFlags, "XATTR_CREATE of one that is there", [set] {
    set(kName, "1", 0);
    return set(kName, "2", XATTR_CREATE);
  });
  add(Kind::kFlags, "XATTR_REPLACE of none", [set] { return set(kName, "1", XATTR_REPLACE); });
  add(Kind::kFlags, "XATTR_REPLACE", [set] {
    set(kName, "1", 0);
    return set(kName, "replaced", XATTR_REPLACE);
  });
  add(Kind::kBadArgument, "no such flag", [set] { return set(kName, "1", 0x10); });
  add(Kind::kBadArgument, "an empty value", [set] { return set(kName, "", 0); });
  add(Kind::kTooLong, "a value too large",
      [set] { return set(kName, std::string(XATTR_SIZE_MAX + 1, 'v'), 0); });
  add(Kind::kTooLong, "a large value", [set] { return set(kName, std::string(1000, 'v'), 0); });
  add(Kind::kTooLong, "an attribute's name too long",
      [set] { return set("user." + std::string(XATTR_NAME_MAX, 'n'), "1", 0); });
  add(Kind::kBadArgument, "an empty name", [set] { return set("", "1", 0); });
  add(Kind::kBadArgument, "no class", [set] { return set("parity", "1", 0); });
  add(Kind::kBadArgument, "only a class", [set] { return set("user.", "1", 0); });
  add(Kind::kRights, "a trusted one", [set] { return set("trusted.parity", "1", 0); });
  add(Kind::kRights, "a security one", [set] { return set("security.parity", "1", 0); });
  add(Kind::kRights, "a capability that is no capability",
      [set] { return set("security.capability", "1", 0); });
  add(Kind::kBadArgument, "an ACL that is no ACL",
      [set] { return set("system.posix_acl_access", "1", 0); });
  add(Kind::kBadArgument, "a value without memory",
      [] { return Sys(SYS_setxattr, "file", kName, 16, 5, 0); });
  add(Kind::kBadArgument, "a name without memory",
      [] { return Sys(SYS_setxattr, "file", 16, "1", 1, 0); });
}

// An ACL that gives user 77 the right to write.
void AddAcl(Cases& cases) {
  struct __attribute__((packed)) Entry {
    uint16_t tag, permissions;
    uint32_t id;
  };
  struct __attribute__((packed)) Acl {
    uint32_t version = 2;
    Entry entries[5] = {{1, 6, ~0u}, {2, 6, kOtherUser}, {4, 4, ~0u}, {16, 6, ~0u}, {32, 4, ~0u}};
  };
  cases.push_back({"setxattr", Kind::kFlags, "an ACL", [] {
                     const Acl acl;
                     return Sys(SYS_setxattr, "file", "system.posix_acl_access", &acl, sizeof acl,
                                0);
                   }});
  cases.push_back({"setxattr", Kind::kAfterwards, "a folder's ACL is handed on", [] {
                     const Acl acl;
                     const long result =
                         Sys(SYS_setxattr, "dir", "system.posix_acl_default", &acl, sizeof acl, 0);
                     ::close(::open("dir/new", O_WRONLY | O_CREAT, 0666));
                     return result;
                   }});
  cases.push_back({"setxattr", Kind::kFolder, "a default ACL of a file", [] {
                     const Acl acl;
                     return Sys(SYS_setxattr, "file", "system.posix_acl_default", &acl, sizeof acl,
                                0);
                   }});
}

void AddSet(Cases& cases) {
  AddExistingCases(cases, "setxattr", TakesDirfd::kNo, [](int, const char* path) {
    return Sys(SYS_setxattr, path, kName, "value", 5, 0);
  });
  AddExistingCases(cases, "lsetxattr", TakesDirfd::kNo, [](int, const char* path) {
    return Sys(SYS_lsetxattr, path, kName, "value", 5, 0);
  });
  AddDescriptorCases(cases, "fsetxattr",
                     [](int fd) { return Sys(SYS_fsetxattr, fd, kName, "value", 5, 0); });
  AddSetForms(cases);
  AddAcl(cases);
}

void AddRemove(Cases& cases) {
  // As the caller, so that there is one to remove where somebody else may not.
  const auto prepared = [](const char* path) { ::setxattr(path, kName, "old", 3, 0); };
  AddExistingCases(cases, "removexattr", TakesDirfd::kNo, [prepared](int, const char* path) {
    prepared("file");
    prepared("dir");
    return Sys(SYS_removexattr, path, kName);
  });
  AddExistingCases(cases, "lremovexattr", TakesDirfd::kNo, [prepared](int, const char* path) {
    prepared("file");
    prepared("dir");
    return Sys(SYS_lremovexattr, path, kName);
  });
  AddDescriptorCases(cases, "fremovexattr", [](int fd) {
    ::fsetxattr(fd, kName, "old", 3, 0);
    return Sys(SYS_fremovexattr, fd, kName);
  });
  for (const char* name : {"", "parity", "user.", "trusted.parity", "system.posix_acl_access"}) {
    cases.push_back({"removexattr", Kind::kBadArgument, std::string("the name '") + name + "'",
                     [name] { return Sys(SYS_removexattr, "file", name); }});
  }
}

}  // namespace

void AddXattrCases(Cases& cases) {
  AddSet(cases);
  AddRemove(cases);
}

}  // namespace sandglass::parity

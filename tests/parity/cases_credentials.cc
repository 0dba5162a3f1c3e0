// Calls after which others are judged differently: each is followed by changes of the stage.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

// What one may do now: make, write what belongs to the caller, write what all may, change a mode, enter a locked folder.
void NoteRights() {
  NoteNumber("make", static_cast<uint64_t>(::mkdir("new", 0777) == 0));
  const auto open = [](const char* path) {
    const int fd = ::open(path, O_WRONLY | O_CREAT, 0666);
    ::close(fd);
    return static_cast<uint64_t>(fd >= 0);
  };
  NoteNumber("write", open("other"));
  NoteNumber("create", open("created"));
  NoteNumber("in-locked", open("locked/created"));
  NoteNumber("in-setgid", open("setgid/created"));
  NoteNumber("chmod", static_cast<uint64_t>(::chmod("readonly", 0600) == 0));
  NoteNumber("chown", static_cast<uint64_t>(::chown("shared", 88, 88) == 0));
  NoteNumber("access", static_cast<uint64_t>(::access("readonly", W_OK) == 0));
}

void Add(Cases& cases, const char* call, Kind kind, const char* what,
         const std::function<long()>& act, Who who = Who::kCaller) {
  cases.push_back({call, kind, what,
                   [act] {
                     const long result = act();
                     NoteRights();
                     return result;
                   },
                   who});
}

void AddIds(Cases& cases) {
  constexpr struct {
    const char* call;
    long number;
  } kOne[] = {{"setuid", SYS_setuid},
              {"setgid", SYS_setgid},
              {"setfsuid", SYS_setfsuid},
              {"setfsgid", SYS_setfsgid}};
  for (const auto& [call, number] : kOne) {
    Add(cases, call, Kind::kPlain, "somebody else", [number] { return Sys(number, kOtherUser); });
    Add(cases, call, Kind::kPlain, "oneself", [number] {
      return Sys(number, number == SYS_setuid || number == SYS_setfsuid ? ::getuid() : ::getgid());
    });
    Add(cases, call, Kind::kBadArgument, "nobody", [number] { return Sys(number, -1); });
    Add(cases, call, Kind::kRights, "back", [number] { return Sys(number, 0); }, Who::kOther);
  }
  constexpr struct {
    const char* call;
    long number;
  } kMore[] = {{"setreuid", SYS_setreuid},
               {"setregid", SYS_setregid},
               {"setresuid", SYS_setresuid},
               {"setresgid", SYS_setresgid}};
  for (const auto& [call, number] : kMore) {
    Add(cases, call, Kind::kPlain, "somebody else",
        [number] { return Sys(number, kOtherUser, kOtherUser, kOtherUser); });
    Add(cases, call, Kind::kPlain, "the effective one",
        [number] { return Sys(number, -1, kOtherUser, -1); });
    Add(cases, call, Kind::kAfterwards, "and back", [number] {
      const long away = Sys(number, -1, kOtherUser, -1);
      ::mkdir("in-between", 0777);
      NoteNumber("away", static_cast<uint64_t>(away));
      return Sys(number, -1, 0, -1);
    });
    Add(cases, call, Kind::kRights, "back", [number] { return Sys(number, 0, 0, 0); }, Who::kOther);
  }
}

void AddGroups(Cases& cases) {
  Add(cases, "setgroups", Kind::kPlain, "none", [] { return Sys(SYS_setgroups, 0, nullptr); });
  Add(cases, "setgroups", Kind::kAfterwards, "the group of a folder", [] {
    const long mode = ::chmod("dir", 0775);
    const long group = ::chown("dir", static_cast<uid_t>(-1), 99);
    NoteNumber("prepared", static_cast<uint64_t>(mode == 0 && group == 0));
    const gid_t groups[] = {99};
    const long result = Sys(SYS_setgroups, 1, groups);
    if (::geteuid() == 0 && ::setresuid(kOtherUser, kOtherUser, kOtherUser) != 0) return -1L;
    NoteNumber("in-dir", static_cast<uint64_t>(::mkdir("dir/new", 0755) == 0));
    return result;
  });
  Add(cases, "setgroups", Kind::kBadArgument, "too many",
      [] { return Sys(SYS_setgroups, 1 << 20, nullptr); });
}

long Keep(uint32_t effective) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return -1;
  data[0].effective = data[0].permitted & effective;
  return Sys(SYS_capset, &header, data);
}

void AddCapabilities(Cases& cases) {
  Add(cases, "capset", Kind::kPlain, "none is left", [] { return Keep(0); });
  Add(cases, "capset", Kind::kPlain, "only CHOWN is left", [] { return Keep(1u << CAP_CHOWN); });
  Add(cases, "capset", Kind::kAfterwards, "and back", [] {
    NoteNumber("dropped", static_cast<uint64_t>(Keep(0)));
    ::mkdir("locked/in-between", 0777);
    return Keep(~0u);
  });
  Add(cases, "capset", Kind::kRights, "more than there are", [] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {{~0u, ~0u, 0}, {~0u, ~0u, 0}};
    return Sys(SYS_capset, &header, data);
  });
}

void AddUmaskAndRoot(Cases& cases) {
  for (const long mask : {0L, 027L, 0777L, 07777L}) {
    Add(cases, "umask", Kind::kUmask, ("to " + std::to_string(mask)).c_str(),
        [mask] { return Sys(SYS_umask, mask); });
  }
  Add(cases, "umask", Kind::kAfterwards, "of a child", [] {
    Sys(SYS_umask, 077);
    const pid_t child = ::fork();
    if (child == 0) {
      Sys(SYS_umask, 0);
      ::_exit(::mkdir("of-child", 0777) == 0 ? 0 : 1);
    }
    ::waitpid(child, nullptr, 0);
    return Sys(SYS_umask, 077);
  });
  for (const char* path : {".", "dir", "file", "missing", "", "/"}) {
    Add(cases, "chroot", Kind::kRights, (std::string("to '") + path + "'").c_str(),
        [path] { return Sys(SYS_chroot, path); });
  }
  Add(
      cases, "chroot", Kind::kRights, "in a folder without search permission",
      [] { return Sys(SYS_chroot, "closed/inside"); }, Who::kOther);
}

}  // namespace

void AddCredentialCases(Cases& cases) {
  AddIds(cases);
  AddGroups(cases);
  AddCapabilities(cases);
  AddUmaskAndRoot(cases);
}

}  // namespace sandglass::parity

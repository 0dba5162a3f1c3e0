#include "world/local/id_maps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <sstream>

#include "base/fd.h"
#include "base/io.h"

namespace sandglass::world {
namespace {

constexpr size_t kMaxMapBytes = size_t{64} << 10;

Status WriteProc(pid_t pid, std::string_view name, std::string_view text) {
  const std::string path = fmt::format("/proc/{}/{}", pid, name);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  // The kernel takes a map in one write only.
  if (!file || ::write(file.get(), text.data(), text.size()) < 0)
    return Error::FromErrno(errno, fmt::format("write {}", name));
  return Ok();
}

Status MapAll(pid_t pid, const char* name) {
  TRY_ASSIGN(const std::string own,
             ReadFileAt(AT_FDCWD, fmt::format("/proc/self/{}", name).c_str(), kMaxMapBytes));
  return WriteProc(pid, name, IdentityMap(own));
}

}  // namespace

std::string IdentityMap(std::string_view own_map) {
  std::istringstream lines{std::string(own_map)};
  std::string map;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (lines >> inside >> outside >> count) map += fmt::format("{0} {0} {1}\n", inside, count);
  return map;
}

Status MapIds(pid_t pid) {
  if (::geteuid() == 0) {
    TRY(MapAll(pid, "uid_map"));
    return MapAll(pid, "gid_map");
  }
  TRY(WriteProc(pid, "setgroups", "deny"));
  TRY(WriteProc(pid, "uid_map", fmt::format("{0} {0} 1", ::geteuid())));
  return WriteProc(pid, "gid_map", fmt::format("{0} {0} 1", ::getegid()));
}

}  // namespace sandglass::world

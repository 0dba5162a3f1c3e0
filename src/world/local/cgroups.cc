#include "world/local/cgroups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/fd.h"
#include "base/io.h"

namespace sandglass::world {
namespace {

constexpr size_t kMaxProcFile = size_t{4} << 20;
constexpr uint64_t kCpuPeriodUs = 100'000;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool Contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

struct CgroupMount {
  std::string_view root;
  std::string_view path;
};

// "36 35 98:0 /root /path options - type source superoptions"
std::optional<CgroupMount> FindMount(std::string_view mountinfo, CgroupVersion version,
                                     std::string_view controller) {
  for (const std::string_view line : Split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto fields = Split(line.substr(0, dash), ' ');
    const auto type = Split(line.substr(dash + 3), ' ');
    if (fields.size() < 5 || type.size() < 3) continue;
    const bool fits = version == CgroupVersion::kTwo
                          ? type[0] == "cgroup2"
                          : type[0] == "cgroup" && Contains(Split(type[2], ','), controller);
    if (fits) return CgroupMount{fields[3], fields[4]};
  }
  return std::nullopt;
}

// "4:memory:/our/group"; version 2 is "0::/our/group".
std::optional<std::string_view> FindOwnGroup(std::string_view own_groups, CgroupVersion version,
                                             std::string_view controller) {
  for (const std::string_view line : Split(own_groups, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const bool fits = version == CgroupVersion::kTwo ? line.starts_with("0::")
                                                     : Contains(Split(names, ','), controller);
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<std::string> OwnFolder(std::string_view mountinfo, std::string_view own_groups,
                                     CgroupVersion version, std::string_view controller) {
  const auto mount = FindMount(mountinfo, version, controller);
  auto group = FindOwnGroup(own_groups, version, controller);
  if (!mount || !group) return std::nullopt;
  if (mount->root != "/") {
    if (!group->starts_with(mount->root)) return std::nullopt;
    group->remove_prefix(mount->root.size());
  }
  return fmt::format("{}{}", mount->path, *group == "/" ? "" : *group);
}

Status WriteValue(const std::string& path, std::string_view value) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0)
    return Error::FromErrno(errno, path);
  return Ok();
}

struct Setting {
  std::string file;
  std::string value;
  bool required = true;
};

std::vector<Setting> SettingsFor(CgroupVersion version, std::string_view controller,
                                 uint64_t amount) {
  const bool two = version == CgroupVersion::kTwo;
  const uint64_t quota = std::max<uint64_t>(amount * kCpuPeriodUs / 1000, 1000);
  if (controller == "pids") return {{"pids.max", fmt::format("{}", amount)}};
  if (controller == "cpu" && two) return {{"cpu.max", fmt::format("{} {}", quota, kCpuPeriodUs)}};
  if (controller == "cpu")
    return {{"cpu.cfs_period_us", fmt::format("{}", kCpuPeriodUs)},
            {"cpu.cfs_quota_us", fmt::format("{}", quota)}};
  // Swap would only hide that the limit is reached; a kernel without swap accounting lacks the file.
  if (two) return {{"memory.max", fmt::format("{}", amount)}, {"memory.swap.max", "0", false}};
  return {{"memory.limit_in_bytes", fmt::format("{}", amount)},
          {"memory.memsw.limit_in_bytes", fmt::format("{}", amount), false}};
}

}  // namespace

std::vector<CgroupPlace> FindCgroupPlaces(std::string_view mountinfo, std::string_view own_groups,
                                          std::string_view controller) {
  std::vector<CgroupPlace> places;
  if (auto own = OwnFolder(mountinfo, own_groups, CgroupVersion::kTwo, controller)) {
    places.push_back({CgroupVersion::kTwo, *own});
    if (FindOwnGroup(own_groups, CgroupVersion::kTwo, controller) != "/")
      places.push_back({CgroupVersion::kTwo, own->substr(0, own->rfind('/'))});
  }
  if (auto own = OwnFolder(mountinfo, own_groups, CgroupVersion::kOne, controller))
    places.push_back({CgroupVersion::kOne, *own});
  return places;
}

std::vector<CgroupPlace> FindCgroupPlaces(std::string_view controller) {
  const auto mountinfo = ReadFileAt(AT_FDCWD, "/proc/self/mountinfo", kMaxProcFile);
  const auto own_groups = ReadFileAt(AT_FDCWD, "/proc/self/cgroup", kMaxProcFile);
  if (!mountinfo.ok() || !own_groups.ok()) return {};
  return FindCgroupPlaces(mountinfo.value(), own_groups.value(), controller);
}

Result<std::string> MakeCgroup(const CgroupPlace& place, std::string_view controller,
                               uint64_t amount) {
  static std::atomic<unsigned> counter = 0;
  std::string group =
      fmt::format("{}/sandglass-{}-{}", place.folder, ::getpid(), counter.fetch_add(1));
  if (::mkdir(group.c_str(), 0755) != 0) return Error::FromErrno(errno, group);
  const Status limited = LimitCgroup(group, place.version, controller, amount);
  if (limited.ok()) return group;
  ::rmdir(group.c_str());
  return limited.error();
}

Status LimitCgroup(const std::string& group, CgroupVersion version, std::string_view controller,
                   uint64_t amount) {
  for (const Setting& setting : SettingsFor(version, controller, amount)) {
    const Status written = WriteValue(fmt::format("{}/{}", group, setting.file), setting.value);
    if (!written.ok() && setting.required) return written;
  }
  return Ok();
}

Status JoinCgroup(const std::string& group, pid_t pid) {
  return WriteValue(group + "/cgroup.procs", fmt::format("{}", pid));
}

// "oom_kill 3", in version 2 and in version 1 from Linux 4.13 on.
uint64_t OutOfMemoryKillsIn(const std::string& group) {
  constexpr std::string_view kKey = "oom_kill ";
  for (const char* file : {"memory.events", "memory.oom_control"}) {
    const auto text = ReadFileAt(AT_FDCWD, fmt::format("{}/{}", group, file).c_str(), kMaxProcFile);
    if (!text.ok()) continue;
    for (const std::string_view line : Split(*text, '\n')) {
      if (line.starts_with(kKey))
        return std::strtoull(std::string(line.substr(kKey.size())).c_str(), nullptr, 10);
    }
  }
  return 0;
}

void RemoveCgroup(const std::string& group) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && ::rmdir(group.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace sandglass::world

#include "world/local/limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "world/local/cgroups.h"

namespace sandglass::world {
namespace {

Status CheckSense(const Limits& limits) {
  constexpr double kLeastCpus = 0.01;
  constexpr double kMostCpus = 1e6;
  const auto wrong = [](const char* what) { return Error(Code::kInvalid, what); };
  if (limits.memory_bytes == 0) return wrong("memory limit: zero");
  if (limits.pids == 0) return wrong("process limit: zero");
  if (limits.cpus && !(*limits.cpus >= kLeastCpus && *limits.cpus <= kMostCpus))
    return wrong("cpu limit: less than 0.01 or too large");
  return Ok();
}

std::string Absent(const Limits& limits) {
  std::string absent;
  const auto add = [&](bool asked_for, std::string_view name) {
    if (!asked_for) absent += fmt::format("{}{}", absent.empty() ? "" : ", ", name);
  };
  add(limits.memory_bytes.has_value(), "memory");
  add(limits.cpus.has_value(), "cpu");
  add(limits.pids.has_value(), "processes");
  add(limits.file_bytes.has_value(), "file size");
  return absent;
}

}  // namespace

EnforcedLimits::~EnforcedLimits() {
  for (const std::string& group : groups_) RemoveCgroup(group);
}

Result<EnforcedLimits> EnforcedLimits::Prepare(const Limits& limits) {
  TRY(CheckSense(limits));
  EnforcedLimits enforced;
  if (limits.memory_bytes) TRY(enforced.AddByGroup("memory", *limits.memory_bytes, "memory limit"));
  if (limits.cpus) {
    const auto thousandths = static_cast<uint64_t>(std::llround(*limits.cpus * 1000));
    TRY(enforced.AddByGroup("cpu", thousandths, "cpu limit"));
  }
  if (limits.pids) TRY(enforced.AddProcesses(*limits.pids));
  if (limits.file_bytes) {
    enforced.process_limits_.push_back({RLIMIT_FSIZE, *limits.file_bytes});
    enforced.notes_.emplace_back("file size limit: RLIMIT_FSIZE");
  }
  if (const std::string absent = Absent(limits); !absent.empty())
    enforced.notes_.push_back(fmt::format("not limited: {}", absent));
  return enforced;
}

Status EnforcedLimits::AddProcesses(uint64_t count) {
  const Status by_group = AddByGroup("pids", count, "process limit");
  // In a user namespace of its own an ordinary user's count starts at zero (Linux 5.14), so this is the same. Root is not counted.
  if (by_group.ok() || ::geteuid() == 0) return by_group;
  process_limits_.push_back({RLIMIT_NPROC, count});
  notes_.emplace_back("process limit: RLIMIT_NPROC");
  return Ok();
}

Status EnforcedLimits::AddByGroup(std::string_view controller, uint64_t amount,
                                  std::string_view name) {
  const auto version = LimitWhereverPossible(controller, amount);
  if (!version.ok())
    return Error(Code::kUnsupported,
                 fmt::format("{} cannot be enforced here: {}", name, version.error().message()),
                 version.error().sys_errno());
  notes_.push_back(fmt::format("{}: cgroup v{}", name, static_cast<int>(*version)));
  return Ok();
}

Result<CgroupVersion> EnforcedLimits::LimitWhereverPossible(std::string_view controller,
                                                            uint64_t amount) {
  Error last(Code::kUnsupported, "no such control group is mounted");
  for (const CgroupPlace& place : FindCgroupPlaces(controller)) {
    const bool two = place.version == CgroupVersion::kTwo;
    if (two && !group_of_version_two_.empty()) {
      const Status limited = LimitCgroup(group_of_version_two_, place.version, controller, amount);
      if (limited.ok()) return place.version;
      last = limited.error();
      continue;
    }
    auto group = MakeCgroup(place, controller, amount);
    if (group.ok()) {
      if (two) group_of_version_two_ = *group;
      groups_.push_back(std::move(*group));
      return place.version;
    }
    last = group.error();
  }
  return last;
}

uint64_t EnforcedLimits::OutOfMemoryKills() const {
  uint64_t kills = 0;
  for (const std::string& group : groups_) kills += OutOfMemoryKillsIn(group);
  return kills;
}

Status EnforcedLimits::Join(pid_t pid) const {
  for (const std::string& group : groups_) TRY(JoinCgroup(group, pid));
  return Ok();
}

}  // namespace sandglass::world

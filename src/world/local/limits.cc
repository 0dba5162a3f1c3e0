#include "world/local/limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "world/local/cgroups.h"

namespace sandglass::world {
namespace {

struct MadeGroup {
  std::string path;
  CgroupVersion version;
};

Result<MadeGroup> MakeWhereverPossible(std::string_view controller, uint64_t amount) {
  Error last(Code::kUnsupported, "no such control group is mounted");
  for (const CgroupPlace& place : FindCgroupPlaces(controller)) {
    auto group = MakeCgroup(place, controller, amount);
    if (group.ok()) return MadeGroup{std::move(group).value(), place.version};
    last = group.error();
  }
  return last;
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
  EnforcedLimits enforced;
  if (limits.memory_bytes) TRY(enforced.AddByGroup("memory", *limits.memory_bytes, "memory limit"));
  if (limits.cpus) {
    if (!std::isfinite(*limits.cpus) || *limits.cpus < 0.01 || *limits.cpus > 1e6)
      return Error(Code::kInvalid, "cpu limit: less than 0.01 or too large");
    const auto thousandths = static_cast<uint64_t>(std::llround(*limits.cpus * 1000));
    TRY(enforced.AddByGroup("cpu", thousandths, "cpu limit"));
  }
  if (limits.pids) {
    const Status by_group = enforced.AddByGroup("pids", *limits.pids, "process limit");
    // In a user namespace of its own an ordinary user's count starts at zero (Linux 5.14), so this is the same. Root is not counted.
    if (!by_group.ok() && ::geteuid() == 0) return by_group.error();
    if (!by_group.ok()) {
      enforced.process_limits_.push_back({RLIMIT_NPROC, *limits.pids});
      enforced.notes_.emplace_back("process limit: RLIMIT_NPROC");
    }
  }
  if (limits.file_bytes) {
    enforced.process_limits_.push_back({RLIMIT_FSIZE, *limits.file_bytes});
    enforced.notes_.emplace_back("file size limit: RLIMIT_FSIZE");
  }
  if (const std::string absent = Absent(limits); !absent.empty())
    enforced.notes_.push_back(fmt::format("not limited: {}", absent));
  return enforced;
}

Status EnforcedLimits::AddByGroup(std::string_view controller, uint64_t amount,
                                  std::string_view name) {
  if (amount == 0) return Error(Code::kInvalid, fmt::format("{}: zero", name));
  auto group = MakeWhereverPossible(controller, amount);
  if (!group.ok())
    return Error(Code::kUnsupported,
                 fmt::format("{} cannot be enforced here: {}", name, group.error().message()),
                 group.error().sys_errno());
  groups_.push_back(group->path);
  notes_.push_back(fmt::format("{}: cgroup v{}", name, static_cast<int>(group->version)));
  return Ok();
}

Status EnforcedLimits::Join(pid_t pid) const {
  for (const std::string& group : groups_) TRY(JoinCgroup(group, pid));
  return Ok();
}

}  // namespace sandglass::world

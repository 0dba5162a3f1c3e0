#include "session/watch/watch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sandglass::session {
namespace {

constexpr int64_t kMaxDebounceMs = 60'000;
constexpr size_t kMaxPatterns = 1'000;

struct PolicyName {
  std::string_view name;
  WatchPolicy policy;
};
constexpr PolicyName kPolicies[] = {
    {"barrier", WatchPolicy::kBarrier}, {"warn", WatchPolicy::kWarn}, {"lock", WatchPolicy::kLock}};

Error Wrong(std::string_view key, std::string_view what) {
  return Error(Code::kInvalid, fmt::format("file_watcher.{} {}", key, what));
}

Status SetEnabled(const Json& value, WatchOptions& options) {
  const auto on = value.AsBool();
  if (!on) return Wrong("enabled", "is neither true nor false");
  options.watching = *on ? Watching::kOn : Watching::kOff;
  return Ok();
}

Status SetDebounce(const Json& value, WatchOptions& options) {
  const auto ms = value.AsInt();
  if (!ms || *ms < 0 || *ms > kMaxDebounceMs)
    return Wrong("debounce_ms", fmt::format("is no number from 0 to {}", kMaxDebounceMs));
  options.debounce = std::chrono::milliseconds(*ms);
  return Ok();
}

Status SetExcluded(const Json& value, WatchOptions& options) {
  const Json::Items* list = value.AsArray();
  if (list == nullptr || list->size() > kMaxPatterns)
    return Wrong("exclude_patterns", fmt::format("is no list of at most {}", kMaxPatterns));
  std::vector<std::string> patterns;
  for (const Json& item : *list) {
    const std::string* pattern = item.AsString();
    if (pattern == nullptr || pattern->empty() || pattern->find('\n') != std::string::npos)
      return Wrong("exclude_patterns", "has an item that is no pattern");
    patterns.push_back(*pattern);
  }
  options.exclude_patterns = std::move(patterns);
  return Ok();
}

Status SetGitignore(const Json& value, WatchOptions& options) {
  const auto on = value.AsBool();
  if (!on) return Wrong("use_gitignore", "is neither true nor false");
  options.gitignore = *on ? undo::GitignoreMode::kSkipIgnored : undo::GitignoreMode::kOff;
  return Ok();
}

// Taken for a mistake instead of being passed over: whoever sets it expects something that does not happen.
Status RefuseTtl(const Json&, WatchOptions&) {
  return Wrong("recent_write_ttl_ms",
               "is not needed, remove it: what commands wrote is told from what others wrote by "
               "what is on record, not by its age");
}

struct KeyRow {
  std::string_view key;
  Status (*set)(const Json&, WatchOptions&);
};
constexpr KeyRow kKeys[] = {
    {"enabled", SetEnabled},
    {"debounce_ms", SetDebounce},
    {"exclude_patterns", SetExcluded},
    {"use_gitignore", SetGitignore},
    {"recent_write_ttl_ms", RefuseTtl},
};

}  // namespace

Result<WatchPolicy> ParseWatchPolicy(std::string_view name) {
  const auto* row = std::ranges::find(kPolicies, name, &PolicyName::name);
  if (row != std::end(kPolicies)) return row->policy;
  return Error(Code::kInvalid,
               fmt::format("no policy for external changes is called {}; there are barrier, warn "
                           "and lock",
                           name));
}

// Permission events of fanotify come for opening and reading, and do not say whether a file is opened for writing; for renaming,
// removing or a change of mode there are none. A read-only mount over the project would shut out the person who sits before it.
Result<undo::ExternalPolicy> UndoPolicyFor(WatchPolicy policy) {
  switch (policy) {
    case WatchPolicy::kBarrier:
      return undo::ExternalPolicy::kBarrier;
    case WatchPolicy::kWarn:
      return undo::ExternalPolicy::kWarn;
    case WatchPolicy::kLock:
      break;
  }
  return Error(Code::kUnsupported,
               "external changes cannot be locked out: Linux lets nobody refuse other programs a "
               "rename, a removal or a change of mode, and cannot tell opening for writing from "
               "opening for reading; choose the policy barrier, which lets no undo overwrite them");
}

Result<WatchOptions> WatchOptionsFrom(const Json& section) {
  const Json::Members* members = section.AsObject();
  if (members == nullptr) return Error(Code::kInvalid, "file_watcher is no section");
  WatchOptions options;
  for (const JsonMember& member : *members) {
    const auto* row = std::ranges::find(kKeys, member.key, &KeyRow::key);
    if (row == std::end(kKeys)) return Wrong(member.key, "does not exist");
    TRY(row->set(member.value, options));
  }
  return options;
}

}  // namespace sandglass::session

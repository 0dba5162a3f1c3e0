#include "session/watch/watch_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sandglass::session {
namespace {

struct PolicyName {
  std::string_view name;
  WatchPolicy policy;
};
constexpr PolicyName kPolicies[] = {
    {"barrier", WatchPolicy::kBarrier}, {"warn", WatchPolicy::kWarn}, {"lock", WatchPolicy::kLock}};

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

}  // namespace sandglass::session

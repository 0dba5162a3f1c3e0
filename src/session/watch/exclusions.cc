#include "session/watch/exclusions.h"

#include <string>
#include <utility>

namespace sandglass::session {

Result<Exclusions> Exclusions::Load(int root_fd, const WatchOptions& watch,
                                    const undo::UndoOptions& undo) {
  undo::GitignoreFilter filter;
  if (watch.gitignore == undo::GitignoreMode::kSkipIgnored ||
      undo.gitignore == undo::GitignoreMode::kSkipIgnored) {
    TRY_ASSIGN(filter, undo::GitignoreFilter::Load(root_fd));
  }
  std::string rules;
  for (const auto* lines : {&watch.exclude_patterns, &undo.unrecorded}) {
    for (const std::string& line : *lines) rules.append(line).append("\n");
  }
  filter.AddRules(rules);
  return Exclusions(std::move(filter));
}

}  // namespace sandglass::session

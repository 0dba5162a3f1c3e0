// Exclusions: paths of a project that are not watched: what the options leave out, and what undo does not record, since nobody could tell
// there what commands did. Rules are read once. Immutable after construction; any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "session/watch/watch_options.h"
#include "undo/gitignore_filter.h"

namespace sandglass::session {

class Exclusions {
 public:
  // Errors as of GitignoreFilter::Load.
  static Result<Exclusions> Load(int root_fd, const WatchOptions& watch,
                                 const undo::UndoOptions& undo);
  bool Exclude(std::string_view path, undo::PathKind kind) const {
    return filter_.Ignores(path, kind);
  }

 private:
  explicit Exclusions(undo::GitignoreFilter filter) : filter_(std::move(filter)) {}
  undo::GitignoreFilter filter_;
};

}  // namespace sandglass::session

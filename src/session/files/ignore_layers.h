// What git would ignore, found out along a walk: each folder adds the rules of its own .gitignore to those of the folders above. A
// search must not read the rules of a whole project before its first file, as undo's filter does; the matcher of one rules file is
// the same. Immutable; any number of threads may share a layer.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "undo/gitignore.h"

namespace sandglass::session::files {

class IgnoreLayer;
// Shared by the folders below, in whatever thread they are walked.
using IgnoreLayers = std::shared_ptr<const IgnoreLayer>;

class IgnoreLayer {
 public:
  IgnoreLayer(IgnoreLayers above, size_t base_size, undo::GitignoreRules rules)
      : above_(std::move(above)), base_size_(base_size), rules_(std::move(rules)) {}

  // Those of .git/info/exclude and of the folders from the root down to `folder`, without its own. Rules files that cannot be read
  // or are too large count as empty: a search shows more then, and protects nothing.
  static IgnoreLayers Above(int root_fd, std::string_view folder);
  // With those of the .gitignore in `dir_fd`, which is the folder `path`.
  static IgnoreLayers Add(IgnoreLayers above, int dir_fd, std::string_view path);

 private:
  friend bool IsIgnored(const IgnoreLayers& layers, std::string_view path, undo::PathKind kind);
  const IgnoreLayers above_;
  const size_t base_size_;  // bytes of a path that lead to the rules' folder, its slash included
  const undo::GitignoreRules rules_;
};

// By a rule that matches the path itself: whoever walks does not enter what is ignored.
bool IsIgnored(const IgnoreLayers& layers, std::string_view path, undo::PathKind kind);

}  // namespace sandglass::session::files

// What git would ignore in a project, for the option that keeps ignored files out of undo.
//
// Every rules file is read once, when the filter is loaded. A filter that looked again later would
// let a command write a .gitignore first and so keep its own changes out of undo. Immutable after
// construction; any number of threads may ask at the same time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "undo/gitignore.h"

namespace sandglass::undo {

// Bounds on reading a project's rules, so that a hostile tree cannot hold up the opening of a
// session.
struct GitignoreLimits {
  size_t max_file_bytes = size_t{1} << 20;
  size_t max_total_bytes = size_t{8} << 20;
  size_t max_directories = 500'000;
  size_t max_depth = 4'096;
};

class GitignoreFilter {
 public:
  // Reads .git/info/exclude and each .gitignore below the root, but none inside an ignored
  // directory or inside .git. Symbolic links are never followed, neither to directories nor to
  // rules files; a directory that cannot be listed adds no rules. A user's global ignore file is
  // not read: undo of a project must not depend on who runs it.
  // `root_fd` is borrowed for the call only. Blocks on the walk.
  // kLimit: a limit was passed, and the message says which. kDenied: a rules file exists but cannot
  // be read; guessing its content would silently decide what undo protects.
  static Result<GitignoreFilter> Load(int root_fd, const GitignoreLimits& limits = {});

  // Ignores nothing.
  GitignoreFilter() = default;
  // Rules as if they stood in the root, which no others of the project can overrule.
  void AddRules(std::string_view text);

  // Whether git would ignore the path, or an added rule does. As in git, nothing below an ignored
  // directory can be included again. A `.git` and all below it counts as not ignored, whatever the
  // project's patterns say: it is the project's history. Only an added rule that names it counts. `rel_path` is relative to the root and has no empty, `.` or `..`
  // component; the root itself is "".
  bool Ignores(std::string_view rel_path, PathKind kind) const;

 private:
  class Loader;
  struct Layer {
    size_t base_size;  // bytes of the path that lead to the rules' directory, its slash included
    const GitignoreRules* rules;
  };

  void PushLayer(std::string_view dir, std::vector<Layer>& layers) const;
  bool IgnoredByLayers(std::string_view rel_path, PathKind kind,
                       const std::vector<Layer>& layers) const;

  GitignoreRules added_, exclude_;
  GitignoreRules added_of_repository_;                         // those of `added_` that name a .git
  std::map<std::string, GitignoreRules, std::less<>> by_dir_;  // only directories that have rules
};

}  // namespace sandglass::undo

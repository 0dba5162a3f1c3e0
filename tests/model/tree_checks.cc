#include "tests/model/tree_checks.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/rel_path.h"

namespace sandglass::model {

using test::EntrySnapshot;
using test::Printable;
using test::TreeSnapshot;

bool SameContent(const EntrySnapshot* a, const EntrySnapshot* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return (a->mode & S_IFMT) == (b->mode & S_IFMT) && a->size == b->size &&
         a->content == b->content && a->symlink_target == b->symlink_target;
}

// All that stays when names in a folder come and go.
bool SameAttributes(const EntrySnapshot& a, const EntrySnapshot& b) {
  return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.flags == b.flags &&
         a.xattrs == b.xattrs;
}

bool SameEntry(const EntrySnapshot* a, const EntrySnapshot* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return SameContent(a, b) && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
         a->flags == b->flags && a->mtime == b->mtime && a->xattrs == b->xattrs &&
         a->device == b->device;
}

std::set<std::string> AllPaths(const TreeSnapshot& a, const TreeSnapshot& b) {
  std::set<std::string> paths;
  for (const TreeSnapshot* tree : {&a, &b}) {
    for (const EntrySnapshot& entry : tree->entries()) paths.insert(entry.path);
  }
  return paths;
}

std::set<std::string> Neighbourhood(const TreeSnapshot& tree, const std::string& top) {
  std::set<std::string> paths = {top};
  for (const std::vector<std::string>& group : tree.link_groups()) {
    const bool touches = std::any_of(group.begin(), group.end(),
                                     [&](const std::string& path) { return IsBeneath(path, top); });
    if (touches) paths.insert(group.begin(), group.end());
  }
  std::set<std::string> with_parents = paths;
  for (std::string_view path : paths) {
    while (!path.empty()) {
      path = ParentOf(path);
      with_parents.insert(std::string(path));
    }
  }
  return with_parents;
}

std::string ChangedAbove(const TreeSnapshot& before, const TreeSnapshot& after,
                         std::string_view path) {
  while (!path.empty()) {
    path = ParentOf(path);
    const EntrySnapshot* was = before.Find(path);
    const EntrySnapshot* is = after.Find(path);
    if (was == nullptr || is == nullptr) continue;
    if (!SameAttributes(*was, *is)) {
      return fmt::format("restoring changed the directory above, {}", Printable(path));
    }
  }
  return "";
}

std::set<std::string> UncertainAfterForce(const TreeSnapshot& before, const TreeSnapshot& after,
                                          const std::string& edited) {
  std::set<std::string> uncertain = Neighbourhood(before, edited);
  for (const std::string& path : AllPaths(before, after)) {
    if (!SameContent(before.Find(path), after.Find(path)))
      uncertain.merge(Neighbourhood(before, path));
  }
  return uncertain;
}

bool IsSavedAside(std::string_view path) {
  return BaseName(path).find(".kept-") != std::string_view::npos;
}

}  // namespace sandglass::model

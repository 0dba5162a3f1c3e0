#include "tests/model/planted_project.h"

#include "tests/model/choices.h"
#include "tests/support/fixtures.h"
#include "tests/support/tree_builder.h"

namespace sandglass::model {

void PlantProject(const std::string& project, uint32_t salt) {
  const test::TreeBuilder tree(project);
  for (const char* dir : {"a", "b", "a/d"}) tree.Dir(dir);
  tree.File("f0", "tiny");
  tree.File("a/f0", Pattern(salt, 4 * kKiB), 0600);
  tree.File("a/f1", Pattern(salt + 1, 100 * kKiB));
  tree.File("a/d/f0", Pattern(salt + 2, 300 * kKiB), 0755);
  tree.File("b/f0", Pattern(salt + 3, 700 * kKiB));
  tree.File("b/f1", "");
  tree.SparseFile("b/f2", 400 * kKiB, 200 * kKiB, "island");
  tree.File(FileNames().back(), Pattern(salt + 4, 300));
  tree.Link("a/f1", "b/" + FileNames().back());
  tree.Symlink("a/f2", "../f0");
  tree.Xattr("a/f0", kXattr, "first");
  tree.Xattr("b", kXattr, "of a directory");
  test::AgeTree(project);
}

}  // namespace sandglass::model

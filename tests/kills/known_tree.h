// KnownTree: what a script that is being written may expect to find in the project when it comes to its next command. Guesses by
// design: a command that fails changes nothing, and later ones may then fail too. Value type.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "tests/support/tree_snapshot.h"

namespace sandglass::test {

using Random = std::mt19937_64;

inline size_t Below(Random& random, size_t limit) { return random() % limit; }
inline bool OneIn(Random& random, size_t limit) { return Below(random, limit) == 0; }

// Holds the number of the last batch that came to its end.
inline constexpr char kDoneFile[] = ".done";

class KnownTree {
 public:
  // Leaves out what only git, sqlite and the end of a batch may touch, and paths that no program takes as a whole.
  explicit KnownTree(const TreeSnapshot& tree);

  // Paths relative to the project, "" is the project. A file or folder that exists; the project counts as a folder.
  std::string File(Random& random) const;
  std::string Folder(Random& random) const;
  // A folder that may be moved and removed; empty if there is none.
  std::string InnerFolder(Random& random) const;
  // Anything below the project.
  std::string Any(Random& random) const;
  // A name that is new, in some folder; every few of them are ones that programs get wrong.
  std::string Fresh(Random& random);

  void AddFile(const std::string& path) { files_.insert(path); }
  void AddFolder(const std::string& path) { folders_.insert(path); }
  void Remove(const std::string& path);
  // With what is below; the old names stay if this was a copy.
  void Copy(const std::string& from, const std::string& to);

  size_t size() const { return files_.size() + folders_.size(); }

 private:
  std::set<std::string> files_, folders_;  // files: all that is not a folder and not special
  uint64_t next_ = 0;
};

}  // namespace sandglass::test

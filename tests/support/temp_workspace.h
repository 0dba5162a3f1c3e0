// TempWorkspace: a project folder and an undo store beside it, fresh for one test and removed with
// it, on the file system under test ($SANDGLASS_TEST_DIR, else $TMPDIR, else /tmp). A call that
// fails ends the test program: see must.h. One thread.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {

class TempWorkspace {
 public:
  TempWorkspace();
  TempWorkspace(const TempWorkspace&) = delete;
  TempWorkspace& operator=(const TempWorkspace&) = delete;
  // Removes everything, also what has mode 000 or is immutable; reports on stderr what stays.
  ~TempWorkspace();

  const std::string& root() const {
    return root_;
  }  // holds the other two; a place for what must be outside of both
  const std::string& project() const { return project_; }
  const std::string& store() const { return store_; }

  TreeSnapshot Snapshot() const;  // of the project

  // `rel` is relative to the project in all of these.
  std::string Path(std::string_view rel) const;
  // Creates the file and missing parents; an existing file is truncated and written in place.
  void WriteFile(std::string_view rel, std::string_view content) const;
  std::string ReadFile(std::string_view rel) const;
  bool Exists(std::string_view rel) const;       // also true for a dangling symlink
  void MakeDir(std::string_view rel) const;      // with missing parents; may exist
  struct stat Stat(std::string_view rel) const;  // of a symlink itself

 private:
  std::string root_;
  std::string project_;
  std::string store_;
};

// The directory in which tests create their folders.
std::string TestDirectory();

// Removes the directory `path` with everything in it, clearing permissions and inode flags that are
// in the way. Depth and path length do not matter. Goes on after a failure and returns the first.
Status RemoveTree(const std::string& path);

}  // namespace sandglass::test

#include "tests/support/fixtures.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <string_view>

#include "tests/support/must.h"
#include "tests/support/tree_builder.h"
#include "tests/support/tree_walk.h"

namespace sandglass::test {
namespace {

// Between 2001 and 2017, and never a whole number of microseconds.
FileTime OddOldTime(std::string_view path) {
  const uint64_t hash = XXH3_64bits(path.data(), path.size());
  return {.sec = static_cast<int64_t>(1'000'000'000 + hash % 500'000'000),
          .nsec = static_cast<uint32_t>((hash >> 32) % 1'000'000 * 1000 + 1 + hash % 999)};
}

}  // namespace

void AgeTree(const std::string& root) {
  const Fd dir = Must(OpenDirectory(root));
  Must(WalkTree(dir.get(), [](const WalkEntry& entry) -> Status {
    const FileTime time = OddOldTime(entry.path);
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               {.tv_sec = time.sec, .tv_nsec = time.nsec}};
    if (::utimensat(entry.parent, entry.name, times, AT_SYMLINK_NOFOLLOW) == 0) return Ok();
    return Error::FromErrno(errno, "utimens " + Printable(entry.path));
  }));
}

void SmallTree(const std::string& root) {
  const TreeBuilder tree(root);
  tree.File("empty.txt", "");
  tree.File("small.txt", "hello world");
  tree.File("medium.txt", std::string(4096, 'x'));
  tree.File("large.bin", std::string(1'000'000, '\xAB'));
  tree.Dir("src");
  tree.Dir("src/components");
  tree.File("src/main.rs", "fn main() {}");
  tree.File("src/components/app.rs", "pub struct App;");
  tree.File("run.sh", "#!/bin/sh\necho ok", 0755);
  AgeTree(root);
}

void RenameTree(const std::string& root) {
  const TreeBuilder tree(root);
  tree.File("a.txt", "content of a");
  tree.File("b.txt", "b holds something else");
  AgeTree(root);
}

bool XattrTree(const std::string& root) {
  const TreeBuilder tree(root);
  tree.File("tagged.txt", "tagged");
  tree.File("plain.txt", "plain");
  tree.Dir("dir");
  const bool supported = tree.Xattr("tagged.txt", "user.test", "value") == 0;
  if (supported) {
    const char binary[] = {0, 1, '\xff', '\n'};
    MustCall(tree.Xattr("tagged.txt", "user.binary", {binary, sizeof binary}) == 0 ? 0 : -1,
             "setxattr");
    MustCall(tree.Xattr("dir", "user.test", "on a directory") == 0 ? 0 : -1, "setxattr");
  }
  AgeTree(root);
  return supported;
}

void SymlinkTree(const std::string& root) {
  const TreeBuilder tree(root);
  tree.File("target.txt", "target");
  tree.Dir("dir");
  tree.File("dir/inside.txt", "inside");
  tree.Symlink("to_file", "target.txt");
  tree.Symlink("to_dir", "dir");
  AgeTree(root);
}

void DeepTree(const std::string& root) {
  const TreeBuilder tree(root);
  std::string dir;
  for (int level = 1; level <= 5; ++level) {
    dir += fmt::format("{}level{}", level == 1 ? "" : "/", level);
    tree.Dir(dir);
    for (int i = 0; i < 25; ++i) {
      tree.File(fmt::format("{}/file{:02}.txt", dir, i),
                fmt::format("level {} file {}\n", level, i));
    }
  }
  AgeTree(root);
}

}  // namespace sandglass::test

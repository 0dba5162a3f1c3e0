// TreeWalk: a folder of a project and all below it, by several threads at once, for searches.
//
// Folders wait in one list, and so do portions of the files of a large folder; each worker takes the newest. So few folders are open
// at a time, however wide or deep the tree is, and one folder with all the files keeps every thread busy. Symbolic links are
// never followed and other mounts never entered. What vanishes meanwhile, or may not be listed, is left out and counted.
//
// A worker's visitor is called on that worker's thread only; the visitors share nothing unless they want to.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "undo/interceptor.h"

namespace sandglass::session::files {

enum class Hidden : uint8_t { kSkip, kInclude };  // names that begin with a dot
enum class IgnoreRules : uint8_t {
  kRespect,  // .gitignore in each folder, .git/info/exclude; and no folder .git is entered
  kDisregard,
};
enum class WalkKinds : uint8_t { kFiles, kFilesAndLinks, kEverything };

struct WalkOptions {
  std::string start;  // a folder, in the normal form; never left out itself
  std::string only;   // folders that neither lead there nor lie below are not entered; "": all are
  Hidden hidden = Hidden::kSkip;
  IgnoreRules ignore = IgnoreRules::kRespect;
  WalkKinds kinds = WalkKinds::kFiles;
  size_t max_folders = 2'000'000;
  size_t max_depth = 4'096;
  std::stop_token stop = {};
};

struct WalkedName {
  std::string name;
  undo::NodeType type;
};

// Some of the names in one folder.
struct WalkPortion {
  int dir_fd;
  const std::string& folder;  // its path from the root
  std::span<const WalkedName> names;
};

class WalkVisitor {
 public:
  virtual ~WalkVisitor() = default;
  virtual void Visit(const WalkPortion& portion) = 0;
  // False: nothing below can matter to anyone any more.
  virtual bool WantsFolder(std::string_view /*path*/) { return true; }
};

struct WalkCounts {
  uint64_t folders = 0;
  uint64_t unreadable = 0;  // folders
};

// With one thread for each visitor, this one among them. Blocks until all is visited.
// kNotFound, kOutsideRoot, kInvalid: of the start. kLimit: of the options. kCancelled: `stop` was asked for.
Result<WalkCounts> WalkTree(int root_fd, const WalkOptions& options,
                            std::span<WalkVisitor* const> visitors);

// How many visitors make sense on this machine.
size_t WalkThreads();

}  // namespace sandglass::session::files

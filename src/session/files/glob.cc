#include "session/files/glob.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/rel_path.h"
#include "session/files/glob_pattern.h"
#include "session/files/opening.h"

namespace sandglass::session::files {
namespace {

struct Earlier {
  GlobOrder order;
  bool operator()(const GlobMatch& a, const GlobMatch& b) const {
    if (order == GlobOrder::kNewestFirst && a.mtime_ns != b.mtime_ns)
      return a.mtime_ns > b.mtime_ns;
    return a.path < b.path;
  }
};

// Keeps the first `wanted` in the order; those behind are only counted.
class Collector final : public WalkVisitor {
 public:
  Collector(const GlobPattern& pattern, size_t folder_size, Earlier earlier, size_t wanted)
      : pattern_(pattern), folder_size_(folder_size), earlier_(earlier), wanted_(wanted) {}

  void Visit(const WalkPortion& portion) override {
    std::string path = portion.folder.empty() ? "" : portion.folder + "/";
    const size_t base = path.size();
    for (const WalkedName& walked : portion.names) {
      path.resize(base);
      path += walked.name;
      if (pattern_.Matches(std::string_view(path).substr(folder_size_)))
        Keep(portion.dir_fd, walked, path);
    }
  }

  std::vector<GlobMatch>& matches() { return matches_; }
  size_t total() const { return total_; }

 private:
  void Keep(int dir_fd, const WalkedName& walked, const std::string& path) {
    struct stat st{};
    if (::fstatat(dir_fd, walked.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return;  // gone
    ++total_;
    matches_.push_back({path, undo::NodeTypeOf(st.st_mode), static_cast<uint64_t>(st.st_size),
                        NanosecondsOf(st.st_mtim)});
    if (matches_.size() < 2 * wanted_ + 1'000) return;
    std::ranges::nth_element(matches_, matches_.begin() + static_cast<ptrdiff_t>(wanted_),
                             earlier_);
    matches_.resize(wanted_);
  }

  const GlobPattern& pattern_;
  const size_t folder_size_;  // with its slash
  const Earlier earlier_;
  const size_t wanted_;
  std::vector<GlobMatch> matches_;
  size_t total_ = 0;
};

Status CheckPage(const GlobRequest& request) {
  if (request.limit == 0) return Error(Code::kInvalid, "a page has one match at least");
  if (request.limit > kMostGlobMatches || request.offset > kMostGlobMatches - request.limit)
    return Error(
        Code::kInvalid,
        fmt::format("only the first {} matches can be had; narrow the pattern", kMostGlobMatches));
  return Ok();
}

GlobResult PageOf(std::vector<std::unique_ptr<Collector>>& collectors, const GlobRequest& request) {
  GlobResult result;
  std::vector<GlobMatch> all;
  for (const auto& collector : collectors) {
    result.total += collector->total();
    std::ranges::move(collector->matches(), std::back_inserter(all));
  }
  std::ranges::sort(all, Earlier{request.order});
  const size_t begin = std::min(request.offset, all.size());
  const size_t end = std::min(begin + request.limit, all.size());
  result.matches.assign(std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(begin)),
                        std::make_move_iterator(all.begin() + static_cast<ptrdiff_t>(end)));
  result.more = end < result.total;
  return result;
}

}  // namespace

Result<GlobResult> Glob(int root_fd, const GlobRequest& request) {
  TRY(CheckPage(request));
  TRY_ASSIGN(const std::string folder, NormalizeRelPath(request.folder));
  TRY_ASSIGN(const GlobPattern pattern, GlobPattern::Compile(request.pattern, GlobAnchor::kPath));
  TRY_ASSIGN(const std::string below, NormalizeRelPath(pattern.literal_folder()));
  const WalkOptions options{
      .start = folder,
      .only = JoinPath(folder, below),
      .hidden = pattern.names_hidden() ? Hidden::kInclude : request.hidden,
      .ignore = request.ignore,
      .kinds = request.kinds,
      .stop = request.stop,
  };
  std::vector<std::unique_ptr<Collector>> collectors;
  std::vector<WalkVisitor*> visitors;
  for (size_t i = 0; i < WalkThreads(); ++i) {
    collectors.push_back(
        std::make_unique<Collector>(pattern, folder.empty() ? 0 : folder.size() + 1,
                                    Earlier{request.order}, request.offset + request.limit));
    visitors.push_back(collectors.back().get());
  }
  TRY_ASSIGN(const WalkCounts walked, WalkTree(root_fd, options, visitors));
  GlobResult result = PageOf(collectors, request);
  result.walked = walked;
  return result;
}

}  // namespace sandglass::session::files

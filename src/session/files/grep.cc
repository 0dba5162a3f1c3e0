#include "session/files/grep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/rel_path.h"
#include "session/files/glob_pattern.h"
#include "session/files/opening.h"
#include "session/files/text_encoding.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kFirstBufferBytes = 256 << 10;

// --- Which files

class FileFilter {
 public:
  static Result<FileFilter> For(std::span<const std::string> globs, size_t folder_size) {
    FileFilter filter;
    filter.folder_size_ = folder_size;
    for (std::string_view glob : globs) {
      const bool excludes = glob.starts_with('!');
      if (excludes) glob.remove_prefix(1);
      TRY_ASSIGN(GlobPattern pattern, GlobPattern::Compile(glob, GlobAnchor::kNameOrPath));
      (excludes ? filter.excluded_ : filter.included_).push_back(std::move(pattern));
    }
    return filter;
  }

  bool Admits(std::string_view path) const {
    const std::string_view below = path.substr(folder_size_);
    const auto matches = [&](const GlobPattern& pattern) { return pattern.Matches(below); };
    if (!included_.empty() && std::ranges::none_of(included_, matches)) return false;
    return std::ranges::none_of(excluded_, matches);
  }

 private:
  size_t folder_size_ = 0;
  std::vector<GlobPattern> included_, excluded_;
};

// --- What a worker has found so far: the first of the page, by path

class FirstFiles {
 public:
  explicit FirstFiles(size_t wanted) : wanted_(wanted) {}

  // Everything from this path on comes behind what is wanted.
  bool IsTooLate(std::string_view path) const {
    return total_ >= wanted_ && path > files_.rbegin()->first;
  }

  void Add(GrepFile file, size_t weight) {
    total_ += weight;
    std::string path = file.path;
    files_.emplace(std::move(path), Found{std::move(file), weight});
    while (total_ - files_.rbegin()->second.weight >= wanted_) {
      total_ -= files_.rbegin()->second.weight;
      files_.erase(std::prev(files_.end()));
    }
  }

  struct Found {
    GrepFile file;
    size_t weight;  // its share of the limit
  };
  using Files = std::map<std::string, Found, std::less<>>;
  Files& files() { return files_; }

 private:
  const size_t wanted_;
  size_t total_ = 0;
  Files files_;
};

// --- Reading

// A file in pieces that end with a line, each good until the next one.
class Pieces {
 public:
  explicit Pieces(std::vector<char>& buffer) : buffer_(buffer) {
    if (buffer_.size() < kFirstBufferBytes) buffer_.resize(kFirstBufferBytes);
  }

  // Empty: the file has ended. An error: it cannot be read.
  Result<std::string_view> Next(int fd) {
    std::memmove(buffer_.data(), buffer_.data() + given_, filled_ - given_);
    filled_ -= given_;
    given_ = 0;
    while (!ended_) {
      TRY(Fill(fd));
      if (ended_) break;
      const void* brk = ::memrchr(buffer_.data(), '\n', filled_);
      if (brk != nullptr)
        return Give(static_cast<size_t>(static_cast<const char*>(brk) - buffer_.data()) + 1);
      if (buffer_.size() >= kLongestLineBytes) break;
      buffer_.resize(buffer_.size() * 2);
    }
    return Give(filled_);
  }

 private:
  std::string_view Give(size_t size) {
    given_ = size;
    return {buffer_.data(), size};
  }

  Status Fill(int fd) {
    while (filled_ < buffer_.size()) {
      const ssize_t got = ::read(fd, buffer_.data() + filled_, buffer_.size() - filled_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::FromErrno(errno, "read");
      if (got == 0) {
        ended_ = true;
        return Ok();
      }
      filled_ += static_cast<size_t>(got);
    }
    return Ok();
  }

  std::vector<char>& buffer_;
  size_t filled_ = 0, given_ = 0;
  bool ended_ = false;
};

// --- Searching

struct Search {
  const GrepRequest& request;
  const FileFilter& filter;
  size_t limit;
};

class Searcher final : public WalkVisitor {
 public:
  Searcher(const Search& search, LineMatcher matcher)
      : search_(search), matcher_(std::move(matcher)), found_(search.limit + 1) {}

  void Visit(const WalkPortion& portion) override {
    path_ = portion.folder.empty() ? "" : portion.folder + "/";
    const size_t base = path_.size();
    for (const WalkedName& walked : portion.names) {
      if (search_.request.stop.stop_requested()) return;
      path_.resize(base);
      path_ += walked.name;
      if (!IsOnPage(path_) || !search_.filter.Admits(path_)) continue;
      const Fd fd(OpenName(portion.dir_fd, walked.name.c_str(), O_RDONLY));
      if (fd)
        SearchFile(fd.get());
      else if (errno != ENOENT)
        ++counts_.unreadable;
    }
  }

  bool WantsFolder(std::string_view path) override {
    return path.empty() || !found_.IsTooLate(std::string(path) + "/");
  }

  void SearchOne(int fd, const std::string& path) {
    path_ = path;
    if (IsOnPage(path)) SearchFile(fd);
  }

  FirstFiles::Files& files() { return found_.files(); }
  const GrepCounts& counts() const { return counts_; }

 private:
  bool IsOnPage(const std::string& path) const {
    const auto& after = search_.request.after_page;
    if (after && (path < after->path || (path == after->path && after->line == 0))) return false;
    return !found_.IsTooLate(path);
  }

  ScanOptions OptionsFor(const std::string& path) const {
    const GrepRequest& request = search_.request;
    const bool cursor = request.after_page && request.after_page->path == path;
    return {.mode = request.mode,
            .before = request.before,
            .after = request.after,
            .max_matches = search_.limit + 1,
            .max_line_bytes = request.max_line_bytes,
            .after_line = cursor ? request.after_page->line : 0};
  }

  void SearchFile(int fd) {
    Pieces pieces(buffer_);
    const auto first = pieces.Next(fd);
    if (!first.ok()) {
      ++counts_.unreadable;
      return;
    }
    if (LooksBinary(*first)) {
      ++counts_.binary;
      return;
    }
    ++counts_.searched;
    const ScanOptions options = OptionsFor(path_);
    FileScan scan(matcher_, options);
    // By the mark alone, which is no part of the first line.
    const Encoding encoding = DetectEncoding(first->substr(0, 4));
    if (encoding == Encoding::kUtf16Le || encoding == Encoding::kUtf16Be)
      FeedUtf16(scan, fd, encoding);
    else
      FeedAll(scan, pieces, fd, first->substr(MarkSize(encoding)));
    Keep(scan);
  }

  static void FeedAll(FileScan& scan, Pieces& pieces, int fd, std::string_view first) {
    scan.Feed(first);
    while (!scan.done()) {
      const auto piece = pieces.Next(fd);
      if (!piece.ok() || piece->empty()) return;  // what was found so far counts
      scan.Feed(*piece);
    }
  }

  static void FeedUtf16(FileScan& scan, int fd, Encoding encoding) {
    std::string bytes(kMostUtf16Bytes, '\0');
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
    const size_t mark = MarkSize(encoding);
    bytes.resize(got < static_cast<ssize_t>(mark) ? mark : static_cast<size_t>(got));
    scan.Feed(Utf16ToUtf8(DecodeUtf16(std::string_view(bytes).substr(mark), encoding)));
  }

  void Keep(FileScan& scan) {
    if (scan.matches() == 0) return;
    const bool content = search_.request.mode == GrepMode::kContent;
    found_.Add({path_, scan.matches(), std::move(scan.lines())}, content ? scan.matches() : 1);
  }

  const Search& search_;
  const LineMatcher matcher_;
  FirstFiles found_;
  GrepCounts counts_;
  std::vector<char> buffer_;
  std::string path_;  // of the file at hand
};

// --- The page

// The first `count` matches of a file with what belongs to them.
void CutTo(GrepFile& file, size_t count) {
  std::erase_if(file.lines, [&](const GrepLine& line) { return line.match >= count; });
  file.matches = count;
}

void AddCounts(GrepCounts& sum, const GrepCounts& more) {
  sum.searched += more.searched;
  sum.binary += more.binary;
  sum.unreadable += more.unreadable;
}

GrepCursor CursorAt(const GrepFile& file, GrepMode mode) {
  GrepCursor cursor{file.path};
  for (const GrepLine& line : file.lines) {
    if (mode == GrepMode::kContent && line.kind == LineKind::kMatch) cursor.line = line.number;
  }
  return cursor;
}

GrepResult PageOf(std::vector<std::unique_ptr<Searcher>>& searchers, const Search& search) {
  GrepResult result;
  FirstFiles::Files all;
  for (const auto& searcher : searchers) {
    AddCounts(result.counts, searcher->counts());
    all.merge(searcher->files());
  }
  size_t room = search.limit;
  bool more = false;
  for (auto& [path, found] : all) {
    more = found.weight > room;
    if (room == 0) break;
    if (more) CutTo(found.file, room);
    room -= std::min(found.weight, room);
    result.files.push_back(std::move(found.file));
    if (more) break;
  }
  if (more) result.next = CursorAt(result.files.back(), search.request.mode);
  return result;
}

Status CheckRequest(const GrepRequest& request) {
  if (request.limit == 0) return Error(Code::kInvalid, "a page has one match at least");
  if (request.max_line_bytes == 0 || request.max_line_bytes > kLongestLineBytes)
    return Error(Code::kInvalid,
                 fmt::format("lines are shown with 1 to {} bytes", kLongestLineBytes));
  if (request.before > kMostContextLines || request.after > kMostContextLines)
    return Error(Code::kInvalid, fmt::format("at most {} lines of context", kMostContextLines));
  return Ok();
}

size_t LimitFor(const GrepRequest& request) {
  if (request.mode != GrepMode::kContent) return std::min(request.limit, kMostPageBytes / 256);
  const size_t per_match = (1 + request.before + request.after) * (request.max_line_bytes + 64);
  return std::clamp<size_t>(kMostPageBytes / per_match, 1, request.limit);
}

Result<GrepResult> SearchBelow(int root_fd, const std::string& folder, const Search& search) {
  const GrepRequest& request = search.request;
  std::vector<std::unique_ptr<Searcher>> searchers;
  std::vector<WalkVisitor*> visitors;
  for (size_t i = 0; i < WalkThreads(); ++i) {
    TRY_ASSIGN(LineMatcher matcher, LineMatcher::Compile(request.pattern));
    searchers.push_back(std::make_unique<Searcher>(search, std::move(matcher)));
    visitors.push_back(searchers.back().get());
  }
  const WalkOptions options{
      .start = folder, .hidden = request.hidden, .ignore = request.ignore, .stop = request.stop};
  TRY_ASSIGN(const WalkCounts walked, WalkTree(root_fd, options, visitors));
  if (request.stop.stop_requested()) return Error(Code::kCancelled, "the search was cancelled");
  GrepResult result = PageOf(searchers, search);
  result.counts.walked = walked;
  return result;
}

Result<GrepResult> SearchOneFile(int fd, const std::string& path, const Search& search) {
  TRY_ASSIGN(LineMatcher matcher, LineMatcher::Compile(search.request.pattern));
  std::vector<std::unique_ptr<Searcher>> searchers;
  searchers.push_back(std::make_unique<Searcher>(search, std::move(matcher)));
  searchers.front()->SearchOne(fd, path);
  return PageOf(searchers, search);
}

}  // namespace

Result<GrepResult> Grep(int root_fd, const GrepRequest& request) {
  TRY(CheckRequest(request));
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  TRY_ASSIGN(const Fd fd, OpenFollowing(root_fd, path, O_RDONLY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Error::FromErrno(errno, fmt::format("stat {}", path));
  TRY_ASSIGN(const FileFilter filter,
             FileFilter::For(request.globs, path.empty() ? 0 : path.size() + 1));
  const Search search{request, filter, LimitFor(request)};
  if (S_ISREG(st.st_mode)) return SearchOneFile(fd.get(), path, search);
  if (!S_ISDIR(st.st_mode))
    return Error(Code::kInvalid, fmt::format("{} is neither a folder nor a regular file", path));
  return SearchBelow(root_fd, path, search);
}

}  // namespace sandglass::session::files

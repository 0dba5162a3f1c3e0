#include "undo/gitignore_filter.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/rel_path.h"

namespace sandglass::undo {

void GitignoreFilter::PushLayer(std::string_view dir, std::vector<Layer>& layers) const {
  const auto found = by_dir_.find(dir);
  if (found == by_dir_.end()) return;
  layers.push_back({.base_size = dir.empty() ? 0 : dir.size() + 1, .rules = &found->second});
}

bool GitignoreFilter::IgnoredByLayers(std::string_view rel_path, PathKind kind,
                                      const std::vector<Layer>& layers) const {
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const Verdict verdict = layer->rules->Match(rel_path.substr(layer->base_size), kind);
    if (verdict != Verdict::kNone) return verdict == Verdict::kIgnored;
  }
  return exclude_.Match(rel_path, kind) == Verdict::kIgnored;
}

// Does a component of its pattern say `.git`?
static bool NamesRepository(std::string_view line) {
  if (line.starts_with('!')) line.remove_prefix(1);
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('/', begin), line.size());
    if (line.substr(begin, end - begin) == ".git") return true;
    begin = end + 1;
  }
  return false;
}

void GitignoreFilter::AddRules(std::string_view text) {
  added_ = GitignoreRules::Parse(text);
  std::string of_repository;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (NamesRepository(line)) of_repository.append(line).append("\n");
    begin = end + 1;
  }
  added_of_repository_ = GitignoreRules::Parse(of_repository);
}

bool GitignoreFilter::Ignores(std::string_view rel_path, PathKind kind) const {
  if (by_dir_.empty() && exclude_.empty() && added_.empty()) return false;
  bool in_repository = false;
  std::vector<Layer> layers;
  const auto ignored = [&](std::string_view path, PathKind path_kind) {
    in_repository = in_repository || BaseName(path) == ".git";
    const GitignoreRules& added = in_repository ? added_of_repository_ : added_;
    return added.Match(path, path_kind) == Verdict::kIgnored ||
           (!in_repository && IgnoredByLayers(path, path_kind, layers));
  };
  PushLayer("", layers);
  for (size_t end = rel_path.find('/'); end != std::string_view::npos;
       end = rel_path.find('/', end + 1)) {
    const std::string_view parent = rel_path.substr(0, end);
    if (ignored(parent, PathKind::kDir)) return true;
    PushLayer(parent, layers);
  }
  return ignored(rel_path, kind);
}

namespace {

struct DirCloser {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirStream = std::unique_ptr<DIR, DirCloser>;

// Also what lies on another mount: nothing there is recorded.
bool IsAbsence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO || error == EXDEV;
}

bool IsDirectory(int dir_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat st{};
  return ::fstatat(dir_fd, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

}  // namespace

// Walks the project with a list of directories still to visit instead of one descriptor per level:
// depth then costs memory only. A directory that vanishes or turns into a link between listing and
// opening is simply not there.
class GitignoreFilter::Loader {
 public:
  Loader(int root_fd, const GitignoreLimits& limits, GitignoreFilter& filter)
      : root_fd_(root_fd), limits_(limits), filter_(filter) {}

  Status Run() {
    TRY_ASSIGN(filter_.exclude_, ReadRules(root_fd_, ".git/info/exclude", ""));
    pending_.emplace_back();
    for (size_t visited = 0; !pending_.empty(); ++visited) {
      if (visited == limits_.max_directories) return TooMuch("directories", "");
      const std::string dir = std::move(pending_.back());
      pending_.pop_back();
      TRY(Visit(dir));
    }
    return Ok();
  }

 private:
  Status Visit(const std::string& dir) {
    auto fd = OpenBeneath(root_fd_, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok()) return SkipOrFail(dir, fd.error().sys_errno());
    TRY_ASSIGN(GitignoreRules rules, ReadRules(fd->get(), ".gitignore", dir));
    if (!rules.empty()) filter_.by_dir_.emplace(dir, std::move(rules));
    return QueueChildren(std::move(*fd), dir);
  }

  static Status SkipOrFail(const std::string& dir, int error) {
    // The root must be readable: without it nothing at all would be known.
    if (!dir.empty() && (IsAbsence(error) || error == EACCES || error == EPERM)) return Ok();
    return Error::FromErrno(error, fmt::format("open directory {}", dir.empty() ? "." : dir));
  }

  Status QueueChildren(Fd fd, const std::string& dir) {
    DirStream stream(::fdopendir(fd.get()));
    if (!stream) return Error::FromErrno(errno, fmt::format("list {}", dir));
    const int dir_fd = fd.Release();  // the stream closes it
    const std::vector<Layer> layers = LayersAt(dir);
    while (true) {
      errno = 0;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream.
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr && errno == 0) return Ok();
      if (entry == nullptr) return Error::FromErrno(errno, fmt::format("list {}", dir));
      if (IsDirectory(dir_fd, *entry)) TRY(Queue(dir, entry->d_name, layers));
    }
  }

  Status Queue(const std::string& dir, std::string_view name, const std::vector<Layer>& layers) {
    if (name == "." || name == ".." || name == ".git") return Ok();
    std::string child = JoinPath(dir, name);
    if (filter_.IgnoredByLayers(child, PathKind::kDir, layers)) return Ok();
    if (static_cast<size_t>(std::ranges::count(child, '/')) >= limits_.max_depth) {
      return TooMuch("levels of directories", child);
    }
    pending_.push_back(std::move(child));
    return Ok();
  }

  std::vector<Layer> LayersAt(std::string_view dir) const {
    std::vector<Layer> layers;
    filter_.PushLayer("", layers);
    for (size_t end = 0; end < dir.size();) {
      end = std::min(dir.find('/', end + 1), dir.size());
      filter_.PushLayer(dir.substr(0, end), layers);
    }
    return layers;
  }

  // No rules where there is no such regular file. O_NONBLOCK, so that a FIFO of that name cannot
  // hold us.
  Result<GitignoreRules> ReadRules(int dir_fd, const std::string& file, const std::string& dir) {
    const std::string name = JoinPath(dir, file);
    const auto fd = OpenBeneath(dir_fd, file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (!fd.ok()) {
      TRY(RefuseUnreadable(fd.error().sys_errno(), dir_fd, file, name));
      return GitignoreRules();
    }
    struct stat st{};
    if (::fstat(fd->get(), &st) != 0) return Error::FromErrno(errno, fmt::format("stat {}", name));
    if (!S_ISREG(st.st_mode)) return GitignoreRules();
    const auto bytes = ReadFully(fd->get(), limits_.max_file_bytes);
    if (!bytes.ok() && bytes.error().code() == Code::kLimit)
      return TooMuch("bytes in one rules file", name);
    if (!bytes.ok()) return bytes.error().WithContext(name);
    total_bytes_ += bytes->size();
    if (total_bytes_ > limits_.max_total_bytes) return TooMuch("bytes in all rules files", name);
    return GitignoreRules::Parse(AsText(*bytes));
  }

  // EACCES alone does not say whether the file exists: perhaps only its directory may not be
  // searched.
  static Status RefuseUnreadable(int error, int dir_fd, const std::string& file,
                                 const std::string& name) {
    if (IsAbsence(error)) return Ok();
    struct stat st{};
    if (error == EACCES &&
        (::fstatat(dir_fd, file.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))) {
      return Ok();
    }
    return Error::FromErrno(error, fmt::format("open {}", name));
  }

  static Error TooMuch(std::string_view what, std::string_view where) {
    return Error(Code::kLimit, fmt::format("gitignore filter: too many {}{}{}", what,
                                           where.empty() ? "" : " at ", where));
  }

  int root_fd_;
  const GitignoreLimits& limits_;
  GitignoreFilter& filter_;
  std::vector<std::string> pending_;
  size_t total_bytes_ = 0;
};

Result<GitignoreFilter> GitignoreFilter::Load(int root_fd, const GitignoreLimits& limits) {
  GitignoreFilter filter;
  TRY(Loader(root_fd, limits, filter).Run());
  return filter;
}

}  // namespace sandglass::undo

#include "undo/gitignore_filter.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/rel_path.h"

namespace sandglass::undo {

void GitignoreFilter::PushLayer(std::string_view dir, std::vector<Layer>& layers) const {
  const auto found = by_dir_.find(dir);
  if (found == by_dir_.end()) return;
  layers.push_back({.base_size = dir.empty() ? 0 : dir.size() + 1, .rules = &found->second});
}

bool GitignoreFilter::IgnoredByLayers(std::string_view rel_path, PathKind kind,
                                      const std::vector<Layer>& layers) const {
  if (added_.Match(rel_path, kind) == Verdict::kIgnored) return true;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const Verdict verdict = layer->rules->Match(rel_path.substr(layer->base_size), kind);
    if (verdict != Verdict::kNone) return verdict == Verdict::kIgnored;
  }
  return exclude_.Match(rel_path, kind) == Verdict::kIgnored;
}

void GitignoreFilter::AddRules(std::string_view text) { added_ = GitignoreRules::Parse(text); }

bool GitignoreFilter::Ignores(std::string_view rel_path, PathKind kind) const {
  if (by_dir_.empty() && exclude_.empty() && added_.empty()) return false;
  std::vector<Layer> layers;
  PushLayer("", layers);
  for (size_t end = rel_path.find('/'); end != std::string_view::npos;
       end = rel_path.find('/', end + 1)) {
    const std::string_view parent = rel_path.substr(0, end);
    if (BaseName(parent) == ".git") return false;
    if (IgnoredByLayers(parent, PathKind::kDir, layers)) return true;
    PushLayer(parent, layers);
  }
  return BaseName(rel_path) != ".git" && IgnoredByLayers(rel_path, kind, layers);
}

namespace {

struct DirCloser {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirStream = std::unique_ptr<DIR, DirCloser>;

// Opens beneath `dir_fd` through no symbolic link at all. The answer carries errno when the
// descriptor is invalid.
Fd OpenBeneath(int dir_fd, const std::string& rel_path, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, dir_fd, rel_path.c_str(), &how, sizeof how)));
}

// Like OpenBeneath for a directory, in pieces, because a project may be deeper than the kernel
// takes in one path.
Fd OpenDirBeneath(int root_fd, std::string_view rel_path) {
  constexpr size_t kPieceBytes = 2048;
  Fd dir;
  int at = root_fd;
  while (rel_path.size() > kPieceBytes) {
    const size_t cut = rel_path.rfind('/', kPieceBytes);
    dir = OpenBeneath(at, std::string(rel_path.substr(0, cut)), O_PATH | O_DIRECTORY);
    if (!dir.valid()) return dir;
    at = dir.get();
    rel_path.remove_prefix(cut + 1);
  }
  return OpenBeneath(at, rel_path.empty() ? "." : std::string(rel_path), O_RDONLY | O_DIRECTORY);
}

bool IsAbsence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO;
}

// Everything up to one byte more than `max`, which tells the caller that there was more.
Result<std::string> ReadUpTo(int fd, size_t max, std::string_view name) {
  std::string text;
  char chunk[16 * 1024];
  while (text.size() <= max) {
    const ssize_t got = ::read(fd, chunk, std::min(sizeof chunk, max + 1 - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno(errno, fmt::format("read {}", name));
    if (got == 0) break;
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
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
    Fd fd = OpenDirBeneath(root_fd_, dir);
    if (!fd.valid()) return SkipOrFail(dir);
    TRY_ASSIGN(GitignoreRules rules, ReadRules(fd.get(), ".gitignore", dir));
    if (!rules.empty()) filter_.by_dir_.emplace(dir, std::move(rules));
    return QueueChildren(std::move(fd), dir);
  }

  Status SkipOrFail(const std::string& dir) const {
    const int error = errno;
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
    const Fd fd = OpenBeneath(dir_fd, file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!fd.valid()) {
      TRY(RefuseUnreadable(errno, dir_fd, file, name));
      return GitignoreRules();
    }
    struct stat st{};
    if (::fstat(fd.get(), &st) != 0) return Error::FromErrno(errno, fmt::format("stat {}", name));
    if (!S_ISREG(st.st_mode)) return GitignoreRules();
    TRY_ASSIGN(const std::string text, ReadUpTo(fd.get(), limits_.max_file_bytes, name));
    if (text.size() > limits_.max_file_bytes) return TooMuch("bytes in one rules file", name);
    total_bytes_ += text.size();
    if (total_bytes_ > limits_.max_total_bytes) return TooMuch("bytes in all rules files", name);
    return GitignoreRules::Parse(text);
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

#include "session/files/tree_walk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "base/thread_annotations.h"
#include "session/files/dir_entries.h"
#include "session/files/ignore_layers.h"
#include "session/files/opening.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kPortionNames = 256;
constexpr size_t kMostThreads = 16;

// A folder with its names on record; open until its last portion is done.
struct ListedFolder {
  Fd fd;
  std::string path;
  std::vector<WalkedName> names;
};

struct WaitingFolder {
  std::string path;
  IgnoreLayers layers;  // of the folders above
};

struct Task {
  WaitingFolder folder;                  // to be listed, or else
  std::shared_ptr<ListedFolder> listed;  // owned by its portions; `begin` of it and what follows
  size_t begin = 0;
};

// What is left to do. Nothing is left when the list is empty and nobody works on something that could add to it.
class TaskList {
 public:
  void Add(std::vector<Task>& tasks) {
    if (tasks.empty()) return;
    const MutexLock lock(mutex_);
    for (Task& task : tasks) tasks_.push_back(std::move(task));
    tasks.clear();
    changed_.NotifyAll();
  }

  // nullopt: all is done. Every task that was taken is given back by Done().
  std::optional<Task> Take() {
    MutexLock lock(mutex_);
    while (tasks_.empty() && taken_ > 0) changed_.Wait(mutex_);
    if (tasks_.empty()) return std::nullopt;
    Task task = std::move(tasks_.back());
    tasks_.pop_back();
    ++taken_;
    return task;
  }

  void Done() {
    const MutexLock lock(mutex_);
    if (--taken_ == 0 && tasks_.empty()) changed_.NotifyAll();
  }

  // What waits is dropped.
  void Fail(Error error) {
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::move(error);
    tasks_.clear();
    failed_ = true;
    changed_.NotifyAll();
  }
  bool failed() const { return failed_; }

  Status Outcome() {
    const MutexLock lock(mutex_);
    return error_ ? Status(*error_) : Ok();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Task> tasks_ GUARDED_BY(mutex_);
  size_t taken_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> error_ GUARDED_BY(mutex_);
  std::atomic<bool> failed_ = false;
};

struct Shared {
  int root_fd;
  const WalkOptions& options;
  TaskList tasks;
  std::atomic<uint64_t> folders = 0, unreadable = 0;
};

uint8_t TypeOf(int dir_fd, const char* name, uint8_t d_type) {
  if (d_type != DT_UNKNOWN) return d_type;
  struct stat st{};
  if (::fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return static_cast<uint8_t>(IFTODT(st.st_mode));
}

bool IsWanted(WalkKinds kinds, uint8_t d_type) {
  switch (kinds) {
    case WalkKinds::kFiles:
      return d_type == DT_REG;
    case WalkKinds::kFilesAndLinks:
      return d_type == DT_REG || d_type == DT_LNK;
    case WalkKinds::kEverything:
      return d_type != DT_UNKNOWN;
  }
  return false;
}

class Worker {
 public:
  Worker(Shared& shared, WalkVisitor& visitor) : shared_(shared), visitor_(visitor) {}

  void Run() {
    while (auto task = shared_.tasks.Take()) {
      if (shared_.options.stop.stop_requested())
        shared_.tasks.Fail(Error(Code::kCancelled, "the search was cancelled"));
      if (!shared_.tasks.failed()) Perform(*task);
      task.reset();  // its folder is closed before others go on
      shared_.tasks.Done();
    }
  }

 private:
  void Perform(Task& task) {
    if (task.listed != nullptr) return Visit(*task.listed, task.begin);
    if (Status done = List(std::move(task.folder)); !done.ok())
      shared_.tasks.Fail(std::move(done).error());
    shared_.tasks.Add(found_);
  }

  void Visit(const ListedFolder& folder, size_t begin) {
    const size_t count = std::min(kPortionNames, folder.names.size() - begin);
    visitor_.Visit({folder.fd.get(), folder.path, std::span(folder.names).subspan(begin, count)});
  }

  Status List(WaitingFolder waiting) {
    if (!visitor_.WantsFolder(waiting.path)) return Ok();
    if (++shared_.folders > shared_.options.max_folders)
      return Error(Code::kLimit, fmt::format("more than {} folders; search in a smaller one",
                                             shared_.options.max_folders));
    auto fd = OpenBeneath(shared_.root_fd, waiting.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok()) return Unreadable();
    auto listed = std::make_shared<ListedFolder>();
    listed->fd = std::move(*fd);
    listed->path = std::move(waiting.path);
    if (!ReadNames(*listed).ok()) return Unreadable();
    TRY(Divide(*listed, std::move(waiting.layers)));
    return Share(std::move(listed));
  }

  Status Unreadable() {
    ++shared_.unreadable;
    return Ok();
  }

  struct RawName {
    std::string name;
    uint8_t d_type;
  };

  Status ReadNames(const ListedFolder& folder) {
    raw_.clear();
    has_rules_ = false;
    return ForEachEntry(folder.fd.get(), buffer_, [&](std::string_view name, uint8_t d_type) {
      if (name == ".gitignore") has_rules_ = true;
      if (IsVisible(name))
        raw_.push_back({std::string(name), TypeOf(folder.fd.get(), name.data(), d_type)});
      return Ok();
    });
  }

  bool IsVisible(std::string_view name) const {
    const WalkOptions& options = shared_.options;
    if (options.hidden == Hidden::kSkip && name.starts_with('.')) return false;
    return options.ignore == IgnoreRules::kDisregard || name != ".git";
  }

  // Its files become names of the folder, its folders tasks.
  Status Divide(ListedFolder& folder, IgnoreLayers layers) {
    const bool respect = shared_.options.ignore == IgnoreRules::kRespect;
    if (respect && has_rules_)
      layers = IgnoreLayer::Add(std::move(layers), folder.fd.get(), folder.path);
    std::string path = folder.path.empty() ? "" : folder.path + "/";
    const size_t base = path.size();
    for (RawName& raw : raw_) {
      const bool is_folder = raw.d_type == DT_DIR;
      const bool wanted = IsWanted(shared_.options.kinds, raw.d_type);
      if (!is_folder && !wanted) continue;
      path.resize(base);
      path += raw.name;
      const auto kind = is_folder ? undo::PathKind::kDir : undo::PathKind::kFile;
      if (respect && IsIgnored(layers, path, kind)) continue;
      if (is_folder) TRY(AddFolder(path, layers));
      if (wanted)
        folder.names.push_back({std::move(raw.name), undo::NodeTypeOf(DTTOIF(raw.d_type))});
    }
    return Ok();
  }

  Status AddFolder(const std::string& path, const IgnoreLayers& layers) {
    const WalkOptions& options = shared_.options;
    if (!IsBeneath(options.only, path) && !IsBeneath(path, options.only)) return Ok();
    if (PathDepth(path) > options.max_depth)
      return Error(Code::kLimit,
                   fmt::format("folders are nested more than {} deep", options.max_depth));
    found_.push_back({.folder = {path, layers}, .listed = nullptr});
    return Ok();
  }

  // The first portion is this worker's; others are for whoever has nothing to do, and come before further folders are opened.
  Status Share(std::shared_ptr<ListedFolder> folder) {
    for (size_t begin = kPortionNames; begin < folder->names.size(); begin += kPortionNames)
      found_.push_back({.folder = {}, .listed = folder, .begin = begin});
    shared_.tasks.Add(found_);
    if (!folder->names.empty()) Visit(*folder, 0);
    return Ok();
  }

  Shared& shared_;
  WalkVisitor& visitor_;
  std::vector<char> buffer_;
  std::vector<RawName> raw_;  // of the folder that is being listed
  bool has_rules_ = false;
  std::vector<Task> found_;
};

Status CheckStart(int root_fd, const std::string& start) {
  const auto folder = OpenBeneath(root_fd, start, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (folder.ok()) return Ok();
  if (folder.error().sys_errno() == ENOTDIR)
    return Error(Code::kInvalid,
                 fmt::format("{} is no folder, or a symbolic link, which is not followed", start),
                 ENOTDIR);
  return folder.error();
}

}  // namespace

size_t WalkThreads() {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

Result<WalkCounts> WalkTree(int root_fd, const WalkOptions& options,
                            std::span<WalkVisitor* const> visitors) {
  CHECK(!visitors.empty());
  TRY(CheckStart(root_fd, options.start));
  Shared shared{.root_fd = root_fd, .options = options};
  std::vector<Task> first(1);
  first[0].folder.path = options.start;
  if (options.ignore == IgnoreRules::kRespect)
    first[0].folder.layers = IgnoreLayer::Above(root_fd, options.start);
  shared.tasks.Add(first);
  {
    std::vector<std::jthread> threads;
    for (WalkVisitor* visitor : visitors.subspan(1))
      threads.emplace_back([&shared, visitor] { Worker(shared, *visitor).Run(); });
    Worker(shared, *visitors.front()).Run();
  }
  TRY(shared.tasks.Outcome());
  return WalkCounts{shared.folders, shared.unreadable};
}

}  // namespace sandglass::session::files

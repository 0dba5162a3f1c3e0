#include "session/watch/project_watch.h"

#include <fmt/format.h>

#include <utility>

#include "base/hash.h"

namespace sandglass::session {
namespace {

constexpr size_t kMostRemembered = 100'000;

uint64_t KeyOf(std::string_view path) { return HashBytes64(AsBytes(path)); }

}  // namespace

void ProjectWatch::Begin(undo::UndoLog& log, const undo::UndoOptions& undo,
                         const LogActivity& activity, session::IsLiveWriter is_live_writer) {
  log_ = &log;
  is_live_writer_ = std::move(is_live_writer);
  watcher_ = std::make_unique<Watcher>(paths_, options_, undo, activity, *this);
}

bool ProjectWatch::IsLiveWriter(dev_t device, ino_t inode) {
  return is_live_writer_ && is_live_writer_(device, inode);
}

// --- From the watcher to the log.

void ProjectWatch::OnExternal(const PathNotes& changes) {
  {
    // Kept until the log tells of them, which it may do on another thread, and later.
    MutexLock lock(mutex_);
    if (telling_.size() > kMostRemembered) telling_.clear();
    for (const auto& [path, note] : changes) telling_[path].kinds.Add(note.kinds);
  }
  std::vector<std::string> paths;
  for (const auto& [path, note] : changes) paths.push_back(path);
  HandOver(paths);
}

void ProjectWatch::OnLostTrack() { HandOver({}); }

// A log that cannot take it says so once for each; the edits themselves are found by comparing.
void ProjectWatch::HandOver(const std::vector<std::string>& paths) {
  const Status noted = log_->NoteExternalModification(paths);
  if (!noted.ok())
    notices_.Add(fmt::format("somebody else changed files, which could not be noted: {}",
                             noted.error().message()));
}

void ProjectWatch::OnState(const WatchStatus& status) {
  if (status.state == WatchState::kPartial) notices_.Add(status.why);
  if (status.state == WatchState::kFailed)
    notices_.Add(
        fmt::format("{} is not watched for changes by others: {}", paths_.project, status.why));
}

// --- From the log to whoever listens.

ProjectWatch::Source ProjectWatch::SourceOf(const std::vector<std::string>& paths) const {
  for (const std::string& path : paths) {
    if (!telling_.contains(path)) return Source::kLog;
  }
  return Source::kWatcher;
}

// What the watcher told of before is no news when the log finds it; from then on it would be.
std::vector<std::string> ProjectWatch::News(const std::vector<std::string>& paths, Source source) {
  if (source == Source::kWatcher) {
    if (told_.size() > kMostRemembered) told_.clear();
    for (const std::string& path : paths) told_.insert(KeyOf(path));
    return paths;
  }
  std::vector<std::string> news;
  for (const std::string& path : paths) {
    if (told_.erase(KeyOf(path)) == 0) news.push_back(path);
  }
  return news;
}

ExternalKinds ProjectWatch::TakeKinds(const std::vector<std::string>& paths) {
  ExternalKinds kinds;
  for (const std::string& path : paths) {
    const auto note = telling_.find(path);
    if (note == telling_.end()) continue;
    kinds.Add(note->second.kinds);
    telling_.erase(note);
  }
  return kinds;
}

void ProjectWatch::OnExternalModification(const undo::Barrier& barrier) {
  if (options_.watching == Watching::kOff) return;
  ExternalModification event{.project = paths_.project};
  Source source = Source::kWatcher;
  if (barrier.paths.empty()) {
    event.extent = Extent::kWholeTree;
  } else {
    MutexLock lock(mutex_);
    source = SourceOf(barrier.paths);
    const std::vector<std::string> news = News(barrier.paths, source);
    if (news.empty()) return;
    SetPaths(news, event);
    if (source == Source::kWatcher) event.kinds = TakeKinds(news);
  }
  if (options_.policy == WatchPolicy::kBarrier && barrier.after.value != 0)
    event.barrier = barrier.after;
  if (source == Source::kWatcher) notices_.Add(NoticeOf(event));
  if (tell_) tell_(event);
}

}  // namespace sandglass::session

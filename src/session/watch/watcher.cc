#include "session/watch/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "session/watch/filesystem_watch.h"
#include "session/watch/own_work.h"
#include "undo/place.h"

namespace sandglass::session {
namespace {

using namespace std::chrono_literals;

constexpr size_t kFoldersAtATime = 64;

// Told late, a name may be another one than the one that was removed; what the open step says of names when it is over is about
// today's.
PathNotes TakeRemoved(PathNotes& external) {
  PathNotes removed;
  std::erase_if(external, [&](const auto& entry) {
    if (!entry.second.kinds.Has(ExternalKind::kRemoved)) return false;
    removed.insert(entry);
    return true;
  });
  return removed;
}

}  // namespace

Watcher::Watcher(undo::UndoPaths paths, WatchOptions options, const undo::UndoOptions& undo,
                 const LogActivity& activity, WatchListener& listener)
    : paths_(std::move(paths)),
      options_(std::move(options)),
      undo_(undo),
      activity_(activity),
      listener_(listener),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      pending_(options_.pending) {
  CHECK(stop_.valid());
  reader_ = std::thread([this] { Read(); });
}

Watcher::~Watcher() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));  // cannot fail: nobody else counts there
  pending_.Stop();
  reader_.join();
}

WatchStatus Watcher::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void Watcher::SetState(WatchStatus status) {
  {
    MutexLock lock(mutex_);
    const bool same = status_.state == status.state;
    status_ = status;
    if (same) return;
  }
  listener_.OnState(status);
}

// --- The reader.

bool Watcher::AwaitStop(std::chrono::milliseconds time) const {
  pollfd end{stop_.get(), POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(time.count())) > 0;
}

void Watcher::Read() {
  ::pthread_setname_np(::pthread_self(), "sg-watch");
  if (AwaitStop(options_.start_delay)) return;
  const Status read = ReadAll();
  if (!read.ok())
    SetState({.state = WatchState::kFailed, .folders = 0, .why = read.error().message()});
}

// What steps have done until now is known before anything is watched, so that nothing heard of is without its author.
Status Watcher::ReadAll() {
  TRY_ASSIGN(const auto place, undo::OpenPlace(paths_, undo::StoreAccess::kReadOnly));
  TRY_ASSIGN(OwnWork work, OwnWork::Open(*place));
  TRY_ASSIGN(const Exclusions exclusions, Exclusions::Load(place->root.get(), options_, undo_));
  std::thread judge([&] { JudgeAll(*place, work); });
  const Status read = ReadByAnyMeans(*place, exclusions);
  pending_.Stop();
  judge.join();
  return read;
}

Status Watcher::ReadByAnyMeans(const undo::Place& place, const Exclusions& exclusions) {
  if (options_.means == WatchMeans::kFilesystem) {
    const auto read = ReadFilesystem(place, exclusions);
    if (read) return *read;
  }
  TRY_ASSIGN(FolderWatch watch, FolderWatch::Open(place.root.get(), exclusions, pending_));
  TRY(ReadFolders(watch));
  if (watch.coverage() == Coverage::kWhole || AwaitStop(0ms)) return Ok();
  // More folders than can be watched: another means, if it can be had, else what there is of this one.
  const auto read = ReadFilesystem(place, exclusions);
  if (read) return *read;
  NotePartial(watch);
  return ReadFolders(watch);
}

std::optional<Status> Watcher::ReadFilesystem(const undo::Place& place,
                                              const Exclusions& exclusions) {
  auto watch = FilesystemWatch::Open(place.root.get(), paths_.project, exclusions, pending_);
  if (!watch.ok()) return std::nullopt;
  tells_late_ = true;
  SetState({.state = WatchState::kReady, .folders = 0, .why = {}});
  while (true) {
    TRY_ASSIGN(const Wake wake, AwaitEvents(watch->fd(), -1));
    if (wake == Wake::kStop) return Ok();
    if (wake == Wake::kEvents) TRY(watch->Drain());
  }
}

Result<Watcher::Wake> Watcher::AwaitEvents(int events, int timeout_ms) const {
  pollfd fds[] = {{events, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  if (::poll(fds, 2, timeout_ms) < 0 && errno != EINTR) return Error::FromErrno(errno, "poll");
  if (fds[1].revents != 0) return Wake::kStop;
  return fds[0].revents != 0 ? Wake::kEvents : Wake::kNothing;
}

// Until it is to end, or finds out that it cannot watch them all.
Status Watcher::ReadFolders(FolderWatch& watch) {
  const Coverage before = watch.coverage();
  auto walk = FolderWatch::Walk::kGoesOn;
  while (watch.coverage() == before) {
    TRY_ASSIGN(const Wake wake,
               AwaitEvents(watch.fd(), walk == FolderWatch::Walk::kGoesOn ? 0 : -1));
    if (wake == Wake::kStop) return Ok();
    if (wake == Wake::kEvents) TRY(watch.Drain());
    walk = watch.WalkOn(kFoldersAtATime);
    if (watch.coverage() == Coverage::kWhole) NoteWalk(watch, walk);
  }
  return Ok();
}

void Watcher::NoteWalk(const FolderWatch& watch, FolderWatch::Walk walk) {
  const bool done = walk == FolderWatch::Walk::kDone;
  SetState({.state = done ? WatchState::kReady : WatchState::kWalking,
            .folders = watch.folders(),
            .why = {}});
}

void Watcher::NotePartial(const FolderWatch& watch) {
  SetState({.state = WatchState::kPartial,
            .folders = watch.folders(),
            .why = fmt::format(
                "only {} folders of {} are watched for changes by others, which is as many as the "
                "kernel lets one user watch: raise it with sysctl fs.inotify.max_user_watches",
                watch.folders(), paths_.project)});
}

// --- The judge.

void Watcher::JudgeAll(const undo::Place& place, OwnWork& work) {
  ::pthread_setname_np(::pthread_self(), "sg-judge");
  Judge judge(place, work, undo_.symlinks,
              [this](dev_t device, ino_t inode) { return listener_.IsLiveWriter(device, inode); });
  while (pending_.Await()) {
    // At once as well, to have hold of a step that may be aborted before things are quiet.
    (void)work.Look(pending_.drains());
    auto batch = pending_.TakeWhenQuiet(options_.debounce);
    if (!batch) return;
    if (batch->extent == Extent::kWholeTree)
      listener_.OnLostTrack();
    else
      JudgeBatch(work, judge, std::move(*batch));
  }
}

void Watcher::JudgeBatch(OwnWork& work, Judge& judge, PendingChanges::Batch batch) {
  const uint64_t before = activity_.count();
  work.Mark();
  const std::vector<Judge::Sight> sights = judge.See(batch.notes);
  const Status looked = work.Look(batch.drains);
  PathNotes external = judge.External(sights, batch.notes);
  const bool is_final = looked.ok() && work.IsSettled() && !LogActivity::IsBusy(before) &&
                        activity_.count() == before;
  if (!is_final && !external.empty()) return pending_.PutBack(std::move(batch.notes));
  PathNotes waiting = tells_late_ && work.has_open_work() ? TakeRemoved(external) : PathNotes();
  if (waiting.empty())
    work.Forget(batch.drains);
  else
    pending_.PutBack(std::move(waiting));
  if (!external.empty()) listener_.OnExternal(external);
}

}  // namespace sandglass::session

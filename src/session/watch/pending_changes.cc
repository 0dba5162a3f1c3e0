#include "session/watch/pending_changes.h"

#include <algorithm>
#include <utility>

namespace sandglass::session {
namespace {

constexpr int kMostQuietTimes = 5;

}  // namespace

void PendingChanges::Add(std::string path, const ChangeNote& note) {
  MutexLock lock(mutex_);
  ++additions_;
  if (extent_ == Extent::kWholeTree) return;
  const bool was_empty = notes_.empty();
  const size_t bytes = path.size();
  const auto [at, is_new] = notes_.try_emplace(std::move(path), note);
  if (!is_new) {
    at->second.kinds.Add(note.kinds);
    return;
  }
  bytes_ += bytes;
  if (notes_.size() > limits_.max_paths || bytes_ > limits_.max_bytes) LoseTrackLocked();
  if (was_empty) changed_.NotifyAll();
}

void PendingChanges::LoseTrackLocked() {
  notes_.clear();
  bytes_ = 0;
  extent_ = Extent::kWholeTree;
}

void PendingChanges::LoseTrack() {
  MutexLock lock(mutex_);
  LoseTrackLocked();
  changed_.NotifyAll();
}

void PendingChanges::NoteDrained() {
  MutexLock lock(mutex_);
  ++drains_;
}

uint64_t PendingChanges::drains() const {
  MutexLock lock(mutex_);
  return drains_;
}

bool PendingChanges::Await() {
  MutexLock lock(mutex_);
  while (!stopped_ && !HasSomething()) changed_.Wait(mutex_);
  return !stopped_;
}

std::optional<PendingChanges::Batch> PendingChanges::TakeWhenQuiet(
    std::chrono::milliseconds quiet) {
  const auto latest = SteadyDeadline(quiet * kMostQuietTimes);
  MutexLock lock(mutex_);
  uint64_t before = additions_;
  while (!stopped_) {
    const auto until = std::min(SteadyDeadline(quiet), latest);
    while (!stopped_ && changed_.WaitUntil(mutex_, until)) {
    }
    if (additions_ == before || std::chrono::steady_clock::now() >= latest) break;
    before = additions_;
  }
  if (stopped_) return std::nullopt;
  bytes_ = 0;
  return Batch{.notes = std::exchange(notes_, {}),
               .extent = std::exchange(extent_, Extent::kPaths),
               .drains = drains_};
}

void PendingChanges::PutBack(PathNotes notes) {
  MutexLock lock(mutex_);
  if (extent_ == Extent::kWholeTree) return;
  for (auto& [path, note] : notes_) {
    const auto [at, is_new] = notes.try_emplace(path, note);
    if (!is_new) at->second.kinds.Add(note.kinds);
  }
  notes_ = std::move(notes);
  bytes_ = 0;
  for (const auto& [path, note] : notes_) bytes_ += path.size();
}

void PendingChanges::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

}  // namespace sandglass::session

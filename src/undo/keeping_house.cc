// LogCore's housekeeping: staying within the limits, deleting what was dropped, compressing packs, the heartbeat.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/io.h"
#include "undo/log_core.h"
#include "undo/reading.h"

namespace sandglass::undo {

uint64_t LogCore::RetainedBudget(uint64_t retained) const {
  struct statvfs info{};
  if (::fstatvfs(frame_->store(), &info) != 0) return options_.limits.max_retained_bytes;
  // What is retained would be free again if it were dropped.
  const uint64_t free = info.f_bavail * info.f_frsize + retained;
  return std::min(options_.limits.max_retained_bytes,
                  free / 100 * options_.limits.max_retained_percent_of_free);
}

// Contents, and what is on record. The page that every journal begins with is nothing to save by evicting a step or two.
static uint64_t CopiedBy(const StepRow& row) {
  return row.close.copied_bytes + row.journal_bytes -
         std::min<uint64_t>(row.journal_bytes, kJournalHeaderBytes);
}

LogCore::Budget LogCore::TakeStock() const {
  Budget budget{.copied = options_.limits.max_copied_bytes};
  for (const auto* rows : {&steps_, &redo_}) {
    for (const StepRow& row : *rows) {
      budget.used_copied += CopiedBy(row);
      budget.used_retained += row.close.retained_bytes;
    }
  }
  if (budget.used_retained > 0) budget.retained = RetainedBudget(budget.used_retained);
  return budget;
}

void LogCore::Budget::Free(const StepRow& row) {
  used_copied -= CopiedBy(row);
  used_retained -= row.close.retained_bytes;
}

// Each kind has its own limit, for commands that only look must not cost what others did. An empty step may go wherever it stands. Any
// other, also one that left everything as it was, can only go when it is the oldest: taking back the ones before it leads through it.
std::optional<size_t> LogCore::NextToEvict(const Budget& budget) const {
  if (steps_.size() <= 1) return std::nullopt;
  size_t changes = 0, empty = 0;
  for (const StepRow& row : steps_) {
    if (row.IsChange())
      ++changes;
    else if (row.IsEmpty())
      ++empty;
  }
  const size_t most = options_.limits.max_steps, others = steps_.size() - changes - empty;
  if (changes > most || others > most || budget.exceeded()) return 0;
  if (empty <= most) return std::nullopt;
  const auto oldest =
      std::find_if(steps_.begin(), steps_.end(), [](const StepRow& row) { return row.IsEmpty(); });
  return static_cast<size_t>(oldest - steps_.begin());
}

// Edits behind an empty step lie behind the one before it as well.
void LogCore::EvictAt(size_t index) {
  const StepRow row = steps_[index];
  if (index > 0)
    BestEffort("save barriers", MoveBarriers(row.header.id, steps_[index - 1].header.id));
  steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(index));
  BestEffort("drop an evicted step", DropRow(frame_->steps(), row));
  BestEffort("save barriers", DropBarriers(row.header.id));
}

std::vector<StepId> LogCore::Evict() {
  Budget budget = TakeStock();
  std::vector<StepId> evicted;
  while (const auto index = NextToEvict(budget)) {
    budget.Free(steps_[*index]);
    evicted.push_back(steps_[*index].header.id);
    EvictAt(*index);
  }
  if (!evicted.empty()) {
    ForgetFrozen();
    QueueEvent([this, evicted] { observer_->OnEvicted(evicted); });
  }
  if (objects_.Bloated()) CompactObjects();
  Poke();
  return evicted;
}

// Before any step: a redo is asked for rarely, and never without its rollback. The oldest one is the last to be redone, so what is left
// can still be. Steps do not make room for the newest one either: the next step drops it.
void LogCore::TrimRedo(RewindReport& report) {
  Budget budget = TakeStock();
  bool trimmed = false;
  while (redo_.size() > 1 && budget.exceeded()) {
    // First the steps that it took back: a folder in steps/ counts as undone only as long as redo/ says so.
    if (Status settled = DropLeftovers(); !settled.ok())
      return NoteFailure("drop what was taken back", settled, report);
    const StepRow row = redo_.front();
    redo_.erase(redo_.begin());
    NoteFailure("drop an old rollback", DropRow(frame_->redo(), row), report);
    report.warnings.push_back(
        fmt::format("step {} can no longer be redone: the undo store has reached its limits",
                    row.header.id.value));
    budget.Free(row);
    trimmed = true;
  }
  if (trimmed) ForgetFrozen();
}

void LogCore::CompactObjects() {
  std::unordered_set<uint64_t> uids;
  for (const StepRow& row : steps_) uids.insert(row.header.uid);
  // Only a saving: the old file stays good.
  const auto live = CollectIdentities({frame_->steps(), frame_->redo()});
  BestEffort("compact the table of objects",
             live.ok() ? objects_.Compact(*live, uids) : Status(live.error()));
}

// One rename makes a step's folder disappear; the deletion of its files can take its time. Not a byte of it goes before that: killed in
// between, the step would be listed and could not be taken back.
Status LogCore::DropFolder(int parent_fd, const std::string& folder, const CloseRecord* close) {
  if (close == nullptr || close->shared_anchors > 0) {
    auto dir = OpenSubdir(parent_fd, folder.c_str());
    if (dir.ok() && NameExists(dir->get(), kUnreturned))
      return KeepUnreturned(parent_fd, folder, dir->get());
    TRY(frame_->Hold(parent_fd, folder.c_str()));
    BestEffort("let go of a dropped step", ReleaseHeld());
  } else {
    TRY(frame_->Discard(parent_fd, folder.c_str()));
  }
  if (options_.compression == Compression::kOff)
    EmptyTrash();
  else
    Poke();
  return Ok();
}

// What is held in the trash has anchors of objects that live on under other names; also what a killed process left there.
Status LogCore::ReleaseHeld() {
  TRY_ASSIGN(const auto held, frame_->Held());
  for (const std::string& name : held) {
    if (auto dir = frame_->OpenHeld(name); dir.ok()) UnlinkSharedAnchors(dir->get());
    TRY(frame_->Release(name));
  }
  return Ok();
}

// The folder holds the only copies of something. What lives on elsewhere needs no further name here.
Status LogCore::KeepUnreturned(int parent_fd, const std::string& folder, int dir_fd) {
  TRY_ASSIGN(const std::string name, frame_->SetAside(parent_fd, folder.c_str()));
  UnlinkSharedAnchors(dir_fd);
  const std::string text =
      fmt::format("what could not be put back was moved to damaged/{} in the undo store", name);
  options_.log.Warn("set aside", {{"folder", folder}, {"why", text}});
  if (recovering_) recovery_.rewind.warnings.push_back(text);
  return Ok();
}

void LogCore::EmptyTrash() { BestEffort("empty the trash", frame_->EmptyTrash()); }

Status LogCore::DropRow(int parent_fd, const StepRow& row) {
  leftovers_.push_back({parent_fd, row.folder, row.close});
  return DropLeftovers();
}

Status LogCore::DropLeftovers() {
  if (!leftovers_.empty()) TRY(MakePowerSafe(Reach::kFolders));
  while (!leftovers_.empty()) {
    const Leftover& last = leftovers_.back();
    TRY(DropFolder(last.parent_fd, last.folder, &last.close));
    leftovers_.pop_back();
  }
  return Ok();
}

// Removing one of several names moves an object's ctime. That is our doing and no edit: its signature moves along.
void LogCore::UnlinkSharedAnchors(int step_dir) {
  const auto for_each_shared = [&](const auto& each) {
    ForEachAnchor(step_dir, [&](int folder, const char* name) {
      auto object = OpenObjectAt(place_->identifier, folder, name);
      if (!object.ok() || object->stat.nlink < 2) return;
      const auto signature = objects_.Find(object->id);
      each(folder, name, *object, signature && signature->Matches(object->stat));
    });
  };
  for_each_shared([&](int, const char*, const OpenObject& object, bool as_left) {
    Signature moving = Signature::Of(object.stat);
    moving.ctime_ns = Signature::kAnyCtime;
    if (as_left) objects_.Put(object.id, moving);
  });
  BestEffort("save signatures", objects_.Flush());
  for_each_shared([&](int folder, const char* name, const OpenObject& object, bool as_left) {
    if (::unlinkat(folder, name, 0) != 0 || !as_left) return;
    if (auto now = StatFd(object.fd.get()); now.ok()) objects_.Put(object.id, Signature::Of(*now));
  });
  BestEffort("save signatures", objects_.Flush());
}

Status LogCore::ClearRedo() {
  // First the steps that a redo would bring back: a folder in steps/ counts as undone only as long as redo/ says so.
  TRY(DropLeftovers());
  while (!redo_.empty()) {
    const StepRow row = redo_.back();
    redo_.pop_back();
    TRY(DropRow(frame_->redo(), row));
  }
  return Ok();
}

// --- Threads.

void LogCore::StartThreads() {
  if (options_.compression == Compression::kBackground) {
    housekeeper_ = std::thread([this] { HousekeeperLoop(); });
    Poke();  // the last user may have left trash
  }
}

// Before recovery, which may take long over one file.
void LogCore::StartHeart() {
  if (options_.heartbeat.count() > 0) heart_ = std::thread([this] { HeartLoop(); });
}

void LogCore::StopThreads() {
  {
    MutexLock lock(house_mutex_);
    house_stop_ = true;
    house_wakeup_.NotifyAll();
  }
  {
    MutexLock lock(current_mutex_);
    heart_stop_ = true;
    heart_wakeup_.NotifyAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
  if (heart_.joinable()) heart_.join();
}

void LogCore::Poke() {
  MutexLock lock(house_mutex_);
  house_poked_ = true;
  house_wakeup_.NotifyAll();
}

void LogCore::WaitForBackground() {
  MutexLock lock(house_mutex_);
  while (housekeeper_.joinable() && (house_poked_ || house_busy_)) house_idle_.Wait(house_mutex_);
}

void LogCore::HousekeeperLoop() {
  while (true) {
    {
      MutexLock lock(house_mutex_);
      house_busy_ = false;
      house_idle_.NotifyAll();
      while (!house_poked_ && !house_stop_) house_wakeup_.Wait(house_mutex_);
      if (house_stop_) return;
      house_poked_ = false;
      house_busy_ = true;
    }
    (void)frame_->EmptyTrash();  // what stays is tried again next time
    for (const std::string& name : ListNamesIfReadable(frame_->steps())) {
      {
        MutexLock lock(house_mutex_);
        if (house_stop_) return;
      }
      auto dir = OpenSubdir(frame_->steps(), name.c_str());
      if (!dir.ok()) continue;
      MutexLock pin(pack_mutex_);
      (void)CompressPack(dir->get(), file_sync());  // the raw pack stays good
    }
  }
}

// Without anybody to beat for it sleeps: an idle session wakes no processor.
void LogCore::HeartLoop() {
  MutexLock lock(current_mutex_);
  while (!heart_stop_) {
    if (current_ == nullptr && !rewind_beats_) {
      heart_wakeup_.Wait(current_mutex_);
      continue;
    }
    heart_wakeup_.WaitFor(current_mutex_, options_.heartbeat);
    const int64_t now = StampingNow();
    if (current_ != nullptr) current_->Beat(now);
    if (rewind_beats_) rewind_beats_->Beat(now);
  }
}

}  // namespace sandglass::undo

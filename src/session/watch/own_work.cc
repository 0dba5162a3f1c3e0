#include "session/watch/own_work.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/rel_path.h"
#include "undo/journal_view.h"
#include "undo/store_frame.h"

namespace sandglass::session {
namespace {

constexpr uint64_t kDrainsUntilRead = 2;  // one may have been under way

uint64_t UidOf(int wal_fd, const char* folder) {
  const auto tail = JournalTail::Open(wal_fd, folder);
  return tail.ok() ? tail->uid() : 0;
}

int64_t ChangedAt(const Fd& folder) {
  const auto stat = undo::StatFd(folder.get());
  return stat.ok() ? stat->ctime_ns : 0;
}

// What older steps left below such a folder, they left in another one.
bool HasReplacedAbove(const undo::StepView& view, std::string_view path) {
  while (!path.empty()) {
    path = ParentOf(path);
    const undo::Expected* above = view.expected().Find(path);
    if (above != nullptr && above->before_known && above->before != above->object) return true;
  }
  return false;
}

}  // namespace

Result<OwnWork> OwnWork::Open(const undo::Place& place) {
  OwnWork work(place);
  TRY_ASSIGN(work.wal_, undo::OpenSubdir(place.store.get(), "wal"));
  TRY_ASSIGN(work.steps_.dir, undo::OpenSubdir(place.store.get(), "steps"));
  TRY_ASSIGN(work.redo_.dir, undo::OpenSubdir(place.store.get(), "redo"));
  work.tails_[0].folder = undo::kInProgress;
  work.tails_[1].folder = undo::kRewind;
  TRY(work.Look(0));
  work.finished_.clear();
  return work;
}

// The tables last: what a step leaves is in them before it is over, as far as anybody can tell.
Status OwnWork::Look(uint64_t drains) {
  for (Tail& tail : tails_) LookAt(tail, drains);
  for (Shelf* shelf : {&steps_, &redo_}) LookAt(*shelf, drains);
  // What is on a shelf was not taken back: there it says what it left.
  std::erase_if(ended_, [this](const Ended& one) { return IsOnShelf(one.tail.uid()); });
  return signatures_.CatchUp(place_->store.get());
}

void OwnWork::LookAt(Tail& tail, uint64_t drains) {
  auto now = JournalTail::Open(wal_.get(), tail.folder);
  if (tail.open && (!now.ok() || now->uid() != tail.open->uid())) {
    (void)tail.open->CatchUp();  // what cannot be read of it has touched nothing that we know of
    ended_.push_back({std::move(*tail.open), drains});
    tail.open.reset();
  }
  if (!tail.open && now.ok()) tail.open = std::move(*now);
  if (tail.open) (void)tail.open->CatchUp();
}

void OwnWork::LookAt(Shelf& shelf, uint64_t drains) {
  const int64_t ctime_ns = ChangedAt(shelf.dir);
  if (ctime_ns == shelf.ctime_ns) return;
  // Within one tick of the clock it can change again without showing it.
  shelf.ctime_ns = StampingNow() > ctime_ns ? ctime_ns : 0;
  std::map<std::string, Known> known;
  for (const std::string& name : undo::ListNamesIfReadable(shelf.dir.get())) {
    const auto stat = undo::LookAt(shelf.dir.get(), name.c_str());
    const auto uid = stat ? Meet(shelf, name, *stat, drains) : std::nullopt;
    if (uid) known.emplace(name, Known{stat->ino, stat->ctime_ns, *uid});
  }
  shelf.known = std::move(known);
  std::ranges::sort(finished_, {}, &Finished::closed_ns);
}

std::optional<uint64_t> OwnWork::Meet(Shelf& shelf, const std::string& name,
                                      const undo::FileStat& stat, uint64_t drains) {
  const auto before = shelf.known.find(name);
  const bool has_before = before != shelf.known.end();
  if (has_before && before->second.inode == stat.ino && before->second.ctime_ns == stat.ctime_ns)
    return before->second.uid;
  auto dir = undo::OpenSubdir(shelf.dir.get(), name.c_str());
  if (!dir.ok()) return std::nullopt;
  const auto summary = undo::ReadJournalSummary(dir->get(), "journal");
  if (!summary.ok()) return std::nullopt;
  const uint64_t uid = summary->header.uid;
  if (has_before && before->second.uid == uid) return uid;
  finished_.push_back({.dir = std::move(*dir),
                       .uid = uid,
                       .closed_ns = summary->close.closed_ns,
                       .drains = drains,
                       .is_step = &shelf == &steps_,
                       .view = {}});
  return uid;
}

void OwnWork::Forget(uint64_t drains) {
  const auto is_read = [drains](const auto& work) {
    return work.drains + kDrainsUntilRead <= drains;
  };
  std::erase_if(ended_, is_read);
  std::erase_if(finished_, is_read);
}

OwnWork::Stamp OwnWork::StampNow() const {
  return {.open_uid = UidOf(wal_.get(), undo::kInProgress),
          .rewind_uid = UidOf(wal_.get(), undo::kRewind),
          .steps_ns = ChangedAt(steps_.dir),
          .redo_ns = ChangedAt(redo_.dir)};
}

bool OwnWork::IsSettled() const {
  const bool adopted = std::ranges::all_of(finished_, [this](const Finished& step) {
    return !step.is_step || signatures_.IsAdopted(step.uid);
  });
  return adopted && stamp_.rewind_uid == 0 && StampNow() == stamp_;
}

bool OwnWork::IsTouched(std::string_view path, undo::ObjectId object) const {
  return std::ranges::any_of(tails_, [&](const Tail& tail) {
    return tail.open && (tail.open->HasTouched(path) || tail.open->HasTouched(object));
  });
}

bool OwnWork::IsReplacedAbove(std::string_view path) const {
  return std::ranges::any_of(
      tails_, [path](const Tail& tail) { return tail.open && tail.open->HasReplacedAbove(path); });
}

bool OwnWork::IsOnShelf(uint64_t uid) const {
  const auto holds = [uid](const Shelf& shelf) {
    return std::ranges::any_of(shelf.known,
                               [uid](const auto& entry) { return entry.second.uid == uid; });
  };
  return holds(steps_) || holds(redo_);
}

bool OwnWork::WasTakenBack(std::string_view path, undo::ObjectId object) const {
  return std::ranges::any_of(ended_, [&](const Ended& one) {
    return one.tail.HasTouched(path) || one.tail.HasTouched(object);
  });
}

std::optional<undo::ObjectId> OwnWork::LeftAt(std::string_view path) {
  for (auto one = finished_.rbegin(); one != finished_.rend(); ++one) {
    if (!one->view) {
      auto view = undo::StepView::Open(one->dir.get());
      if (!view.ok())
        continue;  // it was taken back or evicted meanwhile, and what did that is here too
      one->view.emplace(std::move(*view));
    }
    if (const undo::Expected* left = one->view->expected().Find(path)) return left->object;
    if (HasReplacedAbove(*one->view, path)) return undo::kNoObject;
  }
  return std::nullopt;
}

}  // namespace sandglass::session

#include "undo/store_frame.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_set>

#include "base/io.h"
#include "undo/step_files.h"

namespace sandglass::undo {
namespace {

constexpr std::string_view kHeldPrefix = "held-";

std::optional<StepId> ParseStepId(std::string_view text) {
  StepId id;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id.value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

Status CheckVersion(int store_fd) {
  TRY_ASSIGN(auto version, ReadStoreVersion(store_fd));
  if (!version || *version == kFormatVersion) return Ok();
  return Error(Code::kVersion, fmt::format("the undo store has format {} and this program knows "
                                           "format {}; discard the store to go on "
                                           "without its history (the project is not touched)",
                                           *version, kFormatVersion));
}

}  // namespace

Result<Fd> TakeStoreLock(const Place& place) {
  const int store_fd = place.store.get();
  auto lock = OpenStoreFile(store_fd, "lock", O_RDWR | O_CREAT);
  if (!lock.ok())
    return lock.error().WithContext(fmt::format("lock the undo store {}", place.store_path));
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return Error::FromErrno(errno, "lock the store");
  auto holder = ReadFileAt(store_fd, "lock", 64);
  std::string who = holder.ok() && !holder->empty()
                        ? fmt::format(" (process {})", holder->substr(0, holder->find('\n')))
                        : "";
  return Error(
      Code::kLocked,
      fmt::format("another Sandglass{} is using the undo store {}; end it or try again later", who,
                  place.store_path));
}

namespace {

// A store holds identities of one project's objects: used with another project it would only see conflicts.
Status CheckProject(const Place& place) {
  auto text = ReadFileAt(place.store.get(), "project", kMaxStateFile);
  if (!text.ok()) return text.error().code() == Code::kNotFound ? Ok() : Status(text.error());
  TRY_ASSIGN(StoreOwner owner, ParseStoreOwner(*text));
  if (owner.root == place.root_id) return Ok();
  return Error(
      Code::kForeign,
      fmt::format(
          "the undo store {} belongs to another folder than {}: to the one that was {}; use "
          "that folder, or another store; if this one is a copy that took its place, "
          "discard the store to start anew",
          place.store_path, place.project_path, owner.path));
}

// Replaces a file that says something else, or is missing.
Status WriteIfOther(int store_fd, const char* name, const std::string& content) {
  const auto now = ReadFileAt(store_fd, name, kMaxStateFile);
  if (now.ok() && *now == content) return Ok();
  return ReplaceFileAt(store_fd, name, content);
}

// Says whose it is. Needs its lock.
Status Sign(const Place& place, int lock_fd) {
  const int store = place.store.get();
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock_fd, 0) == 0) (void)PWriteFully(lock_fd, AsBytes(pid), 0);
  TRY(WriteIfOther(store, "version", WriteVersion(kFormatVersion)));
  return WriteIfOther(store, "project",
                      WriteStoreOwner({.root = place.root_id,
                                       .path = place.project_path,
                                       .salt = place.identifier.salt(),
                                       .file_system = place.file_system}));
}

bool IsShortage(const Error& error) {
  const int why = error.sys_errno();
  return why == EMFILE || why == ENFILE || why == ENOMEM;
}

// Such an error tells nothing about what a file says, or whether it is there.
bool SaysNothing(const Error& error) { return IsShortage(error) || error.sys_errno() == EIO; }

Result<StepRow> TryReadRow(int folder_fd, const std::string& name) {
  auto dir = OpenSubdir(folder_fd, name.c_str());
  if (!dir.ok() && dir.error().sys_errno() != EIO) return dir.error();
  auto summary = dir.ok() ? ReadJournalSummary(dir->get(), "journal") : dir.error();
  if (summary.ok())
    return StepRow{name, std::move(summary->header), summary->close, false, summary->bytes};
  StepRow row{.folder = name, .damaged = true};
  if (IsShortage(summary.error())) return summary.error();
  const auto view = dir.ok() ? JournalView::Open(dir->get(), "journal") : dir.error();
  if (dir.ok() && !IsStillNamed(folder_fd, name, dir->get()))
    return Error(Code::kNotFound, "the step went away");
  if (view.ok()) {
    row.header = view->header();
  } else if (auto id = ParseStepId(name)) {
    row.header.id = *id;
    row.header.label = "(damaged)";
  } else {
    return Error(Code::kCorrupt, "not a step");
  }
  return row;
}

// Once more if another one has the name by now: a step was rolled back, say, and redone.
Result<StepRow> ReadRow(int folder_fd, const std::string& name) {
  constexpr int kLooks = 8;
  for (int look = 1;; ++look) {
    auto row = TryReadRow(folder_fd, name);
    const bool gone = !row.ok() && row.error().code() == Code::kNotFound;
    if (!gone || look == kLooks || !NameExists(folder_fd, name.c_str())) return row;
  }
}

// A damaged header does not say where the step belongs: its id does, among the positive ones.
void PlaceDamaged(std::vector<StepRow>& rows) {
  for (StepRow& row : rows) {
    if (!row.damaged || row.header.order != 0) continue;
    for (const StepRow& other : rows) {
      if (other.header.id < row.header.id)
        row.header.order = std::max(row.header.order, other.header.order);
    }
  }
}

}  // namespace

StepInfo StepRow::Info() const {
  return {.id = header.id,
          .kind = header.kind,
          .protection = damaged ? Protection::kUnprotected : close.protection,
          .label = header.label,
          .opened = {header.opened_ns},
          .closed = {close.closed_ns},
          .counts = close.counts,
          .copied_bytes = close.copied_bytes,
          .retained_bytes = close.retained_bytes,
          .damaged = damaged};
}

bool StepRow::IsEmpty() const { return !damaged && journal_bytes == EmptyJournalBytes(); }

Status CheckStore(const Place& place) {
  TRY_ASSIGN(const bool is_store, IsStore(place.store.get()));
  if (!is_store) {
    return Error(Code::kInvalid,
                 fmt::format("{} is not an undo store: it holds other things; choose an empty "
                             "folder or one that is a store",
                             place.store_path));
  }
  TRY(CheckVersion(place.store.get()));
  return CheckProject(place);
}

Result<std::unique_ptr<StoreFrame>> StoreFrame::Open(const Place& place) {
  std::unique_ptr<StoreFrame> frame(new StoreFrame(place));
  const int store = place.store.get();
  TRY(CheckStore(place));  // before the lock, whose file would be made and written to
  TRY_ASSIGN(frame->lock_, TakeStoreLock(place));
  TRY(CheckStore(place));  // again: it may have been somebody's who has just left it
  TRY(Sign(place, frame->lock_.get()));
  TRY_ASSIGN(frame->wal_, OpenOrMakeDir(store, "wal"));
  TRY_ASSIGN(frame->steps_, OpenOrMakeDir(store, "steps"));
  TRY_ASSIGN(frame->redo_, OpenOrMakeDir(store, "redo"));
  TRY_ASSIGN(frame->trash_, OpenOrMakeDir(store, "trash"));
  return frame;
}

Status StoreFrame::Discard(int parent_fd, const char* name) {
  return MoveToTrash(parent_fd, name, "");
}

Status StoreFrame::Hold(int parent_fd, const char* name) {
  return MoveToTrash(parent_fd, name, kHeldPrefix);
}

Result<std::vector<std::string>> StoreFrame::Held() const {
  TRY_ASSIGN(auto names, ListNames(trash_.get()));
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(kHeldPrefix); });
  return names;
}

Result<Fd> StoreFrame::OpenHeld(const std::string& held) const {
  return OpenSubdir(trash_.get(), held.c_str());
}

Status StoreFrame::Release(const std::string& held) { return Discard(trash_.get(), held.c_str()); }

Status StoreFrame::MoveToTrash(int parent_fd, const char* name, std::string_view prefix) {
  const std::string unique = fmt::format("{}{:016x}-{}", prefix, RandomId(), next_trash_++);
  if (::renameat(parent_fd, name, trash_.get(), unique.c_str()) == 0) return Ok();
  const int why = errno;
  if (why == ENOENT && !NameExists(parent_fd, name)) return Ok();
  return Error::FromErrno(why, fmt::format("discard {}", name));
}

Result<std::string> StoreFrame::SetAside(int parent_fd, const char* name) {
  TRY_ASSIGN(Fd damaged, OpenOrMakeDir(store(), "damaged"));
  const std::string unique = fmt::format("{}-{:016x}", name, RandomId());
  if (::renameat(parent_fd, name, damaged.get(), unique.c_str()) == 0) return unique;
  return Error::FromErrno(errno, fmt::format("set {} aside", name));
}

Status StoreFrame::EmptyTrash() {
  TRY_ASSIGN(const auto names, ListNames(trash_.get()));
  for (const std::string& name : names) {
    if (!name.starts_with(kHeldPrefix)) TRY(RemoveTreeAt(trash_.get(), name.c_str()));
  }
  return Ok();
}

Result<bool> LooksLikeStore(int store_fd) {
  const auto known = [](const std::string& name) {
    return std::any_of(std::begin(kStoreNames), std::end(kStoreNames),
                       [&](const char* each) { return name == each; });
  };
  TRY_ASSIGN(const auto names, ListNames(store_fd));
  return std::all_of(names.begin(), names.end(), known);
}

Result<bool> IsStore(int store_fd) {
  TRY_ASSIGN(const bool alone, LooksLikeStore(store_fd));
  if (alone) return true;
  const auto version = ReadStoreVersion(store_fd);
  if (!version.ok() && SaysNothing(version.error())) return version.error();
  if (!version.ok() || !*version) return false;
  const auto project = ReadFileAt(store_fd, "project", kMaxStateFile);
  if (!project.ok() && SaysNothing(project.error())) return project.error();
  return project.ok() && ParseStoreOwner(*project).ok();
}

bool IsStillNamed(int parent_fd, const std::string& name, int dir_fd) {
  struct stat there{}, opened{};
  return ::fstatat(parent_fd, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(dir_fd, &opened) == 0 && there.st_ino == opened.st_ino &&
         there.st_dev == opened.st_dev;
}

namespace {

Result<std::vector<StepRow>> ListIfThere(int store_fd, const char* folder) {
  const auto fd = OpenSubdir(store_fd, folder);
  if (fd.ok()) return ListSteps(fd->get());
  if (fd.error().code() == Code::kNotFound) return std::vector<StepRow>();
  return fd.error();
}

}  // namespace

void DropNotesOfOpenStep(int step_dir) {
  for (const char* note : {kTold, kUnreturned}) ::unlinkat(step_dir, note, 0);
}

bool IsReversedBy(const std::vector<StepRow>& rows, uint64_t uid) {
  return uid != 0 && std::any_of(rows.begin(), rows.end(), [&](const StepRow& row) {
           return row.header.reverses_uid == uid;
         });
}

Result<StepLists> ListForReader(int store_fd) {
  StepLists lists;
  TRY_ASSIGN(lists.steps, ListIfThere(store_fd, "steps"));
  TRY_ASSIGN(lists.redo, ListIfThere(store_fd, "redo"));
  std::erase_if(lists.steps,
                [&](const StepRow& row) { return IsReversedBy(lists.redo, row.header.uid); });
  std::erase_if(lists.redo,
                [&](const StepRow& row) { return IsReversedBy(lists.steps, row.header.uid); });
  return lists;
}

Result<std::vector<StepRow>> ListSteps(int folder_fd) {
  std::vector<StepRow> rows;
  TRY_ASSIGN(const auto names, ListNames(folder_fd));
  for (const std::string& name : names) {
    auto row = ReadRow(folder_fd, name);
    if (row.ok()) rows.push_back(std::move(*row));
    // Else it went away while we looked, or is no step. But a step that is only out of reach now must not be forgotten: its
    // number would be given away again.
    else if (IsShortage(row.error()))
      return row.error();
  }
  PlaceDamaged(rows);
  std::sort(rows.begin(), rows.end(), [](const StepRow& a, const StepRow& b) {
    return std::tie(a.header.order, a.header.id) < std::tie(b.header.order, b.header.id);
  });
  return rows;
}

Result<std::optional<uint32_t>> ReadStoreVersion(int store_fd) {
  const auto text = ReadFileAt(store_fd, "version", 64);
  if (!text.ok()) {
    if (text.error().code() == Code::kNotFound) return std::optional<uint32_t>();
    return text.error();
  }
  TRY_ASSIGN(uint32_t version, ParseVersion(*text));
  return std::optional(version);
}

Result<std::optional<std::vector<Barrier>>> ReadBarriers(int store_fd) {
  using Barriers = std::optional<std::vector<Barrier>>;
  const auto text = ReadFileAt(store_fd, "barriers", kMaxStateFile);
  if (!text.ok() && text.error().code() == Code::kNotFound) return Barriers(std::in_place);
  if (!text.ok() && text.error().code() == Code::kLimit) return Barriers();
  if (!text.ok()) return text.error();
  auto barriers = ParseBarriers(*text);
  return barriers.ok() ? Barriers(std::move(*barriers)) : Barriers();
}

std::vector<Barrier> BarriersInDoubt(const std::vector<StepRow>& steps, size_t redoable) {
  // What came after the newest step shows by signatures, unless a rollback has brought it back since.
  const size_t newest = redoable > 0 ? 1 : 2;
  if (steps.size() < newest) return {};
  const StepRow& row = steps[steps.size() - newest];
  return {{.after = row.header.id, .at = {row.close.closed_ns}, .redo_depth = 0, .paths = {}}};
}

namespace {

size_t BytesOf(const std::vector<std::string>& paths) {
  return std::accumulate(paths.begin(), paths.end(), size_t{0},
                         [](size_t sum, const std::string& path) { return sum + path.size(); });
}

// A barrier without paths stands for the whole tree, and for every other path that is told of.
void MergePaths(std::vector<std::string> from, std::vector<std::string>& to) {
  if (to.empty()) return;
  if (from.empty()) return to.clear();
  std::unordered_set<std::string> known(to.begin(), to.end());
  for (std::string& path : from) {
    if (known.insert(path).second) to.push_back(std::move(path));
  }
}

void WidenLongest(std::vector<Barrier>& barriers) {
  std::multimap<size_t, Barrier*, std::greater<>> by_length;
  size_t all = 0;
  for (Barrier& barrier : barriers) {
    const size_t bytes = BytesOf(barrier.paths);
    by_length.emplace(bytes, &barrier);
    all += bytes;
  }
  for (const auto& [bytes, barrier] : by_length) {
    if (bytes <= kMaxBarrierBytes && all <= kMaxBarriersBytes) return;
    barrier->paths.clear();
    all -= bytes;
  }
}

}  // namespace

bool IsTooLong(const std::vector<std::string>& paths) { return BytesOf(paths) > kMaxBarrierBytes; }

std::vector<Barrier> MergeBarriers(std::vector<Barrier> barriers) {
  std::vector<Barrier> merged;
  std::map<std::pair<StepId, uint32_t>, size_t> places;
  for (Barrier& barrier : barriers) {
    const auto [place, is_new] =
        places.try_emplace({barrier.after, barrier.redo_depth}, merged.size());
    if (is_new) {
      Barrier& first = merged.emplace_back(barrier);
      first.paths.resize(std::min<size_t>(first.paths.size(), 1));
    }
    Barrier& into = merged[place->second];
    into.at = std::max(into.at, barrier.at);
    MergePaths(std::move(barrier.paths), into.paths);
  }
  WidenLongest(merged);
  return merged;
}

Status SaveBarriers(int store_fd, const std::vector<Barrier>& barriers, FileSync sync) {
  return ReplaceFileAt(store_fd, "barriers", WriteBarriers(barriers), sync);
}

std::vector<HistoryEntry> MergeHistory(const std::vector<StepRow>& steps,
                                       const std::vector<Barrier>& barriers) {
  std::vector<HistoryEntry> history;
  const auto is_listed = [&](StepId id) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const StepRow& row) { return row.header.id == id; });
  };
  // Behind the step that is open, or older than every step that is left.
  const auto is_newest = [&](const Barrier& barrier) {
    return !is_listed(barrier.after) && barrier.after != StepId{0} && !steps.empty() &&
           barrier.at.ns >= steps.back().close.closed_ns;
  };
  for (const Barrier& barrier : barriers) {
    if (!is_listed(barrier.after) && !is_newest(barrier))
      history.push_back({.step = std::nullopt, .barrier = barrier});
  }
  for (const StepRow& row : steps) {
    history.push_back({.step = row.Info(), .barrier = std::nullopt});
    for (const Barrier& barrier : barriers) {
      if (barrier.after == row.header.id)
        history.push_back({.step = std::nullopt, .barrier = barrier});
    }
  }
  for (const Barrier& barrier : barriers) {
    if (is_newest(barrier)) history.push_back({.step = std::nullopt, .barrier = barrier});
  }
  return history;
}

uint64_t RandomId() {
  uint64_t id = 0;
  CHECK(::getrandom(&id, sizeof(id), 0) == sizeof(id));
  return id | 1;  // 0 means "none"
}

}  // namespace sandglass::undo

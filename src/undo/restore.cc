// LogCore's restore of single paths: brings them back to what they were before a step, as a new step that can itself be undone.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/past_reader.h"
#include "undo/reading.h"
#include "undo/rewind.h"
#include "undo/step_files.h"

namespace sandglass::undo {
namespace {

using Wanted = std::map<std::string, PastState>;

// An error says which of the paths it is about.
template <class T>
Result<T> About(std::string_view path, Result<T> result) {
  if (result.ok()) return result;
  return result.error().WithContext(
      fmt::format("restore {}", path.empty() ? "the project folder" : path));
}

Result<PastContent> OpenPast(const PastReader& past, const std::string& path) {
  TRY_ASSIGN(PastFile file, About(path, past.Open(path)));
  return std::move(file.content);
}

// The contents of wanted files. Where the restore itself is going to change what a content comes from (two files
// have exchanged their names, say), the content is set aside first, on disk, in the folder of the restore's own step: with that
// it goes away whatever happens.
class Contents {
 public:
  Contents(const PastReader& past, int step_dir) : past_(past), step_dir_(step_dir) {}

  Status SetAside(const Wanted& wanted) {
    for (const auto& [path, state] : wanted) {
      const bool changes =
          !state.source.empty() && state.source != path && wanted.contains(state.source);
      if (!changes || !S_ISREG(state.meta.mode)) continue;
      if (!folder_.valid()) {
        TRY_ASSIGN(folder_, OpenOrMakeDir(step_dir_, kFolder));
      }
      const std::string name = fmt::format("{}", aside_.size());
      TRY_ASSIGN(const PastContent content, OpenPast(past_, path));
      TRY_ASSIGN(const Fd file,
                 OpenStoreFile(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL));
      TRY(About(path, content.WriteTo(file.get())));
      aside_.emplace(path, name);
    }
    return Ok();
  }

  // To be asked for before the path itself changes.
  Result<PastContent> Of(const std::string& path) const {
    const auto found = aside_.find(path);
    if (found == aside_.end()) return OpenPast(past_, path);
    TRY_ASSIGN(Fd file, OpenStoreFile(folder_.get(), found->second.c_str(), O_RDONLY));
    TRY_ASSIGN(const FileStat stat, StatFd(file.get()));
    return PastContent::Of(
        {.fd = std::move(file), .id = kNoObject, .stat = stat, .readable = true});
  }

  Status Clear() {
    if (!folder_.valid()) return Ok();
    return RemoveTreeAt(step_dir_, kFolder);
  }

 private:
  static constexpr const char* kFolder = "aside";

  const PastReader& past_;
  const int step_dir_;
  Fd folder_;
  std::map<std::string, std::string> aside_;  // path and file name
};

// Makes paths what they were, through the interceptor like any other change.
class Restorer {
 public:
  Restorer(const Place& place, Interceptor& interceptor, const Contents& contents)
      : place_(place), interceptor_(interceptor), contents_(contents) {}

  Status Make(const std::string& path, const PastState& want) {
    if (path.empty()) return ApplyMeta(path, want.meta);
    Status parent = OpenParent(path);
    if (!parent.ok() && want.kind == PastState::Kind::kAbsent && !CanHold(parent.error()))
      return Ok();
    TRY(std::move(parent));
    auto now = OpenObjectAt(place_.identifier, dir_.get(), name_.c_str());
    if (!now.ok() && now.error().code() != Code::kNotFound) return now.error();
    if (want.kind == PastState::Kind::kAbsent) return now.ok() ? Remove(path, *now) : Ok();
    const bool becomes = now.ok() && CanBecome(*now, want);
    PastContent content;
    if (S_ISREG(want.meta.mode)) {
      // Before its content is asked for, which it may have to be read for. The metadata that it is about to get closes it again.
      Lifted replaced;
      if (becomes) TRY(Unlock(now->fd.get(), path, S_IRUSR | S_IWUSR, replaced));
      TRY_ASSIGN(content, contents_.Of(path));
    }
    if (now.ok() && !becomes) TRY(Remove(path, *now));
    if (!becomes) TRY(Create(want));
    const uint64_t own_bytes = becomes ? content.BytesOf(now->id) : 0;
    if (now.ok())
      now->fd.Reset();  // or its inode could not be kept by exchanging it for a fresh one
    if (S_ISREG(want.meta.mode))
      TRY(own_bytes > 0 ? Mend(path, content, own_bytes) : Fill(path, content));
    return ApplyMeta(path, want.meta);
  }

  // Folders once more at the end: filling them moved their times.
  Status ApplyMeta(const std::string& path, const Metadata& want) {
    TRY_ASSIGN(Fd fd, OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW));
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginMetadata({fd.get(), path}));
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd.get()));
    Status applied = ApplyMetadata(object, want);
    TRY(ticket.Commit(Outcome::Done()));
    return applied;
  }

  // What was opened goes back to what it was; a folder that is to become something else becomes that afterwards.
  void LowerFolders() {
    for (const auto& [path, lifted] : folders_) {
      auto fd = OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW);
      if (!fd.ok()) continue;  // it had to go
      if (auto object = OpenObjectFd(place_.identifier, fd->get()); object.ok())
        Lower(*object, lifted);
    }
    folders_.clear();
  }

 private:
  // Opens what keeps its owner out, as a rewind does. It is on record like any other change, should the restore fail.
  Status Unlock(int fd, std::string_view path, uint32_t bits, Lifted& lifted) {
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd));
    const bool permitted = ::geteuid() == 0 || (object.stat.mode & bits) == bits;
    if (permitted && !object.stat.locked) return Ok();
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginMetadata({fd, path}));
    Lift(object, permitted ? 0 : bits, lifted);
    return ticket.Commit(Outcome::Done());
  }
  Status UnlockParent() {
    Lifted lifted;
    TRY(Unlock(dir_.get(), dir_path_, S_IRWXU, lifted));
    if (lifted.mode || lifted.flags != 0) folders_.try_emplace(dir_path_, lifted);
    return Ok();
  }

  // By writing to it. What has other names must not change under those, unless it is the very object that was here then.
  static bool CanBecome(const OpenObject& now, const PastState& want) {
    if ((now.stat.mode & S_IFMT) != (want.meta.mode & S_IFMT) || now.stat.IsSymlink()) return false;
    return now.stat.IsDirectory() || now.stat.nlink == 1 || now.id == want.object;
  }
  // Nothing is below a folder that is not there.
  static bool CanHold(const Error& error) {
    return error.code() != Code::kNotFound && error.sys_errno() != ENOTDIR &&
           error.sys_errno() != ELOOP;
  }
  Status OpenParent(const std::string& path) {
    TRY_ASSIGN(dir_, OpenDirBeneath(place_.root.get(), ParentOf(path)));
    dir_path_ = std::string(ParentOf(path));
    name_ = std::string(BaseName(path));
    return Ok();
  }
  NameRef Here() const { return {{dir_.get(), dir_path_}, name_}; }

  template <class Op>
  Status Do(Result<Ticket> ticket, Op op) {
    if (!ticket.ok()) return ticket.error();
    const int err = ticket->performed() || op() == 0 ? 0 : errno;
    TRY(ticket->Commit(err == 0 ? Outcome::Done() : Outcome::Failed(err)));
    if (err != 0) return Error::FromErrno(err, "make or remove it");
    return Ok();
  }

  Status Remove(const std::string& path, const OpenObject& now) {
    const int flags = now.stat.IsDirectory() ? AT_REMOVEDIR : 0;
    Lifted gone;
    TRY(UnlockParent());
    TRY(Unlock(now.fd.get(), path, 0, gone));
    Status removed = Do(interceptor_.BeginRemove(Here()),
                        [&] { return ::unlinkat(dir_.get(), name_.c_str(), flags); });
    if (!removed.ok() && removed.error().sys_errno() == ENOTEMPTY) {
      return Error(Code::kConflict, "it did not exist then, but holds other files now");
    }
    return removed;
  }

  Status Create(const PastState& want) {
    const Metadata& meta = want.meta;
    TRY(UnlockParent());
    return Do(interceptor_.BeginCreate(Here(), NodeTypeOf(meta.mode)), [&] {
      return MakeNode(dir_.get(), name_, {meta.mode, meta.rdev, meta.symlink_target, meta.flags});
    });
  }

  // By name, once the ticket is there: it may have put a fresh inode in its place.
  template <class Op>
  Status Write(Result<Ticket> ticket, int flags, Op op) {
    if (!ticket.ok()) return ticket.error();
    Fd out(::openat(dir_.get(), name_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags));
    if (!out.valid()) {
      const int err = errno;
      TRY(ticket->Commit(Outcome::Failed(err)));
      return Error::FromErrno(err, "open it for writing");
    }
    Status written = op(out.get());
    TRY(ticket->Commit(Outcome::Done()));
    return written;
  }

  Status Fill(const std::string& path, const PastContent& content) {
    TRY_ASSIGN(const Fd fd, OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW));
    return Write(
        interceptor_.BeginOpenForWrite({fd.get(), path}, Truncate::kYes, WriteVisibility::kUnseen),
        O_TRUNC, [&](int out) { return content.WriteTo(out); });
  }

  // It still holds the first `own_bytes` itself, but for what steps kept of them.
  Status Mend(const std::string& path, const PastContent& content, uint64_t own_bytes) {
    TRY_ASSIGN(const Fd fd, OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW));
    TRY_ASSIGN(const FileStat now, StatFd(fd.get()));
    const ObjectRef object{fd.get(), path};
    const auto resize = [&](uint64_t size) {
      return Write(interceptor_.BeginContent(object, ContentChange::TruncateTo(size)), 0,
                   [&](int out) { return SetSize(out, size); });
    };
    if (now.size > own_bytes) TRY(resize(own_bytes));
    if (content.size() > own_bytes) TRY(resize(content.size()));
    return content.ForEachPiece([&](uint64_t offset, ByteView bytes) {
      return Write(interceptor_.BeginContent(object, ContentChange::Range(offset, bytes.size())), 0,
                   [&](int out) { return PWriteFully(out, bytes, static_cast<off_t>(offset)); });
    });
  }
  static Status SetSize(int fd, uint64_t size) {
    if (::ftruncate(fd, static_cast<off_t>(size)) == 0) return Ok();
    return Error::FromErrno(errno, "set the size of a restored file");
  }

  const Place& place_;
  Interceptor& interceptor_;
  const Contents& contents_;
  Fd dir_;
  std::string dir_path_, name_;
  std::map<std::string, Lifted> folders_;
};

// What is restored in a folder may move its times, though no step changed the folder itself.
void AddFoldersBetween(std::string_view top, std::vector<std::string>& paths) {
  std::set<std::string, std::less<>> folders;
  for (const std::string& path : paths) {
    for (std::string_view up = ParentOf(path); up.size() > top.size(); up = ParentOf(up)) {
      if (!folders.emplace(up).second) break;
    }
  }
  paths.insert(paths.end(), folders.begin(), folders.end());
}

// `lost` is told which paths cannot become what they were.
Result<Wanted> Collect(const Place& place, const PastReader& past,
                       std::span<const std::string> paths, std::vector<Conflict>& lost) {
  Wanted wanted;
  for (const std::string& raw : paths) {
    TRY_ASSIGN(std::string path, About(raw, NormalizeRelPath(raw)));
    std::vector<std::string> all = past.ChangedBelow(path);
    Looker looker(place);
    const bool here = !all.empty() || looker.Stat(path);
    TRY(looker.failure());
    if (!here) {
      return Error(Code::kNotFound,
                   fmt::format("{} does not exist, and did not exist before that step", path));
    }
    if (all.empty()) continue;  // as it was
    AddFoldersBetween(path, all);
    all.push_back(path);
    for (const std::string& each : all) {
      if (wanted.contains(each)) continue;
      auto state = past.LookAt(each);
      if (state.ok()) {
        wanted[each] = std::move(*state);
      } else if (state.error().code() == Code::kConflict) {
        lost.push_back({ConflictKind::kReplaced, each, state.error().message()});
      } else {
        return About(each, std::move(state)).error();
      }
    }
    // Folders above that are gone must come back first.
    for (std::string_view up = ParentOf(path); !up.empty(); up = ParentOf(up)) {
      const std::string dir(up);
      if (wanted.contains(dir) || OpenDirBeneath(place.root.get(), dir).ok()) break;
      TRY_ASSIGN(PastState state, About(dir, past.LookAt(dir)));
      if (state.kind == PastState::Kind::kPresent) wanted[dir] = std::move(state);
    }
  }
  return wanted;
}

bool LooksLike(const Metadata& now, const Metadata& want) {
  const bool same_size = !S_ISREG(want.mode) || now.size == want.size;
  return same_size && now.mode == want.mode && now.uid == want.uid && now.gid == want.gid &&
         now.rdev == want.rdev && now.mtime_ns == want.mtime_ns && now.flags == want.flags &&
         now.xattrs == want.xattrs && now.symlink_target == want.symlink_target;
}

// Is the path what it was? In doubt it is not. Contents are compared only where all else is the same.
bool IsSoAlready(const Place& place, const PastReader& past, const std::string& path,
                 const PastState& want) {
  const auto fd = OpenBeneath(place.root.get(), path, O_PATH | O_NOFOLLOW);
  if (want.kind == PastState::Kind::kAbsent)
    return !fd.ok() && fd.error().code() == Code::kNotFound;
  if (!fd.ok()) return false;
  const auto now = OpenObjectFd(place.identifier, fd->get());
  if (!now.ok()) return false;
  // A name of something that has others, and was not here then, has to become a file of its own.
  if (!now->stat.IsDirectory() && now->stat.nlink > 1 && now->id != want.object) return false;
  const auto meta = CaptureMetadata(*now);
  if (!meta.ok() || !LooksLike(*meta, want.meta)) return false;
  if (!S_ISREG(want.meta.mode)) return true;
  const auto then = past.Open(path);
  if (!then.ok() || !now->readable) return false;
  const auto same = then->content.IsIn(*now);
  return same.ok() && *same;
}

// Folders stay as long as anything does: what happens in them moves their times.
void DropWhatIsSo(const Place& place, const PastReader& past, Wanted& wanted) {
  bool all_so = true;
  for (auto it = wanted.begin(); it != wanted.end();) {
    const bool so = IsSoAlready(place, past, it->first, it->second);
    all_so = all_so && so;
    const bool folder =
        it->second.kind == PastState::Kind::kPresent && S_ISDIR(it->second.meta.mode);
    it = so && !folder ? wanted.erase(it) : std::next(it);
  }
  if (all_so) wanted.clear();
}

// What the policy keeps from being made is not made, as in a rewind: what has taken its place goes, unless it is a symlink itself.
Status LeaveLinks(const Place& place, Wanted& wanted, std::vector<std::string>& warnings) {
  Looker looker(place);
  for (auto it = wanted.begin(); it != wanted.end();) {
    auto& [path, want] = *it;
    if (want.kind == PastState::Kind::kAbsent || !S_ISLNK(want.meta.mode)) {
      ++it;
      continue;
    }
    warnings.push_back(LinkLeftOut(path));
    const auto now = looker.Stat(path);
    const bool in_its_place = now && !now->IsSymlink();
    if (in_its_place) want = PastState{};
    it = in_its_place ? std::next(it) : wanted.erase(it);
  }
  return looker.failure();
}

Status Apply(Restorer& restorer, const Wanted& wanted) {
  // What has to go goes deepest first; what has to come back comes shallowest first; folders' times last.
  for (auto it = wanted.rbegin(); it != wanted.rend(); ++it) {
    if (it->second.kind == PastState::Kind::kAbsent)
      TRY(About(it->first, restorer.Make(it->first, it->second)));
  }
  for (const auto& [path, state] : wanted) {
    if (state.kind == PastState::Kind::kPresent) TRY(About(path, restorer.Make(path, state)));
  }
  restorer.LowerFolders();
  for (auto it = wanted.rbegin(); it != wanted.rend(); ++it) {
    if (it->second.kind == PastState::Kind::kPresent && S_ISDIR(it->second.meta.mode)) {
      TRY(About(it->first, restorer.ApplyMeta(it->first, it->second.meta)));
    }
  }
  return Ok();
}

// What other hands did to the paths, as one look tells.
Result<std::vector<Conflict>> FindIntrusions(const Place& place, const ObjectsTable& objects,
                                             const PastReader& past, const Wanted& wanted) {
  std::vector<Conflict> conflicts;
  Looker looker(place);
  for (const auto& [path, state] : wanted) {
    const auto found = looker.At(path);
    if (!found) continue;
    if (const auto kind =
            found->id == state.object ? std::nullopt : past.Intrusion(path, found->id)) {
      conflicts.push_back({*kind, path,
                           *kind == ConflictKind::kOccupied ? "has been created since"
                                                            : "has been replaced since"});
      continue;
    }
    TRY_ASSIGN(const bool as_left, LooksAsLeft(place, objects, path, *found));
    // Whoever changed it before the step did so to what it is to be.
    if (as_left || IsSoAlready(place, past, path, state)) continue;
    conflicts.push_back({ConflictKind::kEdited, path, "has been changed since"});
  }
  TRY(looker.failure());
  return conflicts;
}

// What other hands did to the paths between the steps.
std::vector<Conflict> FindCrossed(std::span<const Barrier> barriers, const PastReader& past,
                                  const Wanted& wanted) {
  std::vector<Conflict> conflicts;
  for (const Barrier& barrier : barriers) {
    if (barrier.paths.empty() && past.Today(barrier.after, ""))
      conflicts.push_back({ConflictKind::kBarrier, "",
                           "something outside changed since; what exactly is unknown",
                           barrier.after});
    for (const std::string& path : barrier.paths) {
      const auto today = past.Today(barrier.after, path);
      if (today && wanted.contains(*today))
        conflicts.push_back({ConflictKind::kBarrier, *today, "was changed from outside since"});
    }
  }
  return conflicts;
}

}  // namespace

struct LogCore::RestorePlan {
  PastReader past;
  Wanted wanted;
  std::vector<Conflict> lost;  // no force helps there
  Fd step_dir;                 // of the restore's own step

  bool nothing_to_do() const { return wanted.empty() && lost.empty(); }
};

Result<LogCore::RestorePlan> LogCore::PlanRestoreLocked(StepId step,
                                                        std::span<const std::string> paths,
                                                        RewindReport& report) {
  if (paths.empty()) return Error(Code::kInvalid, "which paths? Name at least one");
  TRY(SettleForRewind());
  TRY_ASSIGN(PastReader past, PastReader::Before(*place_, step));
  std::vector<Conflict> lost;
  TRY_ASSIGN(Wanted wanted, Collect(*place_, past, paths, lost));
  DropWhatIsSo(*place_, past, wanted);
  if (options_.symlinks != SymlinkPolicy::kReadWrite)
    TRY(LeaveLinks(*place_, wanted, report.warnings));
  report.conflicts = lost;
  if (wanted.empty()) return RestorePlan{std::move(past), {}, std::move(lost), Fd()};
  TRY_ASSIGN(const auto intrusions, FindIntrusions(*place_, objects_, past, wanted));
  Append(intrusions, report.conflicts);
  Append(FindCrossed(barriers_, past, wanted), report.conflicts);
  return RestorePlan{std::move(past), std::move(wanted), std::move(lost), Fd()};
}

// What making `path` so would change; nullopt: nothing.
static std::optional<Change> PlannedChange(const std::string& path, const PastState& want,
                                           const std::optional<FileStat>& now) {
  const bool present = want.kind == PastState::Kind::kPresent;
  const auto size = [](uint32_t mode, uint64_t bytes) { return S_ISREG(mode) ? bytes : 0; };
  Change change{.kind = ChangeKind::kModified, .path = path, .old_path = {}};
  if (now) change.old_size = size(now->mode, now->size);
  if (present) change.new_size = size(want.meta.mode, want.meta.size);
  if (!now && !present) return std::nullopt;
  if (!now) change.kind = ChangeKind::kCreated;
  if (!present) change.kind = ChangeKind::kDeleted;
  return change;
}

Result<RewindReport> LogCore::PlanRestore(StepId step, std::span<const std::string> paths) {
  LifecycleLock lock(*this);
  RewindReport report;
  TRY_ASSIGN(RestorePlan plan, PlanRestoreLocked(step, paths, report));
  Looker looker(*place_);
  for (const auto& [path, want] : plan.wanted) {
    if (IsSoAlready(*place_, plan.past, path, want)) continue;  // a folder
    if (auto change = PlannedChange(path, want, looker.Stat(path)))
      report.changes.push_back(std::move(*change));
  }
  return report;
}

// All under one lock: what happened before is in a closed step, and nothing gets in between the look at it and the new step. That takes the
// restore's operations only, because a restore that fails aborts it, and with it all that it has recorded.
Result<LogCore::RestorePlan> LogCore::BeginRestore(StepId step, std::span<const std::string> paths,
                                                   Force force, RewindReport& report) {
  LifecycleLock lock(*this);
  TRY_ASSIGN(RestorePlan plan, PlanRestoreLocked(step, paths, report));
  if (!plan.lost.empty())
    return Refusal(fmt::format("what was before step {} cannot be restored", step.value),
                   plan.lost);
  if (!report.conflicts.empty() && force == Force::kNo) {
    return Refusal(
        fmt::format("what was before step {} cannot be restored without force (undo brings back "
                    "what that replaces)",
                    step.value),
        report.conflicts);
  }
  if (plan.nothing_to_do()) return plan;
  restoring_ = std::this_thread::get_id();
  auto id = OpenLocked({.kind = StepKind::kApi,
                        .label = fmt::format("restore from before step {}", step.value),
                        .id = {}});
  if (!id.ok()) {
    LetOthersIn();
    return id.error();
  }
  report.steps.push_back(*id);
  auto dir = OpenSubdir(frame_->wal(), kInProgress);
  if (!dir.ok()) {
    (void)DenyLocked();  // still empty
    return dir.error();
  }
  plan.step_dir = std::move(*dir);
  return plan;
}

Status LogCore::EndRestore(StepId id) {
  LifecycleLock lock(*this);
  if (current() == nullptr || current()->header().id != id) {
    return Error(Code::kDenied, fmt::format("step {} was taken back while it restored", id.value));
  }
  TRY(CloseLocked({}));
  return Ok();
}

Status LogCore::FillRestore(const RestorePlan& plan) {
  Contents contents(plan.past, plan.step_dir.get());
  TRY(contents.SetAside(plan.wanted));
  Interceptor interceptor(*this, Entrant::kRestore);
  Restorer restorer(*place_, interceptor, contents);
  TRY(Apply(restorer, plan.wanted));
  return contents.Clear();
}

Result<RewindReport> LogCore::Restore(StepId step, std::span<const std::string> paths,
                                      Force force) {
  RewindReport report;
  TRY_ASSIGN(RestorePlan plan, BeginRestore(step, paths, force, report));
  if (plan.nothing_to_do()) return report;
  const StepId id = report.steps.back();
  Status applied = FillRestore(plan);
  if (applied.ok()) applied = EndRestore(id);
  if (!applied.ok()) {
    // A denial took the step back already, and another one may be open by now.
    Status aborted = Deny(id);
    if (aborted.ok()) return applied.error();
    return applied.error().WithContext(
        fmt::format("and could not be taken back ({})", aborted.error().message()));
  }
  TRY_ASSIGN(report.changes, ReadChanges(*place_, id));
  return report;
}

}  // namespace sandglass::undo

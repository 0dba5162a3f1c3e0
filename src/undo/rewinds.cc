// LogCore's rewinds: rollback, redo and abort (recovery.cc has the fourth). All of them take a step back with Rewind() while a StepWriter in
// wal/rewind records what that does; the rename of wal/rewind to its place is the moment at which it has happened. A rewind that is
// killed before that moment is itself taken back by the next open. An abort keeps no reversal: its moment is the rename of the step to
// wal/aborted.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/verify.h"

namespace sandglass::undo {
namespace {

// By what the step itself counted: a step that left things as they were does so when it is redone, whatever that takes.
ChangeCounts Inverse(ChangeCounts counts) {
  std::swap(counts.created, counts.deleted);
  return counts;
}

// What a rewind did, by what it recorded. Of what a person had edited it noted no after-state: there a look tells the size.
Result<std::vector<Change>> ChangesOf(const Place& place, StepWriter& recorder) {
  TRY_ASSIGN(StepView own, StepView::Open(recorder.files().dir()));
  std::vector<Change> changes = own.Changes();
  Looker looker(place);
  for (Change& change : changes) {
    if (change.kind == ChangeKind::kDeleted) continue;
    if (const auto stat = looker.Stat(change.path)) change.new_size = stat->size;
  }
  return changes;
}

// What deleting `name` with all below would free. Not what has other names: these keep it.
uint64_t BytesFreedBy(int parent_fd, const char* name) {
  const auto stat = LookAt(parent_fd, name);
  if (!stat) return 0;
  if (!stat->IsDirectory()) return stat->nlink == 1 ? stat->blocks * 512 : 0;
  const auto dir = OpenSubdir(parent_fd, name);
  if (!dir.ok()) return 0;
  uint64_t bytes = 0;
  for (const std::string& each : ListNamesIfReadable(dir->get()))
    bytes += BytesFreedBy(dir->get(), each.c_str());
  return bytes;
}

// Would `need` bytes fit where both are, if the store had `freed` less?
bool Fit(uint64_t need, int store_fd, int root_fd, uint64_t freed) {
  struct stat store{}, root{};
  const bool together =
      ::fstat(store_fd, &store) == 0 && ::fstat(root_fd, &root) == 0 && store.st_dev == root.st_dev;
  const auto fits_at = [&](int fd, uint64_t more) {
    struct statvfs info{};
    return ::fstatvfs(fd, &info) != 0 || info.f_bavail * info.f_frsize + more > need;
  };
  return fits_at(store_fd, freed) && fits_at(root_fd, together ? freed : 0);
}

}  // namespace

// --- One rewind.

Result<LogCore::Source> LogCore::Source::Open(int parent_fd, const std::string& folder) {
  TRY_ASSIGN(Fd dir, OpenSubdir(parent_fd, folder.c_str()));
  TRY_ASSIGN(StepView view, StepView::Open(dir.get()));
  return Source{.files = std::make_unique<StepFiles>(std::move(dir)), .view = std::move(view)};
}

Status LogCore::RunRewind(Source& source, Force force, const std::unordered_set<ObjectId>* keep,
                          RewindReport& report, StepRow& reversal) {
  TRY(CheckSpace(source.view, source.spare_redo));
  if (force == Force::kYes) shadows_.Disown();
  MutexLock pin(pack_mutex_);
  JournalHeader header = source.view.header();
  header.reverses_uid = header.uid;
  header.uid = RandomId();
  TRY_ASSIGN(auto recorder, StepWriter::Create(*place_, frame_->wal(), kRewind, header,
                                               {.durability = options_.durability}));
  TRY_ASSIGN(auto beats, RewindBeats::Start(*this));
  const RewindInput input{.place = *place_,
                          .objects = objects_,
                          .view = source.view,
                          .files = *source.files,
                          .recorder = recorder.get(),
                          .force = force,
                          .symlinks = options_.symlinks,
                          .signatures = source.signatures,
                          .folder_renames = &folder_renames_,
                          .keep = keep,
                          .progress = ProgressWithin(source.view)};
  const size_t conflicts_before = report.conflicts.size();
  Status done = Rewind(input, report);
  if (done.ok()) {
    const bool as_planned = report.conflicts.size() == conflicts_before && keep == nullptr;
    // What force crossed is not what the step left there: the step's own sizes say nothing about it.
    const bool undisturbed = as_planned && report.conflicts.empty();
    auto changes =
        undisturbed ? Result(source.view.InverseChanges()) : ChangesOf(*place_, *recorder);
    if (changes.ok()) {
      const auto close = source.view.journal().Close();
      done = recorder->Close(
          Now().ns, as_planned && close.ok() ? Inverse(close->counts) : CountsOf(*changes));
    } else {
      done = changes.error();
    }
    if (changes.ok())
      for (Change& change : *changes) report.changes.push_back(std::move(change));
  }
  if (done.ok()) done = MakePowerSafe(Reach::kEverything);
  if (done.ok()) {
    auto summary = ReadJournalSummary(recorder->files().dir(), "journal");
    if (summary.ok()) {
      reversal.header = std::move(summary->header);
      reversal.close = summary->close;
      reversal.journal_bytes = summary->bytes;
      WaitForNextTick(StampingNow());
      return Ok();
    }
    done = summary.error();
  }
  recorder->Beat(StampingNow());  // all that was written so far is ours
  recorder.reset();
  beats.reset();
  Status back = TakeBackReversal();
  if (!back.ok())
    return done.error().WithContext(
        fmt::format("and could not be taken back ({})", back.error().message()));
  return done;
}

std::function<void(size_t, size_t)> LogCore::ProgressWithin(const StepView& view) {
  const auto close = view.journal().Close();
  if (!options_.progress || progress_.total == 0 || !close.ok()) return {};
  const RewindProgress before = progress_;
  const uint64_t paths = close->counts.total();
  progress_.done += paths;
  return [this, before, paths](size_t done, size_t records) {
    options_.progress({before.done + paths * done / records, before.total});
  };
}

Result<std::unique_ptr<LogCore::RewindBeats>> LogCore::RewindBeats::Start(LogCore& core) {
  TRY_ASSIGN(const Fd dir, OpenSubdir(core.frame_->wal(), kRewind));
  TRY_ASSIGN(CursorFile file, CursorFile::Open(dir.get(), "journal"));
  MutexLock lock(core.current_mutex_);
  core.rewind_beats_.emplace(std::move(file));
  core.heart_wakeup_.NotifyAll();
  return std::make_unique<RewindBeats>(core);
}

LogCore::RewindBeats::~RewindBeats() {
  MutexLock lock(core_.current_mutex_);
  core_.rewind_beats_.reset();
}

// Undoes wal/rewind, whether it failed just now or was killed earlier. Nothing records what is overwritten here, so what somebody changed
// since stays as it is; and what could not be put back stays in the store.
Status LogCore::TakeBackReversal() {
  TRY_ASSIGN(const auto reversal, OpenInterrupted(kRewind));
  if (!reversal) return Ok();
  const StepView& view = reversal->view;
  auto origin = FindByUid(view.header().reverses_uid);
  if (!origin.ok()) {
    // What it took back is gone already: it was complete and only its own folder was left.
    if (origin.error().code() == Code::kNotFound && view.journal().Close().ok())
      return frame_->Discard(frame_->wal(), kRewind);
    return origin.error();
  }
  TRY_ASSIGN(const auto keep, LateChanges());
  TRY_ASSIGN(const auto beats, RewindBeats::Start(*this));
  RewindReport report;
  TRY(Rewind({.place = *place_,
              .objects = objects_,
              .view = view,
              .files = *reversal->files,
              .recorder = nullptr,
              .origin = origin->get(),
              .force = Force::kYes,
              .keep = &keep},
             report));
  NoteLeftBehind(std::move(report));
  TRY(MakePowerSafe(Reach::kEverything));
  TRY(BeatForInterrupted());
  TRY(DropFolder(frame_->wal(), kRewind, nullptr));
  if (!NameExists(frame_->wal(), kInProgress)) ::unlinkat(frame_->wal(), kKeepFile, 0);
  return Ok();
}

Status LogCore::BeatForInterrupted() {
  auto dir = OpenSubdir(frame_->wal(), kInProgress);
  if (!dir.ok()) return dir.error().code() == Code::kNotFound ? Ok() : Status(dir.error());
  auto file = CursorFile::Open(dir->get(), "journal");
  if (!file.ok()) return file.error();
  file->Beat(StampingNow());
  return Ok();
}

Result<std::unique_ptr<StepFiles>> LogCore::FindByUid(uint64_t uid) {
  std::vector<std::pair<int, std::string>> folders = {{frame_->wal(), kInProgress}};
  for (int parent : {frame_->steps(), frame_->redo()}) {
    TRY_ASSIGN(auto names, ListNames(parent));
    for (std::string& name : names) folders.emplace_back(parent, std::move(name));
  }
  for (const auto& [parent, name] : folders) {
    TRY_ASSIGN(const auto view, FindJournal(parent, name.c_str()));
    if (!view || view->header().uid != uid) continue;
    TRY_ASSIGN(Fd dir, OpenSubdir(parent, name.c_str()));
    return std::make_unique<StepFiles>(std::move(dir));
  }
  return Error(Code::kNotFound, "the step that an interrupted rewind was taking back is missing");
}

// What a rewind writes back must fit, and so must what it keeps for redo. Older redo is given up for that, but only if it is enough.
Status LogCore::CheckSpace(const StepView& view, SpareRedo spare) {
  uint64_t need = 1 << 20;
  view.journal().ForEachOf<ContentRecord>([&](const ContentRecord& content, size_t) {
    if (content.keeping != Keeping::kClone && !view.IsDropped(content)) need += content.length;
  });
  const auto fits_without = [&](uint64_t freed) {
    return Fit(need, frame_->store(), place_->root.get(), freed);
  };
  if (fits_without(0)) return Ok();
  EmptyTrash();
  WaitForBackground();  // the housekeeper may have a part of it in hand, which is free only when that is done
  if (fits_without(0)) return Ok();
  if (spare == SpareRedo::kNo && fits_without(BytesFreedBy(frame_->store(), "redo"))) {
    TRY(ClearRedo());
    EmptyTrash();
    WaitForBackground();
    if (fits_without(0)) return Ok();
  }
  return Error(
      Code::kNoSpace,
      fmt::format(
          "the disk has too little room to take this back safely; free {} bytes and try again",
          need));
}

Status LogCore::MakePowerSafe(Reach reach) {
  if (options_.durability == Durability::kProcess) return Ok();
  if (reach == Reach::kEverything) {
    for (int fd : {place_->root.get(), frame_->store()}) {
      if (::syncfs(fd) != 0) return Error::FromErrno(errno, "sync the file system");
    }
    return Ok();
  }
  for (int fd : {frame_->redo(), frame_->steps(), frame_->wal()}) {
    if (::fsync(fd) != 0) return Error::FromErrno(errno, "sync a folder of the store");
  }
  return Ok();
}

void LogCore::NoteFailure(std::string_view what, const Status& status, RewindReport& report) {
  BestEffort(what, status);
  if (!status.ok())
    report.warnings.push_back(fmt::format("{}: {}", what, status.error().message()));
}

void LogCore::BestEffort(std::string_view what, const Status& status) {
  if (!status.ok())
    options_.log.Warn("tried again later", {{"what", what}, {"error", status.error().message()}});
}

// A rewind that failed and could not be taken back at once (a full disk, say) is taken back before anything else happens.
Status LogCore::EnsureSettled() {
  TRY(FinishAbort());
  if (NameExists(frame_->wal(), kRewind)) TRY(TakeBackReversal());
  if (on_the_way_) TRY(Arrive());
  TRY(DropLeftovers());
  if (barriers_unsaved_) BestEffort("save barriers", SaveBarriers());
  return Ok();
}

// --- Abort.

Result<RewindReport> LogCore::AbortStep() {
  LifecycleLock lock(*this);
  if (current() == nullptr && announced_) {
    ForgetAnnounced();
    return RewindReport{};
  }
  if (current() == nullptr) return Error(Code::kNotFound, "no step is open");
  TRY(CheckMayEnd());
  return AbortLocked();
}

Result<RewindReport> LogCore::AbortLocked() {
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  TRY(EnsureSettled());
  RewindReport report;
  if (!current()->closed()) TRY(SettleShadows(*current()));
  TRY_ASSIGN(Source source, Source::Open(frame_->wal(), kInProgress));
  source.signatures = Signatures::kOutdated;
  TRY(NoticeEditsOf(*current(), source.view));
  if (source.view.unprotected())
    report.warnings.push_back("the step was not recorded in full: " +
                              source.view.unprotected_why());
  // Says to a recovery of this very abort that the edits before it have been noticed.
  TRY(ReplaceFileAt(frame_->wal(), kKeepFile, "", file_sync()));
  TRY_ASSIGN(const auto told, ToldDuring(source.view));
  StepRow reversal;
  TRY(RunRewind(source, Force::kYes, told.empty() ? nullptr : &told, report, reversal));
  Status done = KeepForPeople(current()->header().id, report);
  if (done.ok() && ::renameat(frame_->wal(), kInProgress, frame_->wal(), kAborted) != 0)
    done = Error::FromErrno(errno, "finish the abort");
  if (!done.ok()) {
    TRY(TakeBackReversal());
    return done.error();
  }
  report.steps.push_back(current()->header().id);
  TakeCurrent();
  ForgetFrozen();
  NoteFailure("drop the aborted step", FinishAbort(), report);
  NoteFailure("watch live writers on", RenewShadows(Renewal::kAll), report);
  return report;
}

Status LogCore::KeepForPeople(StepId aborted, RewindReport& report) {
  const bool kept = LeavesSomething(report.conflicts);
  const bool lost_track = LostTrackDuring(aborted) && !report.changes.empty();
  if (kept) TRY(MarkUnreturned(kInProgress));
  if (lost_track) TRY(MarkUnreturned(kRewind));
  if (lost_track) report.conflicts.push_back(LostTrack(aborted));
  if (kept || lost_track)
    report.warnings.push_back(
        "what was not put back, or may have been somebody's work, is in damaged/ of the undo "
        "store");
  return Ok();
}

// The step in wal/aborted has been taken back: only its folder and that of its reversal are left to drop. The reversal goes first, or it
// would be taken for one that was killed.
Status LogCore::FinishAbort() {
  if (!NameExists(frame_->wal(), kAborted)) return Ok();
  TRY(MakePowerSafe(Reach::kFolders));
  TRY(DropFolder(frame_->wal(), kRewind, nullptr));
  ::unlinkat(frame_->wal(), kKeepFile, 0);
  MoveBarriersFrom(kAborted);
  return DropFolder(frame_->wal(), kAborted, nullptr);
}

}  // namespace sandglass::undo

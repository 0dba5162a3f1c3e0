// LogCore's recovery: what opening a store makes of whatever was under way when its last user died.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "base/io.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/verify.h"

namespace sandglass::undo {
namespace {

// A system call that was under way when the process was killed may finish, and stamp, a little after the last heartbeat.
constexpr int64_t kHeartbeatSlackNs = 250'000'000;

// What the interrupted step copied and keeps, worked out from its journal and its anchors. Clones cost nothing.
void CountCosts(const StepView& view, int step_dir, CloseRecord& close) {
  view.journal().ForEachOf<ContentRecord>([&](const ContentRecord& content, size_t) {
    if (content.keeping != Keeping::kClone && !view.IsDropped(content))
      close.copied_bytes += content.length;
  });
  std::unordered_map<uint64_t, uint32_t> anchors;  // by inode
  ForEachAnchor(step_dir, [&](int folder, const char* name) {
    const auto stat = StatAt(folder, name);
    if (!stat.ok()) return;
    if (stat->nlink > 1) ++close.shared_anchors;
    if (++anchors[stat->ino] == stat->nlink) close.retained_bytes += stat->blocks * 512;
  });
}

// Is there nothing of that name, or an empty folder, which goes? In doubt there is.
bool IsMissingOrEmpty(int dir, const char* name) {
  return ::unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

// Every preimage has a record before it, so a folder with a preimage belongs to a step that had begun.
bool KeepsNothing(int step_dir) {
  const auto kept = {"anchors", "blobs", "pack", "packz"};
  return std::all_of(kept.begin(), kept.end(),
                     [&](const char* name) { return IsMissingOrEmpty(step_dir, name); });
}

// Was its writer killed before the header was whole? Room for the first records is there before the header is, and empty then.
Result<bool> IsUnbegun(int step_dir) {
  const auto journal = OpenStoreFile(step_dir, "journal", O_RDONLY);
  if (!journal.ok() && journal.error().code() == Code::kNotFound) return true;
  if (!journal.ok()) return journal.error();
  TRY_ASSIGN(const FileStat stat, StatFd(journal->get()));
  const bool has_header = stat.size >= kJournalHeaderBytes;
  Bytes bytes(64 << 10);
  for (uint64_t at = has_header ? kJournalHeaderBytes : 0; at < stat.size; at += bytes.size()) {
    TRY_ASSIGN(const size_t got, PReadFully(journal->get(), bytes, static_cast<off_t>(at)));
    if (!AllZero(ByteView(bytes).first(got))) return false;
  }
  return true;
}

// Was its writer killed before anything could happen? `view` is what could be read of it, and has no records.
Result<bool> NothingHappened(int step_dir, const Result<StepView>& view) {
  if (!KeepsNothing(step_dir)) return false;
  if (view.ok()) return view->journal().damaged() == 0;
  return IsUnbegun(step_dir);
}

}  // namespace

Status LogCore::Recover() {
  BestEffort("let go of dropped steps", ReleaseHeld());
  TRY(FinishPromotions());
  TRY(AdoptForgotten());
  TRY(FinishAbort());
  TRY(RecoverRewind());
  TRY(RecoverStep());
  TRY(ResumeTravel());
  for (const StepRow& row : steps_) {
    if (auto dir = OpenSubdir(frame_->steps(), row.folder.c_str()); dir.ok())
      BestEffort("tidy a pack", TidyPack(dir->get(), file_sync()));
  }
  return Ok();
}

// Is there a finished rewind of the journal `uid` among `rows`?
// Rewinds that had happened but were killed before their source was dropped.
Status LogCore::FinishPromotions() {
  const std::vector<StepRow> redo_before = redo_, steps_before = steps_;
  TRY(DropReversed(steps_, redo_before, frame_->steps()));
  TRY(DropReversed(redo_, steps_before, frame_->redo()));
  TRY_ASSIGN(const auto view, FindJournal(frame_->wal(), kInProgress));
  if (view && IsReversedBy(redo_, view->header().uid)) {
    MoveBarriersFrom(kInProgress);
    TRY(DropFolder(frame_->wal(), kInProgress, nullptr));
  }
  return Ok();
}

Status LogCore::DropReversed(std::vector<StepRow>& rows, const std::vector<StepRow>& others,
                             int folder) {
  for (size_t i = rows.size(); i-- > 0;) {
    if (!IsReversedBy(others, rows[i].header.uid)) continue;
    const StepRow row = rows[i];
    rows.erase(rows.begin() + static_cast<ptrdiff_t>(i));
    TRY(DropRow(folder, row));
  }
  return Ok();
}

Status LogCore::RecoverRewind() {
  if (!NameExists(frame_->wal(), kRewind)) return Ok();
  recovery_.interrupted_rewind = true;
  TRY(TakeBackReversal());
  return Ok();
}

// Of a rewind that was taken back: recovery reports it, and later nobody asks.
void LogCore::NoteLeftBehind(RewindReport report) {
  for (const Conflict& conflict : report.conflicts)
    options_.log.Warn("left as it is when a rewind was taken back",
                      {{"path", conflict.path}, {"why", conflict.detail}});
  if (!recovering_) return;
  Append(std::move(report.conflicts), recovery_.rewind.conflicts);
  Append(std::move(report.kept), recovery_.rewind.kept);
  Append(std::move(report.warnings), recovery_.rewind.warnings);
}

Status LogCore::MarkUnreturned(const char* folder) {
  TRY_ASSIGN(const Fd dir, OpenSubdir(frame_->wal(), folder));
  return ReplaceFileAt(dir.get(), kUnreturned, "", file_sync());
}

Result<std::optional<LogCore::Source>> LogCore::OpenInterrupted(const char* folder) {
  using Nothing = std::optional<Source>;
  auto dir = OpenSubdir(frame_->wal(), folder);
  auto view = dir.ok() ? StepView::Open(dir->get()) : Result<StepView>(dir.error());
  if (!view.ok() && !IsDamage(view.error())) return view.error();
  if (view.ok() && view->journal().size() > 0) {
    return Nothing(
        Source{.files = std::make_unique<StepFiles>(std::move(*dir)), .view = std::move(*view)});
  }
  if (std::string_view(folder) == kInProgress) MoveBarriersFrom(folder);
  auto nothing = dir.ok() ? NothingHappened(dir->get(), view) : Result<bool>(false);
  if (!nothing.ok() && !IsDamage(nothing.error())) return nothing.error();
  if (nothing.ok() && *nothing)
    TRY(DropFolder(frame_->wal(), folder, nullptr));
  else
    TRY(SetInterruptedAside(folder,
                            view.ok() ? "its records are missing" : view.error().message()));
  return Nothing();
}

// It holds the only copies of what was overwritten and removed. Nobody can put them back without the journal, but people can look.
Status LogCore::SetInterruptedAside(const char* folder, std::string_view why) {
  TRY_ASSIGN(const std::string name, frame_->SetAside(frame_->wal(), folder));
  std::string text = fmt::format(
      "what was interrupted cannot be taken back ({}); what it kept was moved to damaged/{} in the "
      "undo store",
      why, name);
  options_.log.Warn("set aside", {{"folder", folder}, {"why", text}});
  if (!recovering_) return Error(Code::kCorrupt, std::move(text));
  recovery_.rewind.conflicts.push_back({ConflictKind::kCorrupt, "", std::move(text)});
  return Ok();
}

Status LogCore::RecoverStep() {
  if (!NameExists(frame_->wal(), kInProgress)) {
    ::unlinkat(frame_->wal(), kKeepFile, 0);
    return Ok();
  }
  TRY(AdoptLateShadows());
  TRY_ASSIGN(auto source, OpenInterrupted(kInProgress));
  if (!source) {
    ::unlinkat(frame_->wal(), kKeepFile, 0);
    return Ok();
  }
  const StepView& view = source->view;
  recovery_.recovered = true;
  recovery_.step = view.header().id;
  if (view.header().kind == StepKind::kAmbient) {
    TRY(PromoteInterruptedAmbient(view));
    ::unlinkat(frame_->wal(), kKeepFile, 0);
    return RenewShadows(Renewal::kAll);
  }
  // Only the first attempt sees what the step and other hands left: after it, time stamps are its own.
  if (!NameExists(frame_->wal(), kKeepFile)) TRY(NoticeEdits(view));
  TRY_ASSIGN(auto keep, LateChanges());
  TRY_ASSIGN(auto told, ToldDuring(view));
  keep.merge(told);
  if (view.journal().damaged() > 0) {
    recovery_.rewind.warnings.push_back(fmt::format(
        "{} records of the interrupted step's journal were damaged", view.journal().damaged()));
  }
  TRY_ASSIGN(auto damaged, FindDamage(view, *source->files, StepEnd::kInterrupted));
  for (Conflict& damage : damaged) recovery_.rewind.conflicts.push_back(std::move(damage));
  source->signatures = Signatures::kOutdated;
  StepRow reversal;
  TRY(RunRewind(*source, Force::kYes, &keep, recovery_.rewind, reversal));
  if (LostTrackDuring(*recovery_.step))
    recovery_.rewind.conflicts.push_back(LostTrack(*recovery_.step));
  if (LeavesSomething(recovery_.rewind.conflicts)) TRY(MarkUnreturned(kInProgress));
  reversal.folder = fmt::format("{}", next_redo_++);
  if (::renameat(frame_->wal(), kRewind, frame_->redo(), reversal.folder.c_str()) != 0) {
    return Error::FromErrno(errno, "finish the recovery");
  }
  redo_.push_back(std::move(reversal));
  recovery_.rewind.steps.push_back(*recovery_.step);
  next_order_ = std::max(next_order_, view.header().order + 1);
  TRY(MakePowerSafe(Reach::kFolders));
  TRY(RenewShadows(Renewal::kAll));
  BestEffort("save barriers", MoveBarriersFrom(*recovery_.step));
  TRY(DropFolder(frame_->wal(), kInProgress, nullptr));
  ::unlinkat(frame_->wal(), kKeepFile, 0);
  return Ok();
}

// What processes wrote unseen in the interrupted step, or nobody would take back: no operation has adopted these shadows, so nothing else
// about their objects is on record since they were taken, and their place is behind all other records.
Status LogCore::AdoptLateShadows() {
  if (shadows_.All().empty()) return Ok();
  auto dir = OpenSubdir(frame_->wal(), kInProgress);
  if (!dir.ok()) return IsDamage(dir.error()) ? Ok() : Status(dir.error());
  std::unordered_set<ObjectId> adopted;
  uint32_t next_blob = 0;
  {
    auto view = StepView::Open(dir->get());
    if (!view.ok())  // killed before it began, or set aside in a moment: the shadows stay
      return IsDamage(view.error()) ? Ok() : Status(view.error());
    view->journal().ForEachOf<ContentRecord>([&](const ContentRecord& content, size_t) {
      if (content.whole && !view->IsDropped(content)) adopted.insert(content.object);
      // Also of what was dropped: its drop record counts for the number, whoever has it.
      if (content.keeping != Keeping::kPack)
        next_blob = std::max(next_blob, static_cast<uint32_t>(content.where) + 1);
    });
  }
  StepFiles files(std::move(*dir));
  TRY_ASSIGN(int blobs, files.Blobs());
  TRY_ASSIGN(const auto names, ListNames(blobs));
  for (const std::string& name : names)
    next_blob = std::max<uint32_t>(next_blob, std::strtoul(name.c_str(), nullptr, 10) + 1);
  TRY_ASSIGN(const auto changed, shadows_.Changed());
  for (const ObjectId& id : changed) {
    if (adopted.contains(id)) continue;
    TRY_ASSIGN(const std::string path, shadows_.PathOf(id));
    auto shadow = shadows_.Claim(id);
    if (path.empty() || !shadow) continue;
    const BlobId blob{next_blob++};
    TRY(shadows_.LinkCopy(*shadow, blobs, blob));
    const Record records[] = {
        MetaRecord{
            .object = id, .reason = TouchReason::kDirect, .path = path, .meta = shadow->meta},
        shadow->AsContent(id, path, blob)};
    TRY(AppendToFinishedJournal(files.dir(), "journal", records));
    shadows_.PutBack(id, std::move(*shadow));  // whether it is needed on will show
  }
  return Ok();
}

// Which objects a person changed after what is under way last gave a sign of life. Written down before anything is touched, and added to by
// each attempt that finds more: what an attempt touches, it stamps, but not without a sign of life of its own.
Result<std::unordered_set<ObjectId>> LogCore::LateChanges() {
  std::unordered_set<ObjectId> keep;
  const auto written = ReadFileAt(frame_->wal(), kKeepFile, 1 << 30);
  if (written.ok())
    keep = ParseKeepList(*written);
  else if (written.error().code() != Code::kNotFound)
    return written.error();
  // The rewind first: if there is a step as well, it is that step's, and whoever ran it looked after both.
  int64_t alive_ns = 0;
  for (const char* folder : {kRewind, kInProgress}) {
    TRY_ASSIGN(const std::vector<StepView> views, ViewsOf(folder));
    if (views.empty()) continue;
    TRY_ASSIGN(const Fd dir, OpenSubdir(frame_->wal(), folder));
    for (const StepView& view : views) {
      alive_ns = std::max(alive_ns, view.journal().heartbeat_ns());
      TRY_ASSIGN(const auto late,
                 FindLateChanges(*place_, objects_, view, dir.get(), alive_ns + kHeartbeatSlackNs));
      keep.insert(late.begin(), late.end());
    }
  }
  TRY(ReplaceFileAt(frame_->wal(), kKeepFile, WriteKeepList(keep), file_sync()));
  return keep;
}

// Taking back a rewind may have been killed, too. What lies in a folder that it has renamed back is found at its old path only.
Result<std::vector<StepView>> LogCore::ViewsOf(const char* folder) {
  std::vector<StepView> views;
  TRY_ASSIGN(auto journal, FindJournal(frame_->wal(), folder));
  if (!journal) return views;
  views.emplace_back(std::move(*journal));
  TRY_ASSIGN(const Fd dir, OpenSubdir(frame_->wal(), folder));
  TRY_ASSIGN(const CursorFile cursor, CursorFile::Open(dir.get(), "journal"));
  if (cursor.Get() == 0) return views;
  TRY_ASSIGN(JournalView left, JournalView::Open(dir.get(), "journal"));
  left.Shorten(cursor.Get());
  views.emplace_back(std::move(left));
  return views;
}

// Nobody asked for these changes to be one command's, so there is nothing to take back as a whole: they become a step that can be undone.
Status LogCore::PromoteInterruptedAmbient(const StepView& view) {
  TRY(NoticeEdits(view));
  TRY_ASSIGN(Fd dir, OpenSubdir(frame_->wal(), kInProgress));
  std::vector<Record> records;
  TRY_ASSIGN(const auto outcomes, JudgeOpenIntents(*place_, view));
  for (const OutcomeRecord& outcome : outcomes) records.emplace_back(outcome);
  TRY(AppendToFinishedJournal(dir.get(), "journal", records));
  records.clear();
  {
    TRY_ASSIGN(StepView judged, StepView::Open(dir.get()));
    Looker looker(*place_);
    for (const auto& [path, expected] : judged.expected().map()) {
      const auto found = expected.object == kNoObject ? std::nullopt : looker.At(path);
      if (!found || found->id != expected.object) continue;
      records.emplace_back(AfterRecord::Of(found->id, found->stat));
    }
    TRY(looker.failure());
    CloseRecord close{
        .closed_ns = Now().ns,
        .protection = view.unprotected() ? Protection::kUnprotected : Protection::kFull,
        .counts = judged.Counts()};
    CountCosts(judged, dir.get(), close);
    records.emplace_back(close);
    TRY(AppendToFinishedJournal(dir.get(), "journal", records));
  }
  TRY(MakePowerSafe(Reach::kEverything));
  const std::string folder = fmt::format("{}", view.header().id.value);
  if (::renameat(frame_->wal(), kInProgress, frame_->steps(), folder.c_str()) != 0) {
    return Error::FromErrno(errno, "promote an interrupted ambient step");
  }
  DropNotesOfOpenStep(dir.get());
  TRY(MakePowerSafe(Reach::kFolders));
  TRY_ASSIGN(auto summary, ReadJournalSummary(dir.get(), "journal"));
  steps_.push_back({folder, std::move(summary.header), summary.close, false, summary.bytes});
  TRY(AdoptAfterStates(dir.get()));
  next_order_ = std::max(next_order_, view.header().order + 1);
  recovery_.rewind.warnings.push_back(
      fmt::format("ambient step {} was interrupted and kept", view.header().id.value));
  return Ok();
}

}  // namespace sandglass::undo

// LogCore: the inside of UndoLog. Split over files by task: undo_log.cc (lifecycle of steps), rewinds.cc (taking one step back, abort),
// travel.cc (rollback and redo), recovery.cc, live_writers.cc, restore.cc (single paths), keeping_house.cc (eviction, compression, clean-up).
//
// Locks, outermost first (docs/locks.md): lifecycle_ > the gate > key locks > leaf mutexes.
#pragma once

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/io.h"
#include "base/thread_annotations.h"
#include "undo/gitignore_filter.h"
#include "undo/key_locks.h"
#include "undo/objects_table.h"
#include "undo/place.h"
#include "undo/registry.h"
#include "undo/rewind.h"
#include "undo/safeguard.h"
#include "undo/shadows.h"
#include "undo/state_files.h"
#include "undo/step_gate.h"
#include "undo/step_view.h"
#include "undo/step_writer.h"
#include "undo/store_frame.h"
#include "undo/undo_log.h"
#include "undo/verify.h"

namespace sandglass::undo {

template <class T>
void Append(std::vector<T> from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

class LogCore {
  Mutex lifecycle_;

 public:
  // Serialises what happens to steps as wholes. Observers hear of it when the lock is gone again.
  class SCOPED_CAPABILITY LifecycleLock {
   public:
    explicit LifecycleLock(LogCore& core) ACQUIRE(core.lifecycle_) : core_(core) {
      core_.lifecycle_.Lock();
    }
    ~LifecycleLock() RELEASE() {
      core_.lifecycle_.Unlock();
      core_.FireEvents();
    }
    LifecycleLock(const LifecycleLock&) = delete;
    LifecycleLock& operator=(const LifecycleLock&) = delete;

   private:
    LogCore& core_;
  };

  static Result<std::unique_ptr<LogCore>> Open(const UndoPaths& paths, const UndoOptions& options);
  ~LogCore();

  // --- For the interceptor.
  struct OpenedStep {
    StepGate::Pass pass;
    StepWriter* writer = nullptr;
  };
  // Enters the open step, opening an ambient one if there is none. While a restore fills its step, the world waits here. kDenied: the
  // restore's step is over. kBusy: the restore would wait for itself.
  Result<OpenedStep> EnterStep(StepGate::Way way, Entrant entrant) EXCLUDES(lifecycle_);
  bool Ignores(std::string_view path, uint32_t mode) const;
  // Has a step or rewind left this object behind, so that taking it back may need it as it was?
  bool HasLeft(ObjectId object) const { return objects_.Find(object).has_value(); }
  // Has the open step, if there is one, renamed a folder?
  bool OpenStepCarries() const EXCLUDES(current_mutex_);
  // How many names the open step and the closed ones keep of an object; in doubt, as many as there could be.
  uint32_t AnchorsOf(StepWriter& writer, ObjectId object);
  // Are the only names that this object has left those that steps keep of it?
  bool IsKeptAlone(StepWriter& writer, ObjectId object, uint32_t nlink) {
    const uint32_t anchors = AnchorsOf(writer, object);
    return anchors > 0 && nlink <= anchors;
  }
  // Observers are called by FireEvents, when nothing is held.
  void QueueEvent(std::function<void()> event);
  void FireEvents();
  // The step is over, by decision of a safeguard. Nothing happens if it is over already. kDenied: it could not be taken back yet;
  // until that works, whoever wants to do something in it, or to close it, tries again first and is refused.
  Status Deny(StepId step);

  const Place& place() const { return *place_; }
  const UndoOptions& options() const { return options_; }
  KeyLocks& locks() { return locks_; }
  SafeguardTracker& safeguards() { return safeguards_; }
  UndoObserver& observer() { return *observer_; }
  // Counts renames of folders: paths that were resolved before the last one may be stale.
  std::atomic<uint64_t>& folder_renames() { return folder_renames_; }

  // --- UndoLog's own.
  Result<StepId> OpenStep(const StepSpec& spec) EXCLUDES(lifecycle_);
  Result<StepId> AnnounceStep(const StepSpec& spec, IfUnchanged if_unchanged) EXCLUDES(lifecycle_);
  Result<std::vector<StepId>> CloseStep(std::span<const ObjectRef> live_writers)
      EXCLUDES(lifecycle_);
  void SetLiveWriterSource(UndoLog::LiveWriterSource source) EXCLUDES(lifecycle_);
  Result<RewindReport> AbortStep() EXCLUDES(lifecycle_);
  Result<bool> Tick() EXCLUDES(lifecycle_);
  std::optional<StepId> OpenStepId() const EXCLUDES(current_mutex_);
  bool HasShadows() const { return !shadows_.All().empty(); }
  Status CloseAmbientStep() EXCLUDES(lifecycle_);
  StepId NextStepId() EXCLUDES(lifecycle_);
  Result<RewindReport> Rollback(uint32_t count, Force force) EXCLUDES(lifecycle_);
  Result<RewindReport> PlanRollback(uint32_t count) EXCLUDES(lifecycle_);
  Result<RewindReport> Redo(uint32_t count, Force force) EXCLUDES(lifecycle_);
  Result<RewindReport> PlanRedo(uint32_t count) EXCLUDES(lifecycle_);
  uint32_t RedoDepth() EXCLUDES(lifecycle_);
  Result<RewindReport> Restore(StepId step, std::span<const std::string> paths, Force force)
      EXCLUDES(lifecycle_);
  Result<RewindReport> PlanRestore(StepId step, std::span<const std::string> paths)
      EXCLUDES(lifecycle_);
  Status NoteExternalModification(std::span<const std::string> paths) EXCLUDES(lifecycle_);
  Result<std::vector<HistoryEntry>> History() EXCLUDES(lifecycle_);
  const RecoveryReport& recovery() const { return recovery_; }
  void WaitForBackground();

 private:
  LogCore(std::unique_ptr<Place> place, const UndoOptions& options);
  Instant Now() const { return options_.clock->Now(); }

  // --- undo_log.cc
  // Registers the project as soon as its store is ours.
  Status Start(RegistryClaim claim) REQUIRES(lifecycle_);
  Status LoadRows() REQUIRES(lifecycle_);
  Status LoadBarriers() REQUIRES(lifecycle_);
  Result<StepId> OpenLocked(const StepSpec& spec) REQUIRES(lifecycle_);
  // Nothing but an ambient step is open, and that one is closed now. kBusy.
  Status MakeRoomForStep() REQUIRES(lifecycle_);
  Result<StepId> Begin(const StepSpec& spec, StepId id) REQUIRES(lifecycle_);
  Status BeginAnnounced() REQUIRES(lifecycle_);
  void ForgetAnnounced() REQUIRES(lifecycle_);
  // An announced step ends before it began; false: it is forgotten. True: there is something to record, and it is open now.
  Result<bool> BeginToClose() REQUIRES(lifecycle_);
  Result<std::vector<StepId>> CloseLocked(std::span<const ObjectRef> live_writers)
      REQUIRES(lifecycle_);
  Status CloseAmbientLocked() REQUIRES(lifecycle_);
  Status DenyLocked() REQUIRES(lifecycle_);
  // Takes the open step back, which was denied.
  Status AbortDenied() REQUIRES(lifecycle_);
  Status SettleOpenIntents(StepWriter& writer) REQUIRES(lifecycle_);
  Status SettleShadows(StepWriter& writer) REQUIRES(lifecycle_);
  Status SettleBetweenSteps() REQUIRES(lifecycle_);
  void DropIdleShadows() REQUIRES(lifecycle_);
  // What another hand changed between the steps before and this one, seen by this one's preimages, becomes a barrier.
  Status NoticeEdits(const StepView& view, size_t first_record = 0) REQUIRES(lifecycle_);
  Status NoticeEditsOf(StepWriter& writer, const StepView& view) REQUIRES(lifecycle_);
  struct Edit {
    ObjectId object;
    std::string path;
  };
  Status PlaceBarriers(std::vector<Edit> edits) REQUIRES(lifecycle_);
  Barrier NewBarrier(StepId after, std::vector<std::string> paths) const REQUIRES(lifecycle_);
  Status AddBarrier(StepId after, std::vector<std::string> paths) REQUIRES(lifecycle_);
  // Edits that somebody told of while the step was open: it is not to take them along when it is taken back.
  Status NoteTold(StepWriter& open, const std::vector<std::string>& paths) REQUIRES(lifecycle_);
  Result<std::unordered_set<ObjectId>> ToldDuring(const StepView& view) REQUIRES(lifecycle_);
  bool LostTrackDuring(StepId step) const REQUIRES(lifecycle_);
  static Conflict LostTrack(StepId step);
  Status MoveBarriersFrom(StepId gone) REQUIRES(lifecycle_);
  Status MoveBarriers(StepId from, StepId to) REQUIRES(lifecycle_);
  // Of the step in that folder of wal/.
  void MoveBarriersFrom(const char* folder) REQUIRES(lifecycle_);
  void ForgetFrozen();
  Status AdoptAfterStates(int step_dir) REQUIRES(lifecycle_);
  void AdoptAttributes(const StepView& view) REQUIRES(lifecycle_);
  Status AdoptForgotten() REQUIRES(lifecycle_);
  Status RefillObjects() REQUIRES(lifecycle_);
  Status NoteAfterStates(StepWriter& writer, const StepView& view) REQUIRES(lifecycle_);
  Status NoteAnchored(StepWriter& writer, const StepView& view) REQUIRES(lifecycle_);
  void NoteRetained(StepWriter& writer, const std::unordered_map<ObjectId, FileStat>& shared)
      REQUIRES(lifecycle_);
  // `latest_ctime_ns` moves along with what is noted.
  Status NoteLostNames(StepWriter& writer, int64_t& latest_ctime_ns) REQUIRES(lifecycle_);
  Status ShadowLiveWriters(std::span<const ObjectRef> live_writers) REQUIRES(lifecycle_);
  Status Promote(StepWriter& writer, const ChangeCounts& counts) REQUIRES(lifecycle_);
  JournalHeader NewHeader(const StepSpec& spec, StepId id) REQUIRES(lifecycle_);
  StepId NextId(StepKind kind) const REQUIRES(lifecycle_);
  // A step that opens drops the redo stack; until an announced one begins, a redo can bring steps back, and their ids.
  enum class RedoFate : uint8_t { kGoes, kStays };
  // kInvalid, kExists.
  Status CheckChosenId(StepId id, RedoFate redo) const REQUIRES(lifecycle_);
  Status CheckUnusedId(StepId id, RedoFate redo) const REQUIRES(lifecycle_);
  void SetCurrent(std::unique_ptr<StepWriter> writer);
  std::unique_ptr<StepWriter> TakeCurrent() REQUIRES(lifecycle_);
  StepWriter* current() const;
  bool MayEnter(Entrant entrant) const;
  // kBusy: this thread is the one that restores.
  Status AwaitRestore() REQUIRES(lifecycle_);
  // kBusy: the open step is a restore's, and nobody else's to end.
  Status CheckMayEnd() const REQUIRES(lifecycle_);
  void WaitForNextTick(int64_t latest_ctime_ns) const;

  // --- rewinds.cc, travel.cc, recovery.cc
  Status Recover() REQUIRES(lifecycle_);
  Status FinishPromotions() REQUIRES(lifecycle_);
  Status DropReversed(std::vector<StepRow>& rows, const std::vector<StepRow>& others, int folder)
      REQUIRES(lifecycle_);
  Status RecoverRewind() REQUIRES(lifecycle_);
  Status RecoverStep() REQUIRES(lifecycle_);
  Status AdoptLateShadows() REQUIRES(lifecycle_);
  Status PromoteInterruptedAmbient(const StepView& view) REQUIRES(lifecycle_);
  Result<std::unordered_set<ObjectId>> LateChanges() REQUIRES(lifecycle_);
  // The views of what is under way in `folder` of wal/: its records, and those that taking it back has left.
  Result<std::vector<StepView>> ViewsOf(const char* folder) REQUIRES(lifecycle_);
  enum class Way : uint8_t { kBack, kForth };  // rollback, redo
  // What is crossed that way.
  std::vector<StepRow>& RowsOf(Way way) REQUIRES(lifecycle_) {
    return way == Way::kBack ? steps_ : redo_;
  }
  int FolderOf(Way way) const { return way == Way::kBack ? frame_->steps() : frame_->redo(); }
  enum class SpareRedo : uint8_t { kNo, kYes };
  // A step on disk, opened to be taken back.
  struct Source {
    std::unique_ptr<StepFiles> files;
    StepView view;
    SpareRedo spare_redo = SpareRedo::kNo;
    Signatures signatures = Signatures::kCurrent;

    static Result<Source> Open(int parent_fd, const std::string& folder);
  };
  // Takes back one step; on success its reversal stands complete in wal/rewind.
  Status RunRewind(Source& source, Force force, const std::unordered_set<ObjectId>* keep,
                   RewindReport& report, StepRow& reversal) REQUIRES(lifecycle_);
  // What Rewind() is to call for one step of a travel, if anybody wants to know.
  std::function<void(size_t, size_t)> ProgressWithin(const StepView& view) REQUIRES(lifecycle_);
  Status TakeBackReversal() REQUIRES(lifecycle_);
  // While it lives, the heart beats for wal/rewind, too.
  class RewindBeats {
   public:
    static Result<std::unique_ptr<RewindBeats>> Start(LogCore& core);
    explicit RewindBeats(LogCore& core) : core_(core) {}
    ~RewindBeats();
    RewindBeats(const RewindBeats&) = delete;
    RewindBeats& operator=(const RewindBeats&) = delete;

   private:
    LogCore& core_;
  };
  // The step in wal/in_progress, if there is one, was still looked after just now.
  Status BeatForInterrupted() REQUIRES(lifecycle_);
  // What was under way in `folder` of wal/, with something on record to take back. nullopt: nothing had begun and it was dropped, or it
  // cannot be read and was set aside, which the report of the recovery says. Any other error than damage is returned: it may pass.
  Result<std::optional<Source>> OpenInterrupted(const char* folder) REQUIRES(lifecycle_);
  Status SetInterruptedAside(const char* folder, std::string_view why) REQUIRES(lifecycle_);
  void NoteLeftBehind(RewindReport report) REQUIRES(lifecycle_);
  // What `folder` of wal/ keeps is going to damaged/ when the folder is dropped.
  Status MarkUnreturned(const char* folder) REQUIRES(lifecycle_);
  Status EnsureSettled() REQUIRES(lifecycle_);
  // Everything that happened so far belongs to a closed step: the same for a plan as for the deed. kBusy: one is open.
  Status SettleForRewind() REQUIRES(lifecycle_);
  // What a rewind did to objects with live writers is not those writers' doing.
  enum class Renewal : uint8_t {
    kAll,
    kStale,  // at a boundary, where a shadow that still tells the truth need not be copied again
    kOurs,   // what a writer did meanwhile stays to be found at the next boundary
  };
  Status RenewShadows(Renewal renewal) REQUIRES(lifecycle_);
  bool IsAsWeLeftIt(const OpenObject& object) const REQUIRES(lifecycle_);
  // A shadow of what a writer has open. One that is too large makes that object unprotected, and nothing else.
  void WatchWriter(const OpenObject& object) REQUIRES(lifecycle_);
  void TellUnprotected(const OpenObject& object, const Error& why) REQUIRES(lifecycle_);
  // kNotFound: no journal that can be read has it.
  Result<std::unique_ptr<StepFiles>> FindByUid(uint64_t uid) REQUIRES(lifecycle_);
  Result<RewindReport> RollbackLocked(uint32_t count, Force force) REQUIRES(lifecycle_);
  Result<RewindReport> Travel(Journey journey) REQUIRES(lifecycle_);
  uint64_t PathsUntil(size_t target) REQUIRES(lifecycle_);
  Status SetOut(const Journey& journey) REQUIRES(lifecycle_);
  Status Arrive() REQUIRES(lifecycle_);
  Status LookAhead(size_t target) REQUIRES(lifecycle_);
  Status TurnBack(size_t start, Force force) REQUIRES(lifecycle_);
  Way WayTo(size_t target) const REQUIRES(lifecycle_) {
    return steps_.size() > target ? Way::kBack : Way::kForth;
  }
  Status ResumeTravel() REQUIRES(lifecycle_);
  void TellStopped(size_t target, const Error& why) REQUIRES(lifecycle_);
  Status CrossNewest(Way way, Force force, SpareRedo spare, RewindReport& report)
      REQUIRES(lifecycle_);
  // A step that was taken back: its reversal, and the barriers that hold from now on.
  struct Reversed {
    StepRow row;
    std::vector<Barrier> barriers;
  };
  Result<Reversed> Reverse(Way way, const StepRow& row, Force force, SpareRedo spare,
                           RewindReport& report) REQUIRES(lifecycle_);
  Result<RewindReport> Plan(Way way, size_t count, AnchorCheck check) REQUIRES(lifecycle_);
  Status Promote(Way way, StepRow reversal, RewindReport& report) REQUIRES(lifecycle_);
  Result<Source> OpenSource(Way way, const StepRow& row) REQUIRES(lifecycle_);
  bool IsReadable(const StepRow& row) REQUIRES(lifecycle_);
  // The newest step, which cannot be read, leaves the history.
  Status SetNewestAside(RewindReport& report) REQUIRES(lifecycle_);
  Result<RewindReport> AbortLocked() REQUIRES(lifecycle_);
  // What an abort could not put back, or may have overwritten of people's work, is not dropped with it.
  Status KeepForPeople(StepId aborted, RewindReport& report) REQUIRES(lifecycle_);
  Status FinishAbort() REQUIRES(lifecycle_);
  Status CheckSpace(const StepView& view, SpareRedo spare) REQUIRES(lifecycle_);
  Result<size_t> RowsToCross(Way way, uint32_t count) const REQUIRES(lifecycle_);
  // A step that may have to be crossed back or forth, and what is in the way.
  struct Crossing {
    Way way;
    const StepRow& row;
    size_t index;  // of the row in its stack
    const StepView& view;
    const LaterSteps* later = nullptr;  // of a plan: what would be crossed before
  };
  Result<std::vector<Conflict>> Conflicts(const Crossing& crossing, StepFiles& files,
                                          const std::vector<Barrier>& barriers, AnchorCheck check)
      REQUIRES(lifecycle_);
  static Error RefusalOf(Way way, std::string_view what, const std::vector<Conflict>& conflicts);
  static Error NotRecordedInFull(const StepRow& row, std::string_view why);
  static bool IsCrossed(const Barrier& barrier, const Crossing& crossing);
  bool Touches(const Crossing& crossing, const std::string& path) const;
  // What the crossing of a step will leave of the barriers; `older` is the step before it.
  std::vector<Barrier> BarriersBeyond(const Crossing& crossing, std::vector<Barrier> barriers,
                                      std::optional<StepId> older) const REQUIRES(lifecycle_);
  std::optional<StepId> OlderThan(Way way, size_t index) const REQUIRES(lifecycle_);
  Status SetBarriers(std::vector<Barrier> barriers) REQUIRES(lifecycle_);
  Status SaveBarriers() REQUIRES(lifecycle_);
  Status DropBarriers(StepId after) REQUIRES(lifecycle_);
  enum class Reach : uint8_t { kEverything, kFolders };
  // Durability::kPower: what was done so far to project and store, or to the folders of the store, survives a power cut. The first
  // comes before the rename of a commit point, the second between it and the end of what it makes superfluous.
  Status MakePowerSafe(Reach reach);
  FileSync file_sync() const {
    return options_.durability == Durability::kPower ? FileSync::kPower : FileSync::kNone;
  }
  // Of what follows a commit point: a failure is told and does not count.
  void BestEffort(std::string_view what, const Status& status);
  void NoteFailure(std::string_view what, const Status& status, RewindReport& report);

  // --- restore.cc
  // What single paths have to become, and where that comes from.
  struct RestorePlan;
  Result<RestorePlan> PlanRestoreLocked(StepId step, std::span<const std::string> paths,
                                        RewindReport& report) REQUIRES(lifecycle_);
  // Opens the step, whose id is the last of `report`.
  Result<RestorePlan> BeginRestore(StepId step, std::span<const std::string> paths, Force force,
                                   RewindReport& report) EXCLUDES(lifecycle_);
  Status FillRestore(const RestorePlan& plan);
  // kDenied: it is not open any more, because a safeguard stopped it.
  Status EndRestore(StepId id) EXCLUDES(lifecycle_);
  void LetOthersIn() REQUIRES(lifecycle_);

  // --- keeping_house.cc
  // What all that is kept may cost and does, for steps and redo together.
  struct Budget {
    uint64_t copied = 0, retained = UINT64_MAX;
    uint64_t used_copied = 0, used_retained = 0;

    bool exceeded() const { return used_copied > copied || used_retained > retained; }
    void Free(const StepRow& row);
  };
  Budget TakeStock() const REQUIRES(lifecycle_);
  // nullopt: all is within the limits.
  std::optional<size_t> NextToEvict(const Budget& budget) const REQUIRES(lifecycle_);
  void EvictAt(size_t index) REQUIRES(lifecycle_);
  std::vector<StepId> Evict() REQUIRES(lifecycle_);
  void TrimRedo(RewindReport& report) REQUIRES(lifecycle_);
  uint64_t RetainedBudget(uint64_t retained) const;
  Status DropFolder(int parent_fd, const std::string& folder, const CloseRecord* close)
      REQUIRES(lifecycle_);
  Status ReleaseHeld() REQUIRES(lifecycle_);
  Status KeepUnreturned(int parent_fd, const std::string& folder, int dir_fd) REQUIRES(lifecycle_);
  // Drops the folder of a row that no list has any more. Where that fails it is a leftover, and tried again before steps change again.
  Status DropRow(int parent_fd, const StepRow& row) REQUIRES(lifecycle_);
  Status DropLeftovers() REQUIRES(lifecycle_);
  void EmptyTrash() REQUIRES(lifecycle_);
  Status ClearRedo() REQUIRES(lifecycle_);
  void UnlinkSharedAnchors(int step_dir) REQUIRES(lifecycle_);
  void CompactObjects() REQUIRES(lifecycle_);
  void StartHeart();
  void StartThreads();
  void StopThreads();
  void HousekeeperLoop();
  void HeartLoop();
  void Poke();

  // --- Shared state.
  std::unique_ptr<Place> place_;
  UndoOptions options_;
  SystemClock system_clock_;
  SteadyClock steady_clock_;
  UndoObserver silent_observer_;
  UndoObserver* observer_;
  Shadows shadows_;
  ObjectsTable objects_;
  KeyLocks locks_;
  StepGate gate_;
  SafeguardTracker safeguards_;
  std::optional<GitignoreFilter> gitignore_;
  RewindProgress progress_ GUARDED_BY(lifecycle_);  // of the travel under way; no total: none is
  std::atomic<uint64_t> folder_renames_{0};
  std::atomic<int64_t> last_activity_ns_{0};          // by the steady clock, like
  Instant begun_ GUARDED_BY(lifecycle_) = Instant{};  // when the open step began

  std::unique_ptr<StoreFrame> frame_;
  std::vector<StepRow> steps_ GUARDED_BY(lifecycle_);
  std::vector<StepRow> redo_ GUARDED_BY(lifecycle_);
  std::vector<Barrier> barriers_ GUARDED_BY(lifecycle_);
  bool barriers_unsaved_ GUARDED_BY(lifecycle_) = false;
  std::unordered_set<ObjectId> told_ GUARDED_BY(lifecycle_);  // what `told` of the open step has
  bool on_the_way_ GUARDED_BY(lifecycle_) = false;            // wal/target could not be removed
  struct Leftover {
    int parent_fd;
    std::string folder;
    CloseRecord close;
  };
  std::vector<Leftover> leftovers_ GUARDED_BY(lifecycle_);
  struct Announced {
    StepSpec spec;
    StepId id;
    IfUnchanged if_unchanged;
  };
  UndoLog::LiveWriterSource live_writer_source_ GUARDED_BY(lifecycle_);
  std::optional<Announced> announced_ GUARDED_BY(lifecycle_);  // begins with the next change
  uint64_t next_order_ GUARDED_BY(lifecycle_) = 1;
  uint64_t next_redo_ GUARDED_BY(lifecycle_) = 1;
  // Of steps that were opened here, also aborted ones: a late answer to a question about one must not meet another with its id.
  std::set<StepId> opened_ids_ GUARDED_BY(lifecycle_);
  // Written by Open only, so that it can be read without a lock.
  RecoveryReport recovery_;
  bool recovering_ GUARDED_BY(lifecycle_) = true;

  // The pointer changes only under lifecycle_ with the gate held alone; readers inside the gate may use it freely.
  mutable Mutex current_mutex_;
  std::unique_ptr<StepWriter> current_ GUARDED_BY(current_mutex_);
  std::optional<CursorFile> rewind_beats_ GUARDED_BY(current_mutex_);  // of the rewind under way

  // The open step was denied and is to be taken back. Changes only under lifecycle_.
  std::atomic<bool> denied_{false};

  // The thread whose restore has the open step to itself; none: everybody may enter it. Changes only under lifecycle_, and to a thread only
  // while no step is open.
  std::atomic<std::thread::id> restoring_{};
  CondVar restored_;  // with lifecycle_

  Mutex events_mutex_;
  std::vector<std::function<void()>> events_ GUARDED_BY(events_mutex_);

  Mutex frozen_mutex_;
  // Names that closed steps keep, by object; built when first asked for.
  std::optional<std::unordered_map<ObjectId, uint32_t>> frozen_ GUARDED_BY(frozen_mutex_);

  Mutex house_mutex_;
  CondVar house_wakeup_, house_idle_;
  bool house_stop_ GUARDED_BY(house_mutex_) = false;
  bool house_busy_ GUARDED_BY(house_mutex_) = false;
  bool house_poked_ GUARDED_BY(house_mutex_) = false;
  CondVar heart_wakeup_;  // with current_mutex_
  bool heart_stop_ GUARDED_BY(current_mutex_) = false;
  // Rewinds hold it so that no pack changes its form under them; the housekeeper holds it for one pack at a time.
  Mutex pack_mutex_;
  std::thread housekeeper_, heart_;
};

}  // namespace sandglass::undo

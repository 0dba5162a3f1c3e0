#include "undo/undo_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/encryption.h"
#include "undo/link_index.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/name_trail.h"
#include "undo/reading.h"
#include "undo/registry.h"

namespace sandglass::undo {
namespace {

Error RolledBack(StepId denied) {
  return Error(Code::kDenied,
               fmt::format("step {} was denied and has been rolled back", denied.value));
}

constexpr int64_t kMaxChosenId = INT64_MAX / 2;

// A step whose records alone are more than all steps may keep ends there, if nobody wants it to go on without limit. There is room for
// some in any case.
uint64_t MaxJournalBytes(const UndoOptions& options) {
  constexpr uint64_t kAlwaysAllowed = 64 << 10;
  const bool refuses =
      options.on_oversize == OversizePolicy::kRefuse ||
      (options.on_oversize == OversizePolicy::kAsk && options.safeguard_handler == nullptr);
  return refuses ? std::max(options.limits.max_copied_bytes, kAlwaysAllowed) : UINT64_MAX;
}

UndoOptions WithDefaults(UndoOptions options, const Clock* clock, const Clock* steady) {
  if (options.steady_clock == nullptr)
    options.steady_clock = options.clock != nullptr ? options.clock : steady;
  if (options.clock == nullptr) options.clock = clock;
  return options;
}

}  // namespace

LogCore::LogCore(std::unique_ptr<Place> place, const UndoOptions& options)
    : place_(std::move(place)),
      options_(WithDefaults(options, &system_clock_, &steady_clock_)),
      observer_(options.observer != nullptr ? options.observer : &silent_observer_),
      shadows_(*place_),
      safeguards_(options.safeguards) {}

LogCore::~LogCore() { StopThreads(); }

Result<std::unique_ptr<LogCore>> LogCore::Open(const UndoPaths& paths, const UndoOptions& options) {
  TRY_ASSIGN(const std::string registry, RegistryFor(paths));
  TRY_ASSIGN(RegistryClaim claim, RegistryClaim::Take(registry, paths.project, options.log));
  TRY_ASSIGN(auto place, OpenPlace(paths, StoreAccess::kReadWrite));
  TRY(CheckEncryption(*place));  // not in OpenPlace: a store that must not be used can be discarded
  std::unique_ptr<LogCore> core(new LogCore(std::move(place), options));
  {
    LifecycleLock lock(*core);
    TRY(core->Start(std::move(claim)));
  }
  core->StartThreads();
  return core;
}

Status LogCore::Start(RegistryClaim claim) {
  TRY_ASSIGN(frame_, StoreFrame::Open(*place_));
  place_->fresh_store.Keep();
  TRY(ProbeStore(*place_));
  TRY(claim.Register(place_->store_path));
  TRY(objects_.Load(frame_->store(), file_sync()));
  TRY(LoadRows());
  TRY(LoadBarriers());
  if (options_.gitignore == GitignoreMode::kSkipIgnored) {
    TRY_ASSIGN(gitignore_, GitignoreFilter::Load(place_->root.get()));
  }
  if (!options_.unrecorded.empty()) {
    if (!gitignore_) gitignore_.emplace();
    gitignore_->AddRules(fmt::format("{}", fmt::join(options_.unrecorded, "\n")));
  }
  TRY(MakePowerSafe(
      Reach::kEverything));  // what the last user's death left in the cache, and new folders
  TRY(shadows_.Load());
  StartHeart();
  TRY(Recover());
  recovering_ = false;
  TRY(SettleBetweenSteps());
  if (options_.compression == Compression::kOff) EmptyTrash();
  return Ok();
}

Status LogCore::LoadRows() {
  TRY_ASSIGN(steps_, ListSteps(frame_->steps()));
  TRY_ASSIGN(redo_, ListSteps(frame_->redo()));
  // The newest rollback is on top of the redo stack, and its number is the highest.
  std::sort(redo_.begin(), redo_.end(), [](const StepRow& a, const StepRow& b) {
    return std::strtoull(a.folder.c_str(), nullptr, 10) <
           std::strtoull(b.folder.c_str(), nullptr, 10);
  });
  for (const StepRow& row : steps_) next_order_ = std::max(next_order_, row.header.order + 1);
  for (const StepRow& row : redo_) {
    next_order_ = std::max(next_order_, row.header.order + 1);
    next_redo_ = std::max<uint64_t>(next_redo_, std::strtoull(row.folder.c_str(), nullptr, 10) + 1);
  }
  return Ok();
}

// --- The open step.

StepWriter* LogCore::current() const {
  MutexLock lock(current_mutex_);
  return current_.get();
}

void LogCore::SetCurrent(std::unique_ptr<StepWriter> writer) {
  MutexLock lock(current_mutex_);
  current_ = std::move(writer);
  heart_wakeup_.NotifyAll();
}

std::unique_ptr<StepWriter> LogCore::TakeCurrent() {
  denied_ = false;
  LetOthersIn();
  MutexLock lock(current_mutex_);
  return std::move(current_);
}

std::optional<StepId> LogCore::OpenStepId() const {
  MutexLock lock(current_mutex_);
  if (current_ == nullptr) return std::nullopt;
  return current_->header().id;
}

bool LogCore::MayEnter(Entrant entrant) const {
  const std::thread::id restoring = restoring_;
  return restoring ==
         (entrant == Entrant::kRestore ? std::this_thread::get_id() : std::thread::id());
}

Status LogCore::AwaitRestore() {
  while (restoring_.load() != std::thread::id()) {
    if (restoring_.load() == std::this_thread::get_id())
      return Error(Code::kBusy, "a restore is under way on this very thread");
    restored_.Wait(lifecycle_);
  }
  return Ok();
}

Status LogCore::CheckMayEnd() const {
  if (restoring_.load() == std::thread::id()) return Ok();
  return Error(Code::kBusy, "a restore is under way; its step ends with it");
}

void LogCore::LetOthersIn() {
  restoring_ = std::thread::id();
  restored_.NotifyAll();
}

Result<LogCore::OpenedStep> LogCore::EnterStep(StepGate::Way way, Entrant entrant) {
  while (true) {
    StepGate::Pass pass = gate_.Enter(way);
    StepWriter* writer = current();
    if (writer != nullptr && !denied_ && MayEnter(entrant)) {
      last_activity_ns_ = options_.steady_clock->Now().ns;
      return OpenedStep{std::move(pass), writer};
    }
    pass.Reset();
    LifecycleLock lock(*this);
    if (denied_) {
      const StepId id = current()->header().id;
      TRY(AbortDenied());
      return RolledBack(id);
    }
    if (entrant == Entrant::kRestore)
      return Error(Code::kDenied, "the step of the restore was taken back while it restored");
    TRY(AwaitRestore());
    if (current() != nullptr) continue;
    if (announced_)
      TRY(BeginAnnounced());
    else
      TRY(OpenLocked({.kind = StepKind::kAmbient, .label = "", .id = std::nullopt}));
  }
}

StepId LogCore::NextId(StepKind kind) const {
  int64_t lowest = 0, highest = 0;
  if (!opened_ids_.empty()) {
    lowest = std::min(lowest, opened_ids_.begin()->value);
    highest = std::max(highest, opened_ids_.rbegin()->value);
  }
  for (const auto* rows : {&steps_, &redo_}) {
    for (const StepRow& row : *rows) {
      lowest = std::min(lowest, row.header.id.value);
      highest = std::max(highest, row.header.id.value);
    }
  }
  // At the end of all numbers it stays there, and there is such a step already.
  if (kind == StepKind::kAmbient) return {std::max(lowest, INT64_MIN + 1) - 1};
  return {std::min(highest, INT64_MAX - 1) + 1};
}

Status LogCore::CheckChosenId(StepId id, RedoFate redo) const {
  if (id.value <= 0) return Error(Code::kInvalid, "the id of a step must be positive");
  // There must be numbers left for those who choose none.
  if (id.value > kMaxChosenId)
    return Error(Code::kInvalid, fmt::format("the id of a step must not exceed {}", kMaxChosenId));
  return CheckUnusedId(id, redo);
}

Status LogCore::CheckUnusedId(StepId id, RedoFate redo) const {
  const auto lists = [&](const std::vector<StepRow>& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const StepRow& row) { return row.header.id == id; });
  };
  if (lists(steps_) || (redo == RedoFate::kStays && lists(redo_)) || opened_ids_.contains(id))
    return Error(Code::kExists, fmt::format("there is or was a step {} already", id.value));
  return Ok();
}

JournalHeader LogCore::NewHeader(const StepSpec& spec, StepId id) {
  return {.id = id,
          .kind = spec.kind,
          .order = next_order_,
          .uid = RandomId(),
          .reverses_uid = 0,
          .opened_ns = Now().ns,
          .boot_id = place_->boot_id,
          .label = spec.label};
}

Result<StepId> LogCore::OpenStep(const StepSpec& spec) {
  LifecycleLock lock(*this);
  TRY(MakeRoomForStep());
  return OpenLocked(spec);
}

Status LogCore::MakeRoomForStep() {
  if (denied_) TRY(AbortDenied());
  if (announced_)
    return Error(Code::kBusy, fmt::format("step {} has not ended", announced_->id.value));
  StepWriter* writer = current();
  if (writer != nullptr && writer->header().kind != StepKind::kAmbient)
    return Error(Code::kBusy, fmt::format("step {} is still open", writer->header().id.value));
  return CloseAmbientLocked();
}

Result<StepId> LogCore::AnnounceStep(const StepSpec& spec, IfUnchanged if_unchanged) {
  LifecycleLock lock(*this);
  TRY(MakeRoomForStep());
  TRY(EnsureSettled());
  if (spec.id) TRY(CheckChosenId(*spec.id, RedoFate::kStays));
  TRY(SettleBetweenSteps());
  const StepId id = spec.id ? *spec.id : NextId(spec.kind);
  TRY(CheckUnusedId(id, RedoFate::kStays));
  opened_ids_.insert(id);
  announced_ = Announced{spec, id, if_unchanged};
  return id;
}

Status LogCore::BeginAnnounced() {
  TRY(EnsureSettled());
  TRY(Begin(announced_->spec, announced_->id));
  announced_.reset();
  return Ok();
}

// Nobody has seen it, so its id may be used again.
void LogCore::ForgetAnnounced() {
  opened_ids_.erase(announced_->id);
  announced_.reset();
}

Result<bool> LogCore::BeginToClose() {
  // A live writer's changes are seen only now.
  TRY_ASSIGN(const auto changed, shadows_.Changed());
  const bool recorded = announced_->if_unchanged == IfUnchanged::kRecorded && redo_.empty();
  if (!changed.empty() || recorded) {
    TRY(BeginAnnounced());
    return true;
  }
  ForgetAnnounced();
  DropIdleShadows();
  return false;
}

Result<StepId> LogCore::OpenLocked(const StepSpec& spec) {
  TRY(EnsureSettled());
  if (spec.id) TRY(CheckChosenId(*spec.id, RedoFate::kGoes));
  if (spec.kind != StepKind::kAmbient) TRY(SettleBetweenSteps());
  const StepId id = spec.id ? *spec.id : NextId(spec.kind);
  TRY(CheckUnusedId(id, RedoFate::kGoes));
  return Begin(spec, id);
}

Result<StepId> LogCore::Begin(const StepSpec& spec, StepId id) {
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  const StepWriterOptions writer_options{.max_copied_bytes = options_.limits.max_step_copied_bytes,
                                         .max_journal_bytes = MaxJournalBytes(options_),
                                         .durability = options_.durability,
                                         .shadows = &shadows_};
  TRY_ASSIGN(auto writer, StepWriter::Create(*place_, frame_->wal(), kInProgress,
                                             NewHeader(spec, id), writer_options));
  // Only when nothing is left that could refuse the step; killed in between, the empty step is dropped and redo is still there.
  if (Status cleared = ClearRedo(); !cleared.ok()) {
    writer.reset();
    BestEffort("drop a step that could not begin", frame_->Discard(frame_->wal(), kInProgress));
    return cleared.error();
  }
  ++next_order_;
  opened_ids_.insert(id);
  told_.clear();
  BestEffort("save barriers", MoveBarriersFrom(id));  // of a step that had the id and was given up
  safeguards_.Reset(id);
  begun_ = options_.steady_clock->Now();
  last_activity_ns_ = begun_.ns;
  SetCurrent(std::move(writer));
  return id;
}

Result<std::vector<StepId>> LogCore::CloseStep(std::span<const ObjectRef> live_writers) {
  LifecycleLock lock(*this);
  if (current() == nullptr && announced_) {
    TRY_ASSIGN(const bool begun, BeginToClose());
    if (!begun) return std::vector<StepId>();
  }
  if (current() == nullptr) return Error(Code::kNotFound, "no step is open");
  TRY(CheckMayEnd());
  if (denied_) {
    const StepId id = current()->header().id;
    TRY(AbortDenied());
    return RolledBack(id);
  }
  return CloseLocked(live_writers);
}

Result<std::vector<StepId>> LogCore::CloseLocked(std::span<const ObjectRef> live_writers) {
  if (denied_) {
    const JournalHeader& header = current()->header();
    const StepId id = header.id;
    const bool ambient = header.kind == StepKind::kAmbient;
    TRY(AbortDenied());
    if (ambient) return std::vector<StepId>();  // nobody waits for that one
    return RolledBack(id);
  }
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  TRY(EnsureSettled());  // an abort that failed half-way: the step closes as it was, or not at all
  StepWriter& writer = *current();
  ChangeCounts counts;
  if (!writer.closed()) {  // else only the promotion failed last time
    TRY(SettleShadows(writer));
    TRY(writer.DropUnchanged());
    writer.Unload();
    TRY(SettleOpenIntents(writer));
    TRY_ASSIGN(StepView view, StepView::Open(writer.files().dir()));
    TRY(NoticeEditsOf(writer, view));
    TRY(NoteAfterStates(writer, view));
    counts = view.Counts();
    TRY(ShadowLiveWriters(live_writers));
    if (live_writer_source_) TRY(ShadowLiveWriters(live_writer_source_()));
  }
  TRY(Promote(writer, counts));
  TakeCurrent();
  ForgetFrozen();
  pass.Reset();
  return Evict();
}

void LogCore::SetLiveWriterSource(UndoLog::LiveWriterSource source) {
  LifecycleLock lock(*this);
  live_writer_source_ = std::move(source);
}

// Tickets that were dropped: whether their operation happened is judged now, before another hand can use the names.
Status LogCore::SettleOpenIntents(StepWriter& writer) {
  if (!writer.has_open_intents()) return Ok();
  TRY_ASSIGN(StepView view, StepView::Open(writer.files().dir()));
  TRY_ASSIGN(const auto outcomes, JudgeOpenIntents(*place_, view));
  for (const OutcomeRecord& outcome : outcomes)
    TRY(writer.Settle(outcome.seq, outcome.sys_errno, outcome.object));
  return Ok();
}

Status LogCore::CloseAmbientLocked() {
  StepWriter* writer = current();
  if (writer == nullptr || writer->header().kind != StepKind::kAmbient) return Ok();
  TRY(CloseLocked({}));
  return Ok();
}

Status LogCore::CloseAmbientStep() {
  LifecycleLock lock(*this);
  return CloseAmbientLocked();
}

StepId LogCore::NextStepId() {
  MutexLock lock(lifecycle_);
  return NextId(StepKind::kCommand);
}

// Fails only before the rename: then the step is still open.
Status LogCore::Promote(StepWriter& writer, const ChangeCounts& counts) {
  TRY(writer.Close(Now().ns, counts));
  TRY_ASSIGN(auto summary, ReadJournalSummary(writer.files().dir(), "journal"));
  const std::string folder = fmt::format("{}", writer.header().id.value);
  if (::renameat(frame_->wal(), kInProgress, frame_->steps(), folder.c_str()) != 0) {
    return Error::FromErrno(errno, fmt::format("promote step {}", folder));
  }
  ::unlinkat(frame_->wal(), kKeepFile, 0);  // left by an abort that failed
  DropNotesOfOpenStep(writer.files().dir());
  BestEffort("sync the folders of the store", MakePowerSafe(Reach::kFolders));
  steps_.push_back({folder, std::move(summary.header), summary.close, false, summary.bytes});
  BestEffort("save signatures", AdoptAfterStates(writer.files().dir()));
  return Ok();
}

// --- Events.

void LogCore::QueueEvent(std::function<void()> event) {
  MutexLock lock(events_mutex_);
  events_.push_back(std::move(event));
}

void LogCore::FireEvents() {
  // An observer may write, and its write would wait for this thread's own restore: it hears of things when that is over.
  if (restoring_.load() == std::this_thread::get_id()) return;
  std::vector<std::function<void()>> events;
  {
    MutexLock lock(events_mutex_);
    events.swap(events_);
  }
  for (const auto& event : events) event();
}

Result<bool> LogCore::Tick() {
  LifecycleLock lock(*this);
  StepWriter* writer = current();
  if (writer == nullptr || writer->header().kind != StepKind::kAmbient) return false;
  const Instant now = options_.steady_clock->Now();
  const bool idle = now - Instant{last_activity_ns_} >= options_.ambient_idle;
  const bool old = now - begun_ >= options_.ambient_max;
  if (!idle && !old) return false;
  TRY(CloseLocked({}));
  return true;
}

// --- Questions from the interceptor.

bool LogCore::OpenStepCarries() const {
  MutexLock lock(current_mutex_);
  return current_ != nullptr && current_->carries();
}

bool LogCore::Ignores(std::string_view path, uint32_t mode) const {
  if (S_ISLNK(mode) && options_.symlinks == SymlinkPolicy::kIgnore) return true;
  return gitignore_ && gitignore_->Ignores(path, S_ISDIR(mode) ? PathKind::kDir : PathKind::kFile);
}

void LogCore::ForgetFrozen() {
  MutexLock lock(frozen_mutex_);
  frozen_.reset();
}

uint32_t LogCore::AnchorsOf(StepWriter& writer, ObjectId object) {
  const uint32_t anchors = writer.AnchorCount(object);
  MutexLock lock(frozen_mutex_);
  if (!frozen_) {
    auto collected = CollectAnchored({frame_->steps(), frame_->redo()});
    if (!collected.ok()) return UINT32_MAX;  // in doubt it must not change
    frozen_ = std::move(*collected);
  }
  auto found = frozen_->find(object);
  return found == frozen_->end() ? anchors : anchors + found->second;
}

Status LogCore::Deny(StepId step) {
  LifecycleLock lock(*this);
  if (current() == nullptr || current()->header().id != step) return Ok();
  return DenyLocked();
}

// What was denied keeps everybody out by itself, also where it cannot be taken back at once.
Status LogCore::DenyLocked() {
  denied_ = true;
  LetOthersIn();
  return AbortDenied();
}

Status LogCore::AbortDenied() {
  const StepId id = current()->header().id;
  const auto aborted = AbortLocked();
  if (aborted.ok()) return Ok();
  return Error(Code::kDenied, fmt::format("step {} was denied and could not be rolled back yet: {}",
                                          id.value, aborted.error().message()));
}

Result<std::vector<HistoryEntry>> LogCore::History() {
  LifecycleLock lock(*this);
  return MergeHistory(steps_, barriers_);
}

uint32_t LogCore::RedoDepth() {
  LifecycleLock lock(*this);
  return static_cast<uint32_t>(redo_.size());
}

// --- The public face.

UndoLog::UndoLog(std::unique_ptr<LogCore> core)
    : core_(std::move(core)), interceptor_(std::make_unique<Interceptor>(*core_)) {}
UndoLog::~UndoLog() = default;

Result<std::unique_ptr<UndoLog>> UndoLog::Open(const UndoPaths& paths, const UndoOptions& options) {
  TRY_ASSIGN(auto core, LogCore::Open(paths, options));
  return std::unique_ptr<UndoLog>(new UndoLog(std::move(core)));
}

Status UndoLog::Discard(const UndoPaths& paths) {
  // Looked at before anything is made in it: opening it for use leaves and removes files of its own.
  auto look = OpenPlace(paths, StoreAccess::kReadOnly);
  if (!look.ok() && look.error().code() != Code::kNotFound) return look.error();
  const auto is_store = look.ok() ? IsStore((*look)->store.get()) : Result<bool>(true);
  if (!is_store.ok()) return is_store.error();
  if (!*is_store) {
    return Error(Code::kInvalid,
                 fmt::format("{} is no undo store; nothing was deleted", (*look)->store_path));
  }
  TRY_ASSIGN(const std::string registry, RegistryFor(paths));
  TRY_ASSIGN(auto place, OpenPlace(paths, StoreAccess::kReadWrite));
  const int store = place->store.get();
  TRY_ASSIGN(const Fd lock, TakeStoreLock(*place));
  for (const char* name : kStoreNames) {
    if (std::string_view(name) != "lock") TRY(RemoveTreeAt(store, name));
  }
  TRY(ReplaceFileAt(store, "version", fmt::format("{}\n", kFormatVersion)));
  place->fresh_store.Keep();
  ForgetProject(registry, place->project_path, place->store_path);
  return Ok();
}

const RecoveryReport& UndoLog::recovery() const { return core_->recovery(); }
const StoreAbilities& UndoLog::abilities() const { return core_->place().abilities; }
const CaptureStats& UndoLog::stats() const { return core_->place().stats; }
Interceptor& UndoLog::interceptor() { return *interceptor_; }
Result<StepId> UndoLog::OpenStep(const StepSpec& spec) { return core_->OpenStep(spec); }
void UndoLog::SetLiveWriterSource(LiveWriterSource source) {
  core_->SetLiveWriterSource(std::move(source));
}
Result<StepId> UndoLog::AnnounceStep(const StepSpec& spec, IfUnchanged if_unchanged) {
  return core_->AnnounceStep(spec, if_unchanged);
}
Result<std::vector<StepId>> UndoLog::CloseStep(std::span<const ObjectRef> live) {
  return core_->CloseStep(live);
}
Result<RewindReport> UndoLog::AbortStep() { return core_->AbortStep(); }
Result<bool> UndoLog::Tick() { return core_->Tick(); }
Status UndoLog::CloseAmbientStep() { return core_->CloseAmbientStep(); }
StepId UndoLog::next_step_id() const { return core_->NextStepId(); }
std::optional<StepId> UndoLog::open_step() const { return core_->OpenStepId(); }
bool UndoLog::has_shadows() const { return core_->HasShadows(); }
Result<RewindReport> UndoLog::Rollback(uint32_t count, Force force) {
  return core_->Rollback(count, force);
}
Result<RewindReport> UndoLog::PlanRollback(uint32_t count) const {
  return core_->PlanRollback(count);
}
Result<RewindReport> UndoLog::Redo(uint32_t count, Force force) {
  return core_->Redo(count, force);
}
Result<RewindReport> UndoLog::PlanRedo(uint32_t count) const { return core_->PlanRedo(count); }
uint32_t UndoLog::redo_depth() const { return core_->RedoDepth(); }
Result<RewindReport> UndoLog::Restore(StepId step, std::span<const std::string> paths,
                                      Force force) {
  return core_->Restore(step, paths, force);
}
Result<RewindReport> UndoLog::PlanRestore(StepId step, std::span<const std::string> paths) const {
  return core_->PlanRestore(step, paths);
}
Status UndoLog::NoteExternalModification(std::span<const std::string> paths) {
  return core_->NoteExternalModification(paths);
}
Result<std::vector<HistoryEntry>> UndoLog::History() const { return core_->History(); }
Result<std::vector<Change>> UndoLog::Changes(StepId step) const {
  return ReadChanges(core_->place(), step);
}
Result<StepDiff> UndoLog::Diff(StepId step) const { return ReadDiff(core_->place(), step); }
void UndoLog::WaitForBackground() { core_->WaitForBackground(); }

}  // namespace sandglass::undo

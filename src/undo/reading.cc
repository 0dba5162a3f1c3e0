#include "undo/reading.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/json.h"
#include "base/rel_path.h"
#include "undo/past_reader.h"
#include "undo/store_frame.h"
#include "undo/text_diff.h"
#include "undo/undo_log.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kMaxDiffBytes = 4 << 20;
constexpr size_t kMaxDiffFiles = 1000;

// A step may go away under a reader, and come back: then its remains are no damage, and it is looked for once more.
Result<StepView> OpenStepView(const Place& place, StepId step) {
  constexpr int kLooks = 100;
  TRY_ASSIGN(const Fd steps, OpenSubdir(place.store.get(), "steps"));
  const std::string name = fmt::format("{}", step.value);
  for (int look = 1;; ++look) {
    const auto dir = OpenSubdir(steps.get(), name.c_str());
    if (!dir.ok() && dir.error().code() == Code::kNotFound)
      return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
    if (!dir.ok()) return dir.error();
    auto view = StepView::Open(dir->get());
    if (view.ok() || look == kLooks || IsStillNamed(steps.get(), name, dir->get())) return view;
  }
}

// Of all journals that can be read. Any other error than damage is returned: whoever collects must not miss what is only out of reach.
template <class Each>
Status ForEachRecord(std::initializer_list<int> step_folders, Each each) {
  for (int folder : step_folders) {
    TRY_ASSIGN(const auto names, ListNames(folder));
    for (const std::string& name : names) {
      TRY_ASSIGN(const auto journal, FindJournal(folder, name.c_str()));
      if (!journal) continue;
      for (size_t i = 0; i < journal->size(); ++i) {
        if (auto record = journal->At(i); record.ok()) each(*record);
      }
    }
  }
  return Ok();
}

std::string_view TypeName(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    case S_IFCHR:
      return "char_device";
    case S_IFBLK:
      return "block_device";
    default:
      return "unknown";
  }
}

Json PathToJson(const NameAt& at) { return BytesToJson(JoinPath(at.dir, at.name)); }

// One line of a manifest. Records that only matter to the machinery give null.
Json RecordToJson(const Record& record, const StepView& view) {
  if (const auto* r = std::get_if<MetaRecord>(&record)) {
    Json json = Json::Object({{"record", "metadata"},
                              {"path", BytesToJson(r->path)},
                              {"type", TypeName(r->meta.mode)},
                              {"mode", fmt::format("{:04o}", r->meta.mode & 07777)},
                              {"uid", r->meta.uid},
                              {"gid", r->meta.gid},
                              {"size", r->meta.size},
                              {"mtime_ns", r->meta.mtime_ns}});
    if (r->names_only()) return json;
    Json xattrs = Json::Array();
    for (const auto& [name, value] : r->meta.xattrs) xattrs.Append(BytesToJson(name));
    return json.Set("xattrs", std::move(xattrs));
  }
  if (const auto* r = std::get_if<ContentRecord>(&record)) {
    static constexpr const char* kKeeping[] = {"pack", "copy", "clone"};
    return Json::Object({{"record", "content"},
                         {"path", BytesToJson(r->path)},
                         {"kept_as", kKeeping[static_cast<size_t>(r->keeping)]},
                         {"dropped", view.IsDropped(*r)},
                         {"offset", r->offset},
                         {"length", r->length},
                         {"file_size", r->file_size}});
  }
  static constexpr const char* kKept[] = {"nothing", "anchor", "content", "directory"};
  const auto outcome = [&](OpSeq seq) {
    const Settled settled = view.Outcome(seq);
    return settled.known ? (settled.sys_errno == 0 ? Json("done") : Json("failed"))
                         : Json("unknown");
  };
  if (const auto* r = std::get_if<CreateRecord>(&record)) {
    return Json::Object({{"record", "create"},
                         {"path", PathToJson(r->at)},
                         {"existed_before", false},
                         {"type", TypeName(r->mode)},
                         {"outcome", outcome(r->seq)}});
  }
  if (const auto* r = std::get_if<RemoveRecord>(&record)) {
    return Json::Object({{"record", "remove"},
                         {"path", PathToJson(r->at)},
                         {"existed_before", r->kept != Kept::kNothing},
                         {"type", TypeName(r->mode)},
                         {"kept_as", kKept[static_cast<size_t>(r->kept)]},
                         {"outcome", outcome(r->seq)}});
  }
  if (const auto* r = std::get_if<RenameRecord>(&record)) {
    return Json::Object({{"record", r->exchange != 0 ? "exchange" : "rename"},
                         {"from", PathToJson(r->from)},
                         {"path", PathToJson(r->to)},
                         {"replaced", r->target != kNoObject},
                         {"kept_as", kKept[static_cast<size_t>(r->target_kept)]},
                         {"outcome", outcome(r->seq)}});
  }
  if (const auto* r = std::get_if<ReplaceRecord>(&record)) {
    return Json::Object({{"record", "fresh_inode"},
                         {"path", PathToJson(r->at)},
                         {"kept_as", "anchor"},
                         {"outcome", outcome(r->seq)}});
  }
  return nullptr;
}

Json ChangeToJson(const Change& change) {
  Json json =
      Json::Object({{"change", ChangeName(change.kind)}, {"path", BytesToJson(change.path)}});
  if (change.kind == ChangeKind::kRenamed) json.Set("old_path", BytesToJson(change.old_path));
  return json.Set("old_size", change.old_size).Set("new_size", change.new_size);
}

}  // namespace

Result<std::vector<Change>> ReadChanges(const Place& place, StepId step) {
  TRY_ASSIGN(const StepView view, OpenStepView(place, step));
  return view.Changes();
}

Result<std::string> ReadManifest(const Place& place, StepId step) {
  TRY_ASSIGN(const StepView view, OpenStepView(place, step));
  const JournalHeader& header = view.header();
  Json records = Json::Array(), changes = Json::Array();
  for (size_t i = 0; i < view.journal().size(); ++i) {
    auto record = view.journal().At(i);
    if (!record.ok()) continue;
    if (Json json = RecordToJson(*record, view); !json.is_null()) records.Append(std::move(json));
  }
  for (const Change& change : view.Changes()) changes.Append(ChangeToJson(change));
  Json manifest = Json::Object({{"step_id", header.id.value},
                                {"type", KindName(header.kind)},
                                {"label", BytesToJson(header.label)},
                                {"opened_ns", header.opened_ns},
                                {"unprotected", view.unprotected()},
                                {"damaged_records", view.journal().damaged()},
                                {"changes", std::move(changes)},
                                {"records", std::move(records)}});
  return WriteJson(manifest);
}

Result<std::unordered_map<ObjectId, uint32_t>> CollectAnchored(
    std::initializer_list<int> step_folders) {
  std::unordered_map<ObjectId, uint32_t> anchors;
  // By number within a journal. A new journal counts from 0, and whatever it intends takes the place of what was left of the last one.
  std::unordered_map<uint32_t, ObjectId> intended;
  const auto intend = [&](OpSeq seq, bool anchored, ObjectId object) {
    intended.erase(seq.value);
    if (!anchored) return;
    intended.emplace(seq.value, object);
    ++anchors[object];
  };
  TRY(ForEachRecord(step_folders, [&](const Record& record) {
    if (const auto* r = std::get_if<CreateRecord>(&record)) intend(r->seq, false, kNoObject);
    if (const auto* r = std::get_if<RemoveRecord>(&record))
      intend(r->seq, r->kept == Kept::kAnchor, r->object);
    if (const auto* r = std::get_if<RenameRecord>(&record))
      intend(r->seq, r->target_kept == Kept::kAnchor, r->target);
    if (const auto* r = std::get_if<ReplaceRecord>(&record)) intend(r->seq, true, r->old_object);
    const auto* outcome = std::get_if<OutcomeRecord>(&record);
    if (outcome == nullptr || outcome->sys_errno == 0) return;
    auto failed = intended.find(outcome->seq.value);
    if (failed == intended.end()) return;
    if (--anchors[failed->second] == 0) anchors.erase(failed->second);
    intended.erase(failed);
  }));
  return anchors;
}

Result<std::unordered_set<ObjectId>> CollectIdentities(std::initializer_list<int> step_folders) {
  std::unordered_set<ObjectId> ids;
  TRY(ForEachRecord(step_folders, [&](const Record& record) {
    if (const auto* r = std::get_if<MetaRecord>(&record)) ids.insert(r->object);
    if (const auto* r = std::get_if<ContentRecord>(&record)) ids.insert(r->object);
    if (const auto* r = std::get_if<OutcomeRecord>(&record)) ids.insert(r->object);
    if (const auto* r = std::get_if<CreateRecord>(&record)) ids.insert({r->object, r->at.parent});
    if (const auto* r = std::get_if<RemoveRecord>(&record)) ids.insert({r->object, r->at.parent});
    if (const auto* r = std::get_if<RenameRecord>(&record))
      ids.insert({r->object, r->target, r->from.parent, r->to.parent});
    if (const auto* r = std::get_if<ReplaceRecord>(&record))
      ids.insert({r->old_object, r->fresh_object, r->at.parent});
  }));
  return ids;
}

// --- Diff.

namespace {

// One side of a path: what had it, and the text of that.
struct Side {
  PastState state;
  std::string text;
};

// kLimit: too large to be compared.
Result<Side> ReadSide(const PastReader& past, const std::string& path) {
  TRY_ASSIGN(PastFile file, past.Open(path));
  TRY_ASSIGN(std::string text, S_ISLNK(file.state.meta.mode)
                                   ? Result<std::string>(file.state.meta.symlink_target)
                                   : file.content.Text(kMaxDiffBytes));
  return Side{std::move(file.state), std::move(text)};
}

DiffInput InputOf(const std::string& path, const Side& side) {
  if (side.state.kind == PastState::Kind::kAbsent)
    return {.path = path, .content = {}, .presence = FilePresence::kAbsent};
  return {.path = path,
          .content = side.text,
          .presence = FilePresence::kPresent,
          .mode = side.state.meta.mode};
}

// Only what has text: folders and special files have none.
bool HasText(const PastState& state) {
  return state.kind == PastState::Kind::kAbsent || S_ISREG(state.meta.mode) ||
         S_ISLNK(state.meta.mode);
}

std::string DiffSides(const std::string& old_path, const Side& before, const std::string& new_path,
                      const Side& after) {
  if (!HasText(before.state) || !HasText(after.state)) return "";
  return UnifiedDiff(InputOf(old_path, before), InputOf(new_path, after));
}

// Both sides of one step.
class Sides {
 public:
  static Result<Sides> Read(const Place& place, StepId step, const StepView& view) {
    TRY_ASSIGN(PastReader before, PastReader::Before(place, step, PastReader::Purpose::kShow));
    TRY_ASSIGN(PastReader after, PastReader::After(place, step, PastReader::Purpose::kShow));
    return Sides(view, std::move(before), std::move(after));
  }

  // kLimit: too large. Any other error: what the step found or left there cannot be told.
  Result<std::string> Compare(const Change& change) const {
    const std::string& old_path =
        change.kind == ChangeKind::kRenamed ? change.old_path : change.path;
    // In this order: what looks as the step left it had not been changed either when the other side was read.
    TRY_ASSIGN(const Side old_side, ReadSide(before_, old_path));
    TRY_ASSIGN(const Side new_side, AfterSide(change));
    return DiffSides(old_path, old_side, change.path, new_side);
  }
  bool AreUpToDate() const { return before_.IsUpToDate() && after_.IsUpToDate(); }

 private:
  Sides(const StepView& view, PastReader before, PastReader after)
      : view_(&view), before_(std::move(before)), after_(std::move(after)) {
    view.journal().ForEachOf<AfterRecord>([&](const AfterRecord& left, size_t) {
      left_.insert_or_assign(after_.Current(left.object), left);
    });
  }

  Result<Side> AfterSide(const Change& change) const {
    if (change.kind == ChangeKind::kDeleted) return Side{};  // whatever has the path by now
    TRY_ASSIGN(Side side, ReadSide(after_, change.path));
    if (IsAsLeft(change.path, side.state)) return side;
    if (after_.left_out()) {
      return Error(Code::kCorrupt, fmt::format("step {} may have changed it, and cannot be read",
                                               after_.left_out()->value));
    }
    return Error(Code::kConflict,
                 "was changed since by someone else, and what the step left there "
                 "is not known");
  }

  // What looks like the state after the step may be somebody else's work that no step kept: only if it looks as the step left it, it is
  // the step's.
  bool IsAsLeft(const std::string& path, const PastState& state) const {
    if (state.kind == PastState::Kind::kAbsent) return false;
    const Expected* expected = view_->expected().Find(path);
    if (expected != nullptr && after_.Current(expected->object) != state.object) return false;
    const auto found = left_.find(state.object);
    if (found == left_.end()) return false;
    const AfterRecord& left = found->second;
    if (S_ISDIR(left.mode) && S_ISDIR(state.meta.mode)) return true;  // has no text
    return left.size == state.meta.size && left.mtime_ns == state.meta.mtime_ns &&
           left.mode == state.meta.mode;
  }

  const StepView* view_;
  PastReader before_, after_;
  std::unordered_map<ObjectId, AfterRecord> left_;  // how the step left objects, by today's ids
};

ConflictKind KindOf(const Error& error) {
  if (error.code() == Code::kConflict) return ConflictKind::kEdited;
  return error.code() == Code::kBusy ? ConflictKind::kBusy : ConflictKind::kCorrupt;
}

// What a step changed does not change any more. So what could be told once is kept, and the rest is tried again as long as the history
// changes under it.
class Differ {
 public:
  explicit Differ(std::vector<Change> changes)
      : changes_(std::move(changes)), texts_(std::min(changes_.size(), kMaxDiffFiles)) {}

  // Returns whether all is told.
  bool TryWith(const Sides& sides) {
    missing_.clear();
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i]) continue;
      const std::string& path = changes_[i].path;
      auto text = sides.Compare(changes_[i]);
      if (text.ok())
        texts_[i] = std::move(*text);
      else if (text.error().code() == Code::kLimit)  // like a binary file: only named
        texts_[i] = fmt::format("# {}: {}\n", path, text.error().message());
      else
        missing_.push_back({KindOf(text.error()), path, text.error().message()});
    }
    return missing_.empty();
  }

  // A file was written to while it was read: that passes, though the history is the same.
  bool MetAWriter() const {
    return std::any_of(missing_.begin(), missing_.end(),
                       [](const Conflict& missing) { return missing.kind == ConflictKind::kBusy; });
  }

  StepDiff Take() {
    StepDiff diff{.text = {}, .missing = std::move(missing_)};
    for (const auto& text : texts_) diff.text += text.value_or("");
    if (changes_.size() > texts_.size())
      diff.text += fmt::format("# and {} more paths\n", changes_.size() - texts_.size());
    return diff;
  }

 private:
  const std::vector<Change> changes_;
  std::vector<std::optional<std::string>> texts_;
  std::vector<Conflict> missing_;
};

}  // namespace

Result<StepDiff> ReadDiff(const Place& place, StepId step) {
  constexpr std::chrono::seconds kPatience{2};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  TRY_ASSIGN(const StepView view, OpenStepView(place, step));
  Differ differ(view.Changes());
  for (;;) {
    TRY_ASSIGN(const Sides sides, Sides::Read(place, step, view));
    const bool told = differ.TryWith(sides) || (!differ.MetAWriter() && sides.AreUpToDate());
    if (told || std::chrono::steady_clock::now() > until) return differ.Take();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// --- StoreReader.

Result<StoreReader> StoreReader::Open(const UndoPaths& paths) {
  TRY_ASSIGN(auto place, OpenPlace(paths, StoreAccess::kReadOnly));
  // A damaged note of whose it is keeps nobody from reading.
  if (Status usable = CheckStore(*place); !usable.ok() && usable.error().code() != Code::kCorrupt)
    return usable.error();
  return StoreReader(std::move(place));
}

StoreReader::StoreReader(std::unique_ptr<Place> place) : place_(std::move(place)) {}
StoreReader::StoreReader(StoreReader&&) noexcept = default;
StoreReader& StoreReader::operator=(StoreReader&&) noexcept = default;
StoreReader::~StoreReader() = default;

Result<std::vector<HistoryEntry>> StoreReader::History() const {
  TRY_ASSIGN(const StepLists lists, ListForReader(place_->store.get()));
  TRY_ASSIGN(auto barriers, ReadBarriers(place_->store.get()));
  return MergeHistory(lists.steps,
                      barriers ? *barriers : BarriersInDoubt(lists.steps, lists.redo.size()));
}
uint32_t StoreReader::redo_depth() const {
  const auto lists = ListForReader(place_->store.get());
  return lists.ok() ? static_cast<uint32_t>(lists->redo.size()) : 0;
}
Result<std::vector<Change>> StoreReader::Changes(StepId step) const {
  return ReadChanges(*place_, step);
}
Result<StepDiff> StoreReader::Diff(StepId step) const { return ReadDiff(*place_, step); }
Result<std::string> StoreReader::Show(StepId step) const { return ReadManifest(*place_, step); }

}  // namespace sandglass::undo

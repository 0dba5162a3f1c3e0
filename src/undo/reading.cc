#include "undo/reading.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/beneath.h"
#include "base/io.h"
#include "base/json.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/looker.h"
#include "undo/text_diff.h"
#include "undo/undo_log.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kMaxDiffBytes = 4 << 20;
constexpr size_t kMaxDiffFiles = 1000;

Result<Fd> OpenStepsFolder(const Place& place) { return OpenSubdir(place.store.get(), "steps"); }

Result<Fd> OpenStepFolder(const Place& place, StepId step) {
  TRY_ASSIGN(Fd steps, OpenStepsFolder(place));
  auto dir = OpenSubdir(steps.get(), fmt::format("{}", step.value).c_str());
  if (!dir.ok() && dir.error().code() == Code::kNotFound) {
    return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
  }
  return dir;
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
  TRY_ASSIGN(Fd dir, OpenStepFolder(place, step));
  TRY_ASSIGN(StepView view, StepView::Open(dir.get()));
  return view.Changes();
}

Result<std::string> ReadManifest(const Place& place, StepId step) {
  TRY_ASSIGN(Fd dir, OpenStepFolder(place, step));
  TRY_ASSIGN(StepView view, StepView::Open(dir.get()));
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

// --- The past.

Result<PastReader> PastReader::Before(const Place& place, StepId step, OnDamage on_damage) {
  return Since(place, step, 0, on_damage);
}
Result<PastReader> PastReader::After(const Place& place, StepId step, OnDamage on_damage) {
  return Since(place, step, 1, on_damage);
}

Result<PastReader> PastReader::Since(const Place& place, StepId step, size_t skip,
                                     OnDamage on_damage) {
  TRY_ASSIGN(Fd folder, OpenStepsFolder(place));
  TRY_ASSIGN(auto rows, ListSteps(folder.get()));
  auto first = std::find_if(rows.begin(), rows.end(),
                            [&](const StepRow& row) { return row.header.id == step; });
  if (first == rows.end())
    return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
  PastReader reader(place);
  TRY(reader.objects_->LoadToRead(place.store.get()));
  for (auto row = first + static_cast<ptrdiff_t>(skip); row != rows.end(); ++row) {
    const Status added = reader.Add(folder.get(), *row);
    if (added.ok()) continue;
    if (on_damage == OnDamage::kRefuse || row == first)
      return added.error().WithContext(fmt::format("step {}", row->header.id.value));
    if (!reader.left_out_) reader.left_out_ = row->header.id;
  }
  return reader;
}

Status PastReader::Add(int steps_folder, const StepRow& row) {
  TRY_ASSIGN(Fd dir, OpenSubdir(steps_folder, row.folder.c_str()));
  TRY_ASSIGN(StepView view, StepView::Open(dir.get()));
  NameTrail trail(view);
  steps_.push_back({std::make_unique<StepFiles>(std::move(dir)),
                    std::make_unique<StepView>(std::move(view)), std::move(trail)});
  IndexPreimages(steps_.size() - 1);
  return Ok();
}

void PastReader::IndexPreimages(size_t step) {
  const JournalView& journal = steps_[step].view->journal();
  for (size_t i = 0; i < journal.size(); ++i) {
    auto record = journal.At(i);
    if (!record.ok()) continue;
    if (const auto* meta = std::get_if<MetaRecord>(&*record))
      preimages_[objects_->Current(meta->object)].push_back({step, i});
    if (const auto* content = std::get_if<ContentRecord>(&*record))
      preimages_[objects_->Current(content->object)].push_back({step, i});
    if (const auto* remove = std::get_if<RemoveRecord>(&*record))
      copied_ = copied_ || remove->kept == Kept::kContent;
    if (const auto* rename = std::get_if<RenameRecord>(&*record))
      copied_ = copied_ || rename->target_kept == Kept::kContent;
  }
}

// Files that changed under another of their names. An anchor counts as a name; of what lost one without an anchor, a single one may be left.
std::vector<std::string> PastReader::LinksBelow(std::string_view prefix) const {
  std::vector<std::string> paths;
  auto fd = OpenBeneath(place_->root.get(), prefix, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return paths;
  auto object = OpenObjectFd(place_->identifier, fd->get());
  if (!object.ok()) return paths;
  if (!object->stat.IsDirectory()) {
    if ((copied_ || object->stat.nlink > 1) && preimages_.contains(object->id))
      paths.emplace_back(prefix);
    return paths;
  }
  LinkIndex index(*place_);
  const auto which = copied_ ? LinkIndex::Which::kAll : LinkIndex::Which::kSeveralNames;
  index.ForEachBelow(fd->get(), std::string(prefix), which,
                     [&](ObjectId id, const std::string& path) {
                       if (preimages_.contains(id)) paths.push_back(path);
                     });
  return paths;
}

PastReader::Fate PastReader::FateOf(const std::string& path) const {
  Fate fate{.end = {.path = path, .object = {}}, .object = {}};
  for (size_t s = 0; s < steps_.size() && fate.end.kind == NameTrail::End::Kind::kHere; ++s) {
    fate.step = s;
    fate.end = steps_[s].trail.Follow(fate.end.path);
    const Expected* left = steps_[s].view->expected().Find(fate.end.path);
    // The first to tell: what a later step found there may be another hand's.
    if (fate.end.kind == NameTrail::End::Kind::kHere && left != nullptr && fate.object == kNoObject)
      fate.object = objects_->Current(left->object);
  }
  if (fate.end.kind == NameTrail::End::Kind::kGone && fate.object == kNoObject)
    fate.object = objects_->Current(fate.end.object);
  return fate;
}

std::optional<ConflictKind> PastReader::Intrusion(const std::string& path, ObjectId now) const {
  std::optional<std::string> at = path;
  for (size_t s = steps_.size(); at && s-- > 0; at = steps_[s].trail.Back(*at)) {
    const Expected* left = steps_[s].view->expected().Find(*at);
    if (left == nullptr || objects_->Current(left->object) == objects_->Current(now)) continue;
    return left->object == kNoObject ? ConflictKind::kOccupied : ConflictKind::kReplaced;
  }
  return std::nullopt;
}

std::optional<std::string> PastReader::Today(StepId step, const std::string& path) const {
  for (size_t s = 0; s < steps_.size(); ++s) {
    if (steps_[s].view->header().id == step) return Forth(s + 1, path);
  }
  return std::nullopt;
}

std::optional<std::string> PastReader::Back(size_t end, std::string path) const {
  std::optional<std::string> at = std::move(path);
  while (at && end-- > 0) at = steps_[end].trail.Back(*at);
  return at;
}

std::optional<std::string> PastReader::Forth(size_t begin, std::string path) const {
  for (size_t s = begin; s < steps_.size(); ++s) {
    NameTrail::End end = steps_[s].trail.Follow(path);
    if (end.kind != NameTrail::End::Kind::kHere) return std::nullopt;
    path = std::move(end.path);
  }
  return path;
}

bool PastReader::MovedHere(const std::string& path) const {
  const auto then = Back(steps_.size(), path);
  return then && *then != path && Forth(0, *then) == path;
}

namespace {

Result<std::string> ReadWhole(int fd, uint64_t max_bytes) {
  TRY_ASSIGN(FileStat stat, StatFd(fd));
  if (stat.size > max_bytes) return Error(Code::kLimit, "too large");
  std::string content(stat.size, '\0');
  TRY_ASSIGN(size_t got,
             PReadFully(fd, {reinterpret_cast<uint8_t*>(content.data()), content.size()}, 0));
  content.resize(got);
  return content;
}

// Turns content back by one record's preimage.
Status Unwrite(std::string& content, const ContentRecord& r, StepFiles& files, uint64_t max_bytes) {
  if (r.file_size > max_bytes) return Error(Code::kLimit, "too large");
  if (r.keeping == Keeping::kPack) {
    // Before anything is allocated; by subtraction, because a sum of forged numbers can wrap.
    if (r.length != 0 && (r.offset > r.file_size || r.length > r.file_size - r.offset))
      return Error(Code::kCorrupt, "its kept bytes do not fit");
    content.resize(r.file_size);
    if (r.length == 0) return Ok();
    TRY_ASSIGN(Bytes bytes, files.ReadPack(r.where, r.length));
    if (HashBytes64(bytes) != r.checksum)
      return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    content.replace(r.offset, bytes.size(), AsText(bytes));
    return Ok();
  }
  const auto blob = files.OpenBlob({static_cast<uint32_t>(r.where)});
  if (!blob.ok()) return Error(Code::kCorrupt, "what was kept of it is missing from the store");
  TRY_ASSIGN(const FileStat stat, StatFd(blob->get()));
  if (stat.size != r.file_size)
    return Error(Code::kCorrupt, "what was kept of it has another size");
  if (r.checksum != 0) {
    TRY_ASSIGN(const uint64_t checksum, ChecksumFile(blob->get(), r.file_size));
    if (checksum != r.checksum) return Error(Code::kCorrupt, "its kept bytes fail their checksum");
  }
  TRY_ASSIGN(content, ReadWhole(blob->get(), max_bytes));
  return Ok();
}

}  // namespace

// Names of all steps, as they were then and as they are now: both may have to become something else.
void PastReader::AddTouched(std::string_view prefix, std::set<std::string>& paths) const {
  const auto add = [&](std::optional<std::string> path) {
    if (path && IsBeneath(*path, prefix)) paths.insert(std::move(*path));
  };
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    step.trail.ForEachOld([&](const std::string& path) { add(Back(s, path)); });
    step.trail.ForEachNew([&](const std::string& path) { add(Forth(s + 1, path)); });
    for (const auto& [path, expected] : step.view->expected().map()) {
      if (expected.object != kNoObject) add(Back(s + 1, path));
    }
  }
}

// What is below a folder that has another name now had a path below the old name then; and what is below one that came from
// elsewhere came along.
void PastReader::AddMoved(std::set<std::string>& paths) const {
  std::vector<std::string> work(paths.begin(), paths.end());
  const auto add = [&](std::string path) {
    if (paths.insert(path).second) work.push_back(std::move(path));
  };
  const auto names_in = [&](const std::string& path) {
    auto folder = OpenBeneath(place_->root.get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return folder.ok() ? ListNamesIfReadable(folder->get()) : std::vector<std::string>();
  };
  while (!work.empty()) {
    const std::string path = std::move(work.back());
    work.pop_back();
    if (const auto now = Forth(0, path); now && *now != path) {
      for (const std::string& name : names_in(*now)) {
        if (Back(steps_.size(), JoinPath(*now, name)) == JoinPath(path, name))
          add(JoinPath(path, name));
      }
    }
    if (!MovedHere(path)) continue;
    for (const std::string& name : names_in(path)) add(JoinPath(path, name));
  }
}

std::vector<std::string> PastReader::ChangedBelow(std::string_view prefix) const {
  std::set<std::string> paths;
  const std::string top(prefix);
  AddTouched(prefix, paths);
  for (std::string& path : LinksBelow(prefix)) paths.insert(std::move(path));
  if (Forth(0, top) != top || Back(steps_.size(), top) != top)
    paths.insert(top);  // by way of a folder above
  AddMoved(paths);
  return {paths.begin(), paths.end()};
}

void PastReader::Known::Add(const ContentRecord& r, size_t in_step) {
  if (step != in_step) kept_bytes = 0;
  step = in_step;
  kept_bytes += r.length;
  if (r.whole || r.keeping != Keeping::kPack || kept_bytes >= r.file_size) content = true;
}

// Backwards from now to the moment that was asked for. Also what lost a name long ago: it may have changed later under others.
Status PastReader::Unwind(ObjectId object, ContentLimit limit, PastState& state,
                          Known& known) const {
  const auto found = preimages_.find(object);
  if (found == preimages_.end()) return Ok();
  for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
    const Step& step = steps_[at->step];
    auto record = step.view->journal().At(at->record);
    if (!record.ok()) continue;
    if (const auto* meta = std::get_if<MetaRecord>(&*record);
        meta != nullptr && !meta->names_only()) {
      state.meta = meta->meta;
      known.meta = true;
    }
    const auto* content = std::get_if<ContentRecord>(&*record);
    if (content == nullptr || step.view->IsDropped(*content)) continue;
    known.Add(*content, at->step);
    if (limit) TRY(Unwrite(state.content, *content, *step.files, *limit));
  }
  return Ok();
}

Result<PastState> PastReader::At(const std::string& path, uint64_t max_bytes) const {
  return Find(path, max_bytes);
}
Result<PastState> PastReader::LookAt(const std::string& path) const {
  return Find(path, std::nullopt);
}

// Nothing has such a path, for example because a file or a symlink has the name of its folder.
static bool IsNothing(const Error& error) {
  return error.code() == Code::kNotFound || error.sys_errno() == ENOTDIR ||
         error.sys_errno() == ELOOP;
}

Result<std::optional<OpenObject>> PastReader::SourceOf(const Fate& fate) const {
  using Nothing = std::optional<OpenObject>;
  if (fate.end.kind == NameTrail::End::Kind::kHere) {
    auto fd = OpenBeneath(place_->root.get(), fate.end.path, O_PATH | O_NOFOLLOW);
    if (!fd.ok() && IsNothing(fd.error())) return Nothing();
    if (!fd.ok()) return fd.error();
    TRY_ASSIGN(OpenObject here, OpenObjectFd(place_->identifier, fd->get()));
    if (fate.object != kNoObject && fate.object != here.id) return Nothing();
    return Nothing(std::move(here));
  }
  if (fate.end.kept != Kept::kAnchor || fate.object != objects_->Current(fate.end.object))
    return Nothing();
  TRY_ASSIGN(int anchors, steps_[fate.step].files->Anchors());
  TRY_ASSIGN(OpenObject kept,
             OpenObjectAt(place_->identifier, anchors, AnchorName(fate.end.anchor).c_str()));
  return Nothing(std::move(kept));
}

Result<PastState> PastReader::Find(const std::string& path, ContentLimit limit) const {
  Fate fate = FateOf(path);
  if (fate.end.kind == NameTrail::End::Kind::kNever) return PastState{};
  PastState state{
      .kind = PastState::Kind::kPresent, .object = {}, .meta = {}, .content = {}, .source = {}};
  const bool here = fate.end.kind == NameTrail::End::Kind::kHere;
  TRY_ASSIGN(const std::optional<OpenObject> source, SourceOf(fate));
  if (here && !source && fate.object == kNoObject) return PastState{};
  if (source) {
    if (here) state.source = fate.end.path;
    if (fate.object == kNoObject) fate.object = source->id;
    TRY_ASSIGN(state.meta, CaptureMetadata(*source, Lifting::kNo));  // a reader changes nothing
    if (limit && S_ISREG(state.meta.mode)) {
      if (!source->readable) return Error(Code::kDenied, fmt::format("{} cannot be read", path));
      TRY_ASSIGN(state.content, ReadWhole(source->fd.get(), *limit));
    }
  }
  state.object = fate.object;
  Known known{.meta = source.has_value(), .content = source.has_value()};
  TRY(Unwind(fate.object, limit, state, known));
  const bool has_content = S_ISREG(state.meta.mode) && state.meta.size > 0;
  if (!known.meta || (has_content && !known.content)) {
    return Error(Code::kConflict,
                 "its content cannot be told any more: it is gone or has been replaced by someone "
                 "else, and the steps kept only a part of it");
  }
  return state;
}

// --- Diff.

namespace {

DiffInput SideOf(const std::string& path, const PastState& state) {
  if (state.kind == PastState::Kind::kAbsent)
    return {.path = path, .content = {}, .presence = FilePresence::kAbsent};
  const std::string& content = S_ISLNK(state.meta.mode) ? state.meta.symlink_target : state.content;
  return {.path = path,
          .content = content,
          .presence = FilePresence::kPresent,
          .mode = state.meta.mode};
}

// Only what has text: folders and special files have none.
bool HasText(const PastState& state) {
  return state.kind == PastState::Kind::kAbsent || S_ISREG(state.meta.mode) ||
         S_ISLNK(state.meta.mode);
}

std::string DiffStates(const std::string& old_path, const PastState& before,
                       const std::string& new_path, const PastState& after) {
  if (!HasText(before) || !HasText(after)) return "";
  return UnifiedDiff(SideOf(old_path, before), SideOf(new_path, after));
}

// How a step left objects, by today's identities.
using LeftAs = std::unordered_map<ObjectId, AfterRecord>;

LeftAs HowItLeft(const StepView& view, const PastReader& past) {
  LeftAs left;
  view.journal().ForEachOf<AfterRecord>([&](const AfterRecord& after, size_t) {
    left.insert_or_assign(past.Current(after.object), after);
  });
  return left;
}

// With a later step left out, what looks like the state after the step may be that one's work: only if it looks as the step left it, it is
// the step's.
bool IsCertain(const PastState& state, const LeftAs& left) {
  if (state.kind == PastState::Kind::kAbsent) return true;
  const auto found = left.find(state.object);
  if (found == left.end()) return false;
  return found->second.size == state.meta.size && found->second.mtime_ns == state.meta.mtime_ns;
}

// Both sides of one step.
struct Sides {
  PastReader before, after;
  LeftAs left;

  Result<std::string> Compare(const Change& change) const {
    const std::string& old_path =
        change.kind == ChangeKind::kRenamed ? change.old_path : change.path;
    TRY_ASSIGN(const PastState old_state, before.At(old_path, kMaxDiffBytes));
    TRY_ASSIGN(const PastState new_state, after.At(change.path, kMaxDiffBytes));
    if (after.left_out() && !IsCertain(new_state, left)) {
      return Error(Code::kCorrupt, fmt::format("step {} may have changed it, and cannot be read",
                                               after.left_out()->value));
    }
    return DiffStates(old_path, old_state, change.path, new_state);
  }
};

}  // namespace

Result<StepDiff> ReadDiff(const Place& place, StepId step) {
  TRY_ASSIGN(Fd dir, OpenStepFolder(place, step));
  TRY_ASSIGN(const StepView view, StepView::Open(dir.get()));
  const auto lenient = PastReader::OnDamage::kLeaveOut;
  TRY_ASSIGN(PastReader before, PastReader::Before(place, step, lenient));
  TRY_ASSIGN(PastReader after, PastReader::After(place, step, lenient));
  LeftAs left = HowItLeft(view, after);
  const Sides sides{std::move(before), std::move(after), std::move(left)};
  const std::vector<Change> changes = view.Changes();
  StepDiff diff;
  for (size_t i = 0; i < changes.size() && i < kMaxDiffFiles; ++i) {
    auto text = sides.Compare(changes[i]);
    if (text.ok())
      diff.text += *text;
    else if (text.error().code() == Code::kLimit)  // like a binary file: only named
      diff.text += fmt::format("# {}: {}\n", changes[i].path, text.error().message());
    else
      diff.missing.push_back({ConflictKind::kCorrupt, changes[i].path, text.error().message()});
  }
  if (changes.size() > kMaxDiffFiles)
    diff.text += fmt::format("# and {} more paths\n", changes.size() - kMaxDiffFiles);
  return diff;
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
  auto folder = OpenStepsFolder(*place_);
  if (!folder.ok()) return std::vector<HistoryEntry>{};
  TRY_ASSIGN(auto rows, ListSteps(folder->get()));
  TRY_ASSIGN(auto barriers, ReadBarriers(place_->store.get()));
  return MergeHistory(rows, barriers ? *barriers : BarriersInDoubt(rows, redo_depth()));
}
uint32_t StoreReader::redo_depth() const {
  const auto folder = OpenSubdir(place_->store.get(), "redo");
  const auto rows = folder.ok() ? ListSteps(folder->get()) : std::vector<StepRow>();
  return rows.ok() ? static_cast<uint32_t>(rows->size()) : 0;
}
Result<std::vector<Change>> StoreReader::Changes(StepId step) const {
  return ReadChanges(*place_, step);
}
Result<StepDiff> StoreReader::Diff(StepId step) const { return ReadDiff(*place_, step); }
Result<std::string> StoreReader::Show(StepId step) const { return ReadManifest(*place_, step); }

}  // namespace sandglass::undo

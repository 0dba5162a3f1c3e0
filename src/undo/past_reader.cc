#include "undo/past_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/verify.h"

namespace sandglass::undo {

namespace {

// The open step, if its header can be read yet.
std::optional<std::pair<Fd, JournalView>> OpenCurrent(const Place& place) {
  const auto wal = OpenSubdir(place.store.get(), "wal");
  auto dir = wal.ok() ? OpenSubdir(wal->get(), kInProgress) : Result<Fd>(wal.error());
  if (!dir.ok()) return std::nullopt;
  auto journal = JournalView::Read(dir->get(), "journal");
  if (!journal.ok()) return std::nullopt;
  return std::pair(std::move(*dir), std::move(*journal));
}

}  // namespace

Result<PastReader> PastReader::Before(const Place& place, StepId step, Purpose purpose) {
  return Since(place, step, 0, purpose);
}
Result<PastReader> PastReader::After(const Place& place, StepId step, Purpose purpose) {
  return Since(place, step, 1, purpose);
}

Result<PastReader> PastReader::Since(const Place& place, StepId step, size_t skip,
                                     Purpose purpose) {
  constexpr int kLooks = 100;
  for (int look = 1;; ++look) {
    auto reader = TrySince(place, step, skip, purpose);
    if (reader.ok() || reader.error().code() != Code::kBusy || look == kLooks) return reader;
  }
}

// kBusy: a step went away that was there a moment ago.
Result<PastReader> PastReader::TrySince(const Place& place, StepId step, size_t skip,
                                        Purpose purpose) {
  PastReader reader(place);
  // The open step first: if it closes meanwhile, it is in the list as well, and not in neither.
  auto open = purpose == Purpose::kShow ? OpenCurrent(place) : std::nullopt;
  TRY_ASSIGN(reader.steps_folder_, OpenSubdir(place.store.get(), "steps"));
  TRY_ASSIGN(reader.listed_, ListNames(reader.steps_folder_.get()));
  TRY_ASSIGN(const StepLists lists, ListForReader(place.store.get()));
  const std::vector<StepRow>& rows = lists.steps;
  const auto first = std::find_if(rows.begin(), rows.end(),
                                  [&](const StepRow& row) { return row.header.id == step; });
  if (first == rows.end())
    return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
  TRY(reader.objects_->LoadToRead(place.store.get()));
  for (auto row = first + static_cast<ptrdiff_t>(skip); row != rows.end(); ++row) {
    const Status added = reader.AddClosed(*row);
    if (added.ok()) continue;
    if (purpose == Purpose::kRestore || row == first || added.error().code() == Code::kBusy)
      return added.error().WithContext(fmt::format("step {}", row->header.id.value));
    if (!reader.left_out_) reader.left_out_ = row->header.id;
  }
  if (purpose == Purpose::kShow) reader.open_.emplace();
  if (open) {
    auto& [dir, journal] = *open;
    *reader.open_ = {journal.header().uid, journal.size()};
    const bool closed = std::any_of(rows.begin(), rows.end(), [&](const StepRow& row) {
      return row.header.uid == reader.open_->uid;
    });
    if (!closed) reader.Add("", std::move(dir), StepView(std::move(journal)));
  }
  return reader;
}

Status PastReader::AddClosed(const StepRow& row) {
  auto dir = OpenSubdir(steps_folder_.get(), row.folder.c_str());
  auto view = dir.ok() ? StepView::Open(dir->get()) : Result<StepView>(dir.error());
  if (view.ok()) {
    Add(row.folder, std::move(*dir), std::move(*view));
    return Ok();
  }
  const bool there = dir.ok() && IsStillNamed(steps_folder_.get(), row.folder, dir->get());
  const bool gone = dir.ok() ? !there : dir.error().code() == Code::kNotFound;
  return gone ? Error(Code::kBusy, "the history is changing; try again") : view.error();
}

void PastReader::Add(std::string folder, Fd dir, StepView view) {
  NameTrail trail(view);
  steps_.push_back({std::move(folder),
                    std::make_unique<StepFiles>(std::move(dir), StepFiles::Access::kOpenOnly),
                    std::make_unique<StepView>(std::move(view)), std::move(trail)});
  IndexPreimages(steps_.size() - 1);
}

// In the order in which a rollback shows itself: wal/rewind while things move, then a row of redo/, and only then its step goes. Looked
// at in any other order it could pass between two looks.
bool PastReader::IsUpToDate() const {
  if (open_ && IsRewinding()) return false;
  if (IsReversed() || !HasSameSteps()) return false;
  if (!open_) return true;
  const auto now = OpenCurrent(*place_);
  return *open_ ==
         (now ? OpenStepMark{now->second.header().uid, now->second.size()} : OpenStepMark());
}

bool PastReader::IsRewinding() const {
  const auto wal = OpenSubdir(place_->store.get(), "wal");
  return wal.ok() && NameExists(wal->get(), kRewind);
}

// A step that has been taken back keeps its name for a moment.
bool PastReader::IsReversed() const {
  const auto lists = ListForReader(place_->store.get());
  if (!lists.ok()) return true;
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return IsReversedBy(lists->redo, step.view->header().uid);
  });
}

bool PastReader::HasSameSteps() const {
  const auto names = ListNames(steps_folder_.get());
  if (!names.ok() ||
      std::set(names->begin(), names->end()) != std::set(listed_.begin(), listed_.end()))
    return false;
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.folder.empty() || IsStillNamed(steps_folder_.get(), step.folder, step.files->dir());
  });
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

void PastReader::Preimages::Add(size_t step, const ContentRecord& record) {
  if (record.whole || record.keeping != Keeping::kPack) contents.clear();
  // Of one object: what replaced a running program has records of its own, of the same bytes.
  if (contents.empty() || contents.back().step != step ||
      contents.back().record.object != record.object)
    kept_bytes = 0;
  kept_bytes += record.length;
  whole =
      whole || record.whole || record.keeping != Keeping::kPack || kept_bytes >= record.file_size;
  contents.push_back({step, record});
}

PastReader::Preimages PastReader::KeptOf(ObjectId object) const {
  Preimages kept;
  const auto found = preimages_.find(object);
  if (found == preimages_.end()) return kept;
  for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
    const Step& step = steps_[at->step];
    auto record = step.view->journal().At(at->record);
    if (!record.ok()) continue;
    if (const auto* meta = std::get_if<MetaRecord>(&*record);
        meta != nullptr && !meta->names_only())
      kept.meta = meta->meta;
    const auto* content = std::get_if<ContentRecord>(&*record);
    if (content != nullptr && !step.view->IsDropped(*content)) kept.Add(at->step, *content);
  }
  return kept;
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
  const auto anchors = steps_[fate.step].files->Anchors();
  auto kept = anchors.ok()
                  ? OpenObjectAt(place_->identifier, *anchors, AnchorName(fate.end.anchor).c_str())
                  : Result<OpenObject>(anchors.error());
  if (kept.ok()) return Nothing(std::move(*kept));
  if (kept.error().code() != Code::kNotFound) return kept.error();
  return Error(Code::kCorrupt, kKeptMissing);
}

Result<PastReader::Traced> PastReader::Trace(const std::string& path) const {
  Traced traced;
  Fate fate = FateOf(path);
  if (fate.end.kind == NameTrail::End::Kind::kNever) return traced;
  PastState& state = traced.state;
  const bool here = fate.end.kind == NameTrail::End::Kind::kHere;
  TRY_ASSIGN(traced.source, SourceOf(fate));
  if (here && !traced.source && fate.object == kNoObject) return traced;
  state.kind = PastState::Kind::kPresent;
  if (traced.source) {
    if (here) state.source = fate.end.path;
    if (fate.object == kNoObject) fate.object = traced.source->id;
    TRY_ASSIGN(state.meta, CaptureMetadata(*traced.source, Lifting::kNo));  // changes nothing
  }
  state.object = fate.object;
  traced.kept = KeptOf(fate.object);
  const bool knows_meta = traced.source || traced.kept.meta;
  if (traced.kept.meta) state.meta = *traced.kept.meta;
  const bool has_content = S_ISREG(state.meta.mode) && state.meta.size > 0;
  if (!knows_meta || (has_content && !traced.source && !traced.kept.whole)) {
    return Error(Code::kConflict,
                 "its content cannot be told any more: it is gone or has been replaced by someone "
                 "else, and the steps kept only a part of it");
  }
  return traced;
}

Result<PastState> PastReader::LookAt(const std::string& path) const {
  TRY_ASSIGN(Traced traced, Trace(path));
  return std::move(traced.state);
}

Result<PastFile> PastReader::Open(const std::string& path) const {
  TRY_ASSIGN(Traced traced, Trace(path));
  PastFile file{.state = std::move(traced.state), .content = {}};
  if (file.state.kind == PastState::Kind::kAbsent || !S_ISREG(file.state.meta.mode)) return file;
  if (traced.source && !traced.kept.whole) {
    if (!traced.source->readable)
      return Error(Code::kDenied, fmt::format("{} cannot be read", path));
    file.content = PastContent::Of(std::move(*traced.source));
  }
  for (const Preimages::Kept& kept : traced.kept.contents)
    TRY(file.content.TurnBack(kept.record, *steps_[kept.step].files));
  return file;
}

}  // namespace sandglass::undo

#include "undo/step_view.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/rel_path.h"

namespace sandglass::undo {

Result<StepView> StepView::Open(int step_dir) {
  auto journal = JournalView::Open(step_dir, "journal");
  if (journal.ok()) return StepView(std::move(*journal));
  if (journal.error().code() == Code::kNotFound)
    return Error(Code::kCorrupt, "the step's journal is missing");
  return journal.error();
}

StepView::StepView(JournalView journal) : journal_(std::move(journal)) {
  Index();
  Follow();
}

void StepView::Index() {
  for (size_t i = 0; i < journal_.size(); ++i) {
    auto record = journal_.At(i);
    if (!record.ok()) continue;
    if (const auto* outcome = std::get_if<OutcomeRecord>(&*record)) {
      if (outcome->seq.value >= journal_.size())
        continue;  // damaged: there cannot be more operations than records
      if (outcome->seq.value >= outcomes_.size()) outcomes_.resize(outcome->seq.value + 1);
      outcomes_[outcome->seq.value] = {true, outcome->sys_errno, outcome->object};
      if (outcome->object != kNoObject) born_.insert(outcome->object);
    } else if (const auto* drop = std::get_if<DropRecord>(&*record)) {
      dropped_blobs_.insert(drop->blob.value);
    } else if (const auto* replace = std::get_if<ReplaceRecord>(&*record)) {
      if (!replace->returned) born_.insert(replace->fresh_object);
    } else if (const auto* why = std::get_if<UnprotectedRecord>(&*record)) {
      unprotected_why_ = std::string(why->why);
    } else if (const auto* after = std::get_if<AfterRecord>(&*record)) {
      sizes_[after->object].after = after->size;
    }
  }
}

void StepView::Follow() {
  for (size_t i = 0; i < journal_.size(); ++i) {
    auto record = journal_.At(i);
    if (record.ok()) Apply(*record);
  }
}

Settled StepView::Outcome(OpSeq seq) const {
  return seq.value < outcomes_.size() ? outcomes_[seq.value] : Settled{};
}

bool StepView::IsDropped(const ContentRecord& record) const {
  return record.keeping != Keeping::kPack &&
         dropped_blobs_.contains(static_cast<uint32_t>(record.where));
}

ObjectId StepView::InitialAt(std::string_view path) const {
  const Initial* initial = initial_.Find(path);
  return initial == nullptr ? kNoObject : initial->object;
}

void StepView::Apply(const Record& record) {
  if (const auto* meta = std::get_if<MetaRecord>(&record)) return Apply(*meta);
  if (const auto* mark = std::get_if<MarkRecord>(&record))
    return NoteChange(mark->path, mark->object);
  if (const auto* content = std::get_if<ContentRecord>(&record)) {
    if (!IsDropped(*content)) NoteChange(content->path, content->object);
    return;
  }
  if (const auto* create = std::get_if<CreateRecord>(&record)) return Apply(*create);
  if (const auto* remove = std::get_if<RemoveRecord>(&record)) return Apply(*remove);
  if (const auto* rename = std::get_if<RenameRecord>(&record)) return Apply(*rename);
  if (const auto* replace = std::get_if<ReplaceRecord>(&record)) return Apply(*replace);
}

void StepView::NoteInitial(const std::string& path, ObjectId object) {
  Initial& initial = initial_[path];
  if (!initial.known) initial = {object, true};
}

void StepView::NoteChange(std::string_view path, ObjectId object) {
  const std::string key(path);
  changed_.insert(object);
  if (!IsBorn(object)) NoteInitial(key, object);
  Expected& expected = expected_[key];
  if (expected.object == kNoObject) expected.object = object;
  expected.changed = true;
  expected.parent_only = false;
}

void StepView::Apply(const MetaRecord& r) {
  sizes_[r.object].before = r.meta.size;
  const std::string path(r.path);
  NoteInitial(path, r.object);
  Expected& expected = expected_[path];
  if (expected.object == kNoObject) expected.object = r.object;
  // A direct touch is only the intention; names that go are accounted for by their own records.
  if (r.reason == TouchReason::kNames) {
    expected.parent_only = !expected.changed;
    return;
  }
  expected.changed = true;
  changed_.insert(r.object);
}

void StepView::Bury(const std::string& path) {
  expected_.TakeBelow(path);
  for (const auto& [rest, initial] : initial_.TakeBelow(path)) {
    if (initial.object != kNoObject) buried_.emplace_back(path + '/' + rest, initial.object);
  }
}

void StepView::Leave(const std::string& path, ObjectId object) {
  NoteInitial(path, IsBorn(object) ? kNoObject : object);
  expected_[path] = {};
}

void StepView::Arrive(const std::string& path, ObjectId object) {
  NoteInitial(path, kNoObject);
  expected_[path] = {.object = object};
}

void StepView::Apply(const CreateRecord& r) {
  const Settled outcome = Outcome(r.seq);
  if (outcome.failed()) return;
  const std::string path = JoinPath(r.at.dir, r.at.name);
  Arrive(path, r.object != kNoObject ? r.object : outcome.created);
  if (r.birth != Birth::kReturned) return;
  // Taking this back takes the object away again, and what somebody did to it since: as with one that was born here.
  expected_[path].changed = true;
  changed_.insert(r.object);
}

void StepView::Apply(const RemoveRecord& r) {
  if (Outcome(r.seq).failed()) return;
  Leave(JoinPath(r.at.dir, r.at.name), r.object);
  if (S_ISDIR(r.mode)) Bury(JoinPath(r.at.dir, r.at.name));
}

void StepView::Apply(const RenameRecord& r) {
  if (Outcome(r.seq).failed()) return;
  const std::string from = JoinPath(r.from.dir, r.from.name), to = JoinPath(r.to.dir, r.to.name);
  NoteInitial(from, IsBorn(r.object) ? kNoObject : r.object);
  NoteInitial(to, IsBorn(r.target) ? kNoObject : r.target);
  const Expected moved = expected_.contains(from) ? expected_[from] : Expected{};
  const Expected displaced = expected_.contains(to) ? expected_[to] : Expected{};
  expected_[to] = {.object = r.object, .changed = moved.changed};
  if (r.exchange != 0) {
    expected_[from] = {.object = r.target, .changed = displaced.changed};
    expected_.SwapBelow(from, to);
    initial_.SwapBelow(from, to);
    return;
  }
  expected_[from] = {};
  if (!S_ISDIR(r.mode)) return;
  Bury(to);
  expected_.MoveBelow(from, to);
  initial_.MoveBelow(from, to);
}

void StepView::Apply(const ReplaceRecord& r) {
  if (Outcome(r.seq).failed()) return;
  const std::string path = JoinPath(r.at.dir, r.at.name);
  NoteInitial(path, r.old_object);
  expected_[path] = {.object = r.fresh_object, .changed = true};
  sizes_[r.fresh_object].before = sizes_[r.old_object].before;
}

Change StepView::Describe(ChangeKind kind, const std::string& path, ObjectId before,
                          ObjectId after) const {
  Change change{.kind = kind, .path = path};
  if (auto found = sizes_.find(before); found != sizes_.end())
    change.old_size = found->second.before;
  if (auto found = sizes_.find(after); found != sizes_.end()) change.new_size = found->second.after;
  return change;
}

std::vector<Change> StepView::Changes() const {
  std::unordered_map<ObjectId, std::string> old_place, new_place;
  for (const auto& [path, initial] : initial_.map()) {
    if (initial.object != kNoObject) old_place.emplace(initial.object, path);
  }
  for (const auto& [path, object] : buried_) old_place.emplace(object, path);
  for (const auto& [path, expected] : expected_.map()) {
    const Initial* initial = initial_.Find(path);
    const bool moved_here = initial == nullptr || initial->object != expected.object;
    if (expected.object != kNoObject && moved_here) new_place.emplace(expected.object, path);
  }
  std::vector<Change> changes;
  for (const auto& [path, object] : buried_) {
    if (!new_place.contains(object))
      changes.push_back(Describe(ChangeKind::kDeleted, path, object, kNoObject));
  }
  for (const auto& [path, expected] : expected_.map()) {
    const Initial* initial = initial_.Find(path);
    const ObjectId before = initial == nullptr ? kNoObject : initial->object,
                   after = expected.object;
    if (before == after) {
      if (after != kNoObject && expected.changed)
        changes.push_back(Describe(ChangeKind::kModified, path, before, after));
      continue;
    }
    const auto came_from = after == kNoObject ? old_place.end() : old_place.find(after);
    if (came_from != old_place.end()) {
      const Expected* there = expected_.Find(came_from->second);
      const bool left = there == nullptr || there->object != after;
      Change change =
          Describe(left ? ChangeKind::kRenamed : ChangeKind::kCreated, path, after, after);
      if (left) change.old_path = came_from->second;
      changes.push_back(std::move(change));
    } else if (after != kNoObject) {
      const bool replaced = before != kNoObject && !new_place.contains(before);
      changes.push_back(
          Describe(replaced ? ChangeKind::kModified : ChangeKind::kCreated, path, before, after));
    } else if (!new_place.contains(before)) {
      changes.push_back(Describe(ChangeKind::kDeleted, path, before, after));
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.path < b.path; });
  return changes;
}

ChangeCounts StepView::Counts() const {
  ChangeCounts counts;
  for (const Change& change : Changes()) {
    switch (change.kind) {
      case ChangeKind::kCreated:
        ++counts.created;
        break;
      case ChangeKind::kModified:
        ++counts.modified;
        break;
      case ChangeKind::kDeleted:
        ++counts.deleted;
        break;
      case ChangeKind::kRenamed:
        ++counts.renamed;
        break;
    }
  }
  return counts;
}

}  // namespace sandglass::undo

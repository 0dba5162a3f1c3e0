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
  journal_.ForEach<OutcomeRecord, DropRecord, ReplaceRecord, UnprotectedRecord, AfterRecord>(
      [this](const Record& record, size_t) {
        if (const auto* outcome = std::get_if<OutcomeRecord>(&record)) {
          if (outcome->seq.value >= journal_.size())
            return;  // damaged: there cannot be more operations than records
          if (outcome->seq.value >= outcomes_.size()) outcomes_.resize(outcome->seq.value + 1);
          outcomes_[outcome->seq.value] = {true, outcome->sys_errno, outcome->object};
          if (outcome->object != kNoObject) born_.insert(outcome->object);
        } else if (const auto* drop = std::get_if<DropRecord>(&record)) {
          dropped_blobs_.insert(drop->blob.value);
        } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
          if (!replace->returned) born_.insert(replace->fresh_object);
        } else if (const auto* why = std::get_if<UnprotectedRecord>(&record)) {
          unprotected_why_ = std::string(why->why);
        } else if (const auto* after = std::get_if<AfterRecord>(&record)) {
          sizes_[after->object].after = after->size;
        }
      });
}

void StepView::Follow() {
  journal_.ForEach<MetaRecord, MarkRecord, ContentRecord, CreateRecord, RemoveRecord, RenameRecord,
                   ReplaceRecord>([this](const Record& record, size_t) { Apply(record); });
}

Settled StepView::Outcome(OpSeq seq) const {
  return seq.value < outcomes_.size() ? outcomes_[seq.value] : Settled{};
}

bool StepView::IsDropped(const ContentRecord& record) const {
  return record.keeping != Keeping::kPack &&
         dropped_blobs_.contains(static_cast<uint32_t>(record.where));
}

ObjectId StepView::InitialAt(std::string_view path) const {
  const Expected* expected = expected_.Find(path);
  return expected == nullptr ? kNoObject : expected->before;
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

Expected& StepView::At(std::string_view path, ObjectId before) {
  Expected& expected = expected_[path];
  if (!expected.before_known) {
    expected.before = before;
    expected.before_known = true;
  }
  return expected;
}

void StepView::Place(Expected& expected, ObjectId object, bool changed) {
  expected.object = object;
  expected.changed = changed;
  expected.parent_only = false;
}

void StepView::NoteChange(std::string_view path, ObjectId object) {
  changed_.insert(object);
  // What was born in the step got its note when it got its name.
  Expected& expected = IsBorn(object) ? expected_[path] : At(path, object);
  if (expected.object == kNoObject) expected.object = object;
  expected.changed = true;
  expected.parent_only = false;
}

void StepView::Apply(const MetaRecord& r) {
  SizeNote& size = sizes_[r.object];
  if (!size.has_before) size = {r.meta.size, size.after, true};
  Expected& expected = At(r.path, r.object);
  if (expected.object == kNoObject) expected.object = r.object;
  // A direct touch is only the intention; names that go are accounted for by their own records.
  if (r.reason != TouchReason::kDirect) {
    expected.parent_only = !expected.changed;
  } else {
    expected.changed = true;
    changed_.insert(r.object);
    expected.parent_only = false;
  }
}

void StepView::Bury(const std::string& path) {
  for (const auto& [rest, expected] : expected_.TakeBelow(path)) {
    if (expected.before != kNoObject) buried_.emplace_back(path + '/' + rest, expected.before);
  }
}

void StepView::Apply(const CreateRecord& r) {
  const Settled outcome = Outcome(r.seq);
  if (outcome.failed()) return;
  Expected& expected = At(JoinPath(r.at.dir, r.at.name), kNoObject);
  const bool returned = r.birth == Birth::kReturned;
  Place(expected, r.object != kNoObject ? r.object : outcome.created, returned);
  // Taking this back takes the object away again, and what somebody did to it since: as with one that was born here.
  if (returned) changed_.insert(r.object);
}

void StepView::Apply(const RemoveRecord& r) {
  if (Outcome(r.seq).failed()) return;
  const std::string path = JoinPath(r.at.dir, r.at.name);
  Place(At(path, UnlessBorn(r.object)), kNoObject, false);
  if (S_ISDIR(r.mode)) Bury(path);
}

void StepView::Apply(const RenameRecord& r) {
  if (Outcome(r.seq).failed()) return;
  const std::string from = JoinPath(r.from.dir, r.from.name), to = JoinPath(r.to.dir, r.to.name);
  Expected& source = At(from, UnlessBorn(r.object));
  Expected& target = At(to, UnlessBorn(r.target));  // nodes of a map do not move
  const bool moved_changed = source.changed, displaced_changed = target.changed;
  Place(target, r.object, moved_changed);
  if (r.exchange != 0) {
    Place(source, r.target, displaced_changed);
    expected_.SwapBelow(from, to);
    return;
  }
  Place(source, kNoObject, false);
  if (!S_ISDIR(r.mode)) return;
  Bury(to);
  expected_.MoveBelow(from, to);
}

void StepView::Apply(const ReplaceRecord& r) {
  if (Outcome(r.seq).failed()) return;
  Place(At(JoinPath(r.at.dir, r.at.name), r.old_object), r.fresh_object, true);
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

template <class Each>
void StepView::ForEachChange(Each each) const {
  // Where objects were and are, of those that moved. Values point to keys of the maps below.
  std::unordered_map<ObjectId, const std::string*> old_place, new_place;
  for (const auto& [path, expected] : expected_.map()) {
    const bool moved_here = expected.before != expected.object;
    if (expected.object != kNoObject && moved_here) new_place.emplace(expected.object, &path);
  }
  if (!new_place.empty()) {  // a step that only deletes need not know
    for (const auto& [path, expected] : expected_.map()) {
      if (expected.before != kNoObject) old_place.emplace(expected.before, &path);
    }
    for (const auto& [path, object] : buried_) old_place.emplace(object, &path);
  }
  for (const auto& [path, object] : buried_) {
    if (!new_place.contains(object)) each(ChangeKind::kDeleted, path, object, kNoObject, nullptr);
  }
  for (const auto& [path, expected] : expected_.map()) {
    const ObjectId before = expected.before, after = expected.object;
    if (before == after) {
      // By the object: it may have been changed under a name that went again.
      if (after != kNoObject && (expected.changed || changed_.contains(after)))
        each(ChangeKind::kModified, path, before, after, nullptr);
      continue;
    }
    const auto came_from = after == kNoObject ? old_place.end() : old_place.find(after);
    if (came_from != old_place.end()) {
      const Expected* there = expected_.Find(*came_from->second);
      const bool left = there == nullptr || there->object != after;
      each(left ? ChangeKind::kRenamed : ChangeKind::kCreated, path, after, after,
           left ? came_from->second : nullptr);
    } else if (after != kNoObject) {
      const bool replaced = before != kNoObject && !new_place.contains(before);
      each(replaced ? ChangeKind::kModified : ChangeKind::kCreated, path, before, after, nullptr);
    } else if (!new_place.contains(before)) {
      each(ChangeKind::kDeleted, path, before, after, nullptr);
    }
  }
}

std::vector<Change> StepView::Changes() const {
  std::vector<Change> changes;
  ForEachChange([&](ChangeKind kind, const std::string& path, ObjectId before, ObjectId after,
                    const std::string* old_path) {
    changes.push_back(Describe(kind, path, before, after));
    if (old_path != nullptr) changes.back().old_path = *old_path;
  });
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.path < b.path; });
  return changes;
}

namespace {

void Count(ChangeKind kind, ChangeCounts& counts) {
  switch (kind) {
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

// What taking a change back does to the project.
Change Inverse(Change change) {
  std::swap(change.old_size, change.new_size);
  switch (change.kind) {
    case ChangeKind::kCreated:
      change.kind = ChangeKind::kDeleted;
      break;
    case ChangeKind::kDeleted:
      change.kind = ChangeKind::kCreated;
      break;
    case ChangeKind::kRenamed:
      std::swap(change.path, change.old_path);
      break;
    case ChangeKind::kModified:
      break;
  }
  return change;
}

}  // namespace

std::vector<Change> StepView::InverseChanges() const {
  std::vector<Change> changes = Changes();
  for (Change& change : changes) change = Inverse(std::move(change));
  return changes;
}

ChangeCounts CountsOf(const std::vector<Change>& changes) {
  ChangeCounts counts;
  for (const Change& change : changes) Count(change.kind, counts);
  return counts;
}

ChangeCounts StepView::Counts() const {
  ChangeCounts counts;
  ForEachChange([&](ChangeKind kind, const std::string&, ObjectId, ObjectId, const std::string*) {
    Count(kind, counts);
  });
  return counts;
}

}  // namespace sandglass::undo

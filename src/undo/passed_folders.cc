#include "undo/passed_folders.h"

#include <sys/stat.h>

#include <cstdint>

namespace sandglass::undo {

PassedFolders::PassedFolders(const StepView& view, const ObjectsTable& objects)
    : view_(view), objects_(objects) {
  view.journal().ForEachOf<CreateRecord>(
      [this](const CreateRecord& create, size_t) { NoteBorn(create); });
  // Once more while there are more: one of them may have been in yet another one.
  for (size_t before = SIZE_MAX; before != passed_.size() && !born_.empty();) {
    before = passed_.size();
    view.journal().ForEach<RemoveRecord, RenameRecord, ReplaceRecord>(
        [this](const Record& record, size_t) { NotePassage(record); });
  }
}

bool PassedFolders::Has(const Folders& folders, ObjectId id) const {
  return folders.contains(id) || folders.contains(objects_.Current(id));
}

void PassedFolders::NoteBorn(const CreateRecord& create) {
  if (!S_ISDIR(create.mode)) return;
  if (const ObjectId id = view_.Outcome(create.seq).created; id != kNoObject) Add(born_, id);
}

void PassedFolders::NotePassage(const Record& record) {
  if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
    if (Matters(remove->object)) NoteParent(remove->at);
  } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
    // What was born in the step and left the folder must go back into it to be taken away, or it would stay where it went.
    const bool leaves = rename->from.parent != rename->to.parent;
    if (!leaves && !Matters(rename->object) && !Matters(rename->target)) return;
    NoteParent(rename->from);
    NoteParent(rename->to);
  } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
    NoteParent(replace->at);
  }
}

bool PassedFolders::Matters(ObjectId object) const {
  return object != kNoObject && (!view_.IsBorn(object) || Contains(object));
}

void PassedFolders::NoteParent(const NameAt& at) {
  if (IsBorn(at.parent)) Add(passed_, at.parent);
}

}  // namespace sandglass::undo

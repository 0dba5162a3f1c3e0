// Folders that were born in a step and are gone again, although something passed through them that was there before or is there
// still: on its way back it passes through them once more. Built once; one thread.
#pragma once

#include <unordered_set>

#include "undo/objects_table.h"
#include "undo/step_view.h"

namespace sandglass::undo {

class PassedFolders {
 public:
  PassedFolders(const StepView& view, const ObjectsTable& objects);
  bool Contains(ObjectId folder) const { return Has(passed_, folder); }
  bool IsBorn(ObjectId folder) const { return Has(born_, folder); }

 private:
  // In the journal of a rewind a folder is known by what the step that was taken back called it, or by its own identity.
  using Folders = std::unordered_set<ObjectId>;
  bool Has(const Folders& folders, ObjectId id) const;
  void Add(Folders& folders, ObjectId id) { folders.insert({id, objects_.Current(id)}); }
  void NoteBorn(const CreateRecord& create);
  void NotePassage(const Record& record);
  void NoteParent(const NameAt& at);
  bool Matters(ObjectId object) const;

  const StepView& view_;
  const ObjectsTable& objects_;
  Folders born_, passed_;
};

}  // namespace sandglass::undo

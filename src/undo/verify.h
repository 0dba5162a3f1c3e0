// Verify: may a step be taken back? Looks only; changes nothing.
#pragma once

#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "undo/looker.h"
#include "undo/name_trail.h"
#include "undo/objects_table.h"
#include "undo/place.h"
#include "undo/shadows.h"
#include "undo/step_files.h"
#include "undo/step_view.h"
#include "undo/types.h"

namespace sandglass::undo {

// Newer steps that would be taken back first: the disk shows names as these left them.
class LaterSteps {
 public:
  // Newest first.
  void Add(const StepView& view) {
    trails_.emplace_back(view);
    changed_.insert(view.changed().begin(), view.changed().end());
  }
  // One of them changed the object, under whatever name: it does not look yet as it will when they are taken back.
  bool HaveChanged(ObjectId object) const { return changed_.contains(object); }
  // The same by today's identity.
  bool HaveChangedNow(ObjectId current, const ObjectsTable& objects) const;
  // What became of a path from before all of them.
  NameTrail::End Follow(std::string_view path) const;
  // Where a present path was before all of them; nullopt: it is newer.
  std::optional<std::string> Back(std::string path) const;

 private:
  std::vector<NameTrail> trails_;
  std::unordered_set<ObjectId> changed_;
};

// HashAttributes of the folder at the path; nullopt: nobody can tell.
Result<std::optional<uint64_t>> AttributesAt(const Place& place, const std::string& path);
// Does what was found at the path look as a step or rewind last left it? Where nobody noted that, it is taken to.
Result<bool> LooksAsLeft(const Place& place, const ObjectsTable& objects, const std::string& path,
                         const Found& found);

// What IsChanged() holds for, by today's identities: a rewind may have made some of it anew since.
std::unordered_set<ObjectId> ChangedNow(const StepView& view, const ObjectsTable& objects);

// None of these answers is given if something could not be looked at: not to see is not to see nothing. Errors: kIo and the like.

// Where the project differs from what the step left behind, path by path: someone else's edits.
Result<std::vector<Conflict>> FindEdits(const Place& place, const ObjectsTable& objects,
                                        const StepView& view, StepFiles& files,
                                        const Shadows& shadows, SymlinkPolicy symlinks,
                                        const LaterSteps* later = nullptr);

// What the step kept and can no longer give back: missing files, failed checksums.
enum class StepEnd : uint8_t { kClosed, kInterrupted };
// A rewind compares what an anchor looks like when it has brought it back, for it has to look then anyway, and turns back if it must.
// Before that it is enough to know that all of them are there.
enum class AnchorCheck : uint8_t { kPresence, kLooks };
Result<std::vector<Conflict>> FindDamage(const StepView& view, StepFiles& files, StepEnd end,
                                         AnchorCheck check = AnchorCheck::kLooks,
                                         const LaterSteps* later = nullptr);

// What a step's journal says about the looks of an object that it only took a name from. As long as the step keeps it alive alone, nothing
// but damage can change them.
struct KeptLook {
  uint64_t size;
  int64_t mtime_ns;
  bool Matches(const FileStat& stat) const {
    if (!stat.IsRegular() || stat.nlink > 1)
      return true;  // alive under another name, where it may change
    return stat.size == size && stat.mtime_ns == mtime_ns;
  }
};
std::optional<KeptLook> LookLeftAlone(const StepView& view, const MetaRecord& r);
inline constexpr const char* kKeptChanged = "what was kept of it has been changed in the store";

// Whether an operation has happened whose outcome nobody told, by who has the name now (of a rename: the new name). `object` is who it is
// about; kNoObject: it was to be born.
enum class IntentKind : uint8_t { kCreate, kRemove, kRename };
bool HasHappened(IntentKind kind, ObjectId object, ObjectId now);

// Operations that were intended and never settled, settled by what is on disk.
Result<std::vector<OutcomeRecord>> JudgeOpenIntents(const Place& place, const StepView& view);

// Objects of something interrupted that changed after `cutoff_ns`: a person's, to be kept. Also those that lost the names it knows and live
// on under others: `step_dir` has their anchors.
Result<std::vector<ObjectId>> FindLateChanges(const Place& place, const ObjectsTable& objects,
                                              const StepView& view, int step_dir,
                                              int64_t cutoff_ns);

}  // namespace sandglass::undo

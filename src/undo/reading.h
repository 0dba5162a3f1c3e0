// Reading steps from a store without owning it: summaries, diffs, and what a path was before a step. Only reads; folders may vanish
// under it (an owner evicts), which then is kNotFound. Any thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "undo/metadata.h"
#include "undo/name_trail.h"
#include "undo/objects_table.h"
#include "undo/place.h"
#include "undo/step_files.h"
#include "undo/step_view.h"
#include "undo/store_frame.h"
#include "undo/types.h"

namespace sandglass::undo {

// kNotFound: no such step.
Result<std::vector<Change>> ReadChanges(const Place& place, StepId step);
Result<StepDiff> ReadDiff(const Place& place, StepId step);
Result<std::string> ReadManifest(const Place& place, StepId step);

// How many names the steps in these folders keep of which objects.
Result<std::unordered_map<ObjectId, uint32_t>> CollectAnchored(
    std::initializer_list<int> step_folders);
// Every identity that stands in the journals in these folders.
Result<std::unordered_set<ObjectId>> CollectIdentities(std::initializer_list<int> step_folders);

// What had a path at some moment in the past.
struct PastState {
  enum class Kind : uint8_t { kAbsent, kPresent } kind = Kind::kAbsent;
  ObjectId object;  // the one that had the path, as it is known today
  Metadata meta;
  std::string content;  // regular files
  std::string source;   // where in the project its content comes from now; "": from nowhere in it
};

// The past of single paths, worked out from the preimages of every step since.
class PastReader {
 public:
  // Whether a step that cannot be read ends it all, or is left out: then what it changed looks as if it had always been so, and the
  // caller has to find out where that matters.
  enum class OnDamage : uint8_t { kRefuse, kLeaveOut };
  // What paths were before `step`. kNotFound: no such step. kCorrupt: it or a later one is damaged.
  static Result<PastReader> Before(const Place& place, StepId step,
                                   OnDamage on_damage = OnDamage::kRefuse);
  // What paths were after `step`, i.e. before the one that followed it.
  static Result<PastReader> After(const Place& place, StepId step,
                                  OnDamage on_damage = OnDamage::kRefuse);

  // Paths at or below `prefix` that were something else then, as far as the steps can tell: what they touched, what changed under
  // another name, and what went along with a folder that was renamed.
  std::vector<std::string> ChangedBelow(std::string_view prefix) const;
  // How something came to the present path `path` that is not what the steps left there (`now` is there, under today's identity);
  // nullopt: it did not, as far as they can tell.
  std::optional<ConflictKind> Intrusion(const std::string& path, ObjectId now) const;
  // Where the name `path` of after `step` is now; nullopt: it is gone, or the step is none of these.
  std::optional<std::string> Today(StepId step, const std::string& path) const;
  // kLimit: larger than `max_bytes`. kConflict: another hand took it away or put something else in its place, and what the steps kept
  // is not all of it.
  Result<PastState> At(const std::string& path, uint64_t max_bytes) const;
  // The damaged step that was left out, if any: the oldest.
  std::optional<StepId> left_out() const { return left_out_; }
  // Today's identity of an object of that time.
  ObjectId Current(ObjectId object) const { return objects_->Current(object); }
  // The same without content.
  Result<PastState> LookAt(const std::string& path) const;

 private:
  struct Step {
    std::unique_ptr<StepFiles> files;
    std::unique_ptr<StepView> view;
    NameTrail trail;
  };
  struct RecordAt {
    size_t step, record;
  };
  // What became of what had a path then.
  struct Fate {
    NameTrail::End end;
    size_t step = 0;  // in which step it went
    ObjectId object;  // as it is known today, if any record told
  };
  // What of a past state is certain: what was read from the object itself, or kept as a whole.
  struct Known {
    bool meta = false, content = false;
    size_t step = SIZE_MAX;   // that the next number is about
    uint64_t kept_bytes = 0;  // by ranges, which never overlap within a step

    void Add(const ContentRecord& r, size_t in_step);
  };
  // Whether contents are wanted, and up to which size.
  using ContentLimit = std::optional<uint64_t>;
  explicit PastReader(const Place& place) : place_(&place) {}
  static Result<PastReader> Since(const Place& place, StepId step, size_t skip, OnDamage on_damage);
  Status Add(int steps_folder, const StepRow& row);

  void IndexPreimages(size_t step);
  Fate FateOf(const std::string& path) const;
  // The path that the name `path` of before the step number `end` had then; nullopt: it is newer.
  std::optional<std::string> Back(size_t end, std::string path) const;
  // The present path of a name of after the step number `begin - 1`; nullopt: it is gone.
  std::optional<std::string> Forth(size_t begin, std::string path) const;
  // Does what has this path now come from elsewhere?
  bool MovedHere(const std::string& path) const;
  void AddTouched(std::string_view prefix, std::set<std::string>& paths) const;
  void AddMoved(std::set<std::string>& paths) const;
  std::vector<std::string> LinksBelow(std::string_view prefix) const;
  Result<PastState> Find(const std::string& path, ContentLimit limit) const;
  // The object itself, if it still is where the steps left it or kept it.
  Result<std::optional<OpenObject>> SourceOf(const Fate& fate) const;
  Status Unwind(ObjectId object, ContentLimit limit, PastState& state, Known& known) const;

  const Place* place_;
  std::unique_ptr<ObjectsTable> objects_ = std::make_unique<ObjectsTable>();
  std::vector<Step> steps_;  // oldest first
  std::optional<StepId> left_out_;
  bool copied_ = false;  // some step kept a copy of what lost a name
  std::unordered_map<ObjectId, std::vector<RecordAt>>
      preimages_;  // by today's object, oldest first
};

}  // namespace sandglass::undo

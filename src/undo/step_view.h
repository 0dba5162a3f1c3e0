// StepView: what a step's journal says, read forwards: which names and objects it left behind, and what that means for a person.
//
// Built once from a journal and immutable. The journal's views live as long as it does. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "undo/journal_view.h"
#include "undo/types.h"

namespace sandglass::undo {

// What happened to an intended operation.
struct Settled {
  bool known = false;  // false: killed in between, judge by what is on disk
  int32_t sys_errno = 0;
  ObjectId created;
  bool failed() const { return known && sys_errno != 0; }
};

// An ordered map from paths to T that can move a folder's entries along with the folder.
template <class T>
class PathMap {
 public:
  using Map = std::map<std::string, T, std::less<>>;
  using Taken = std::vector<std::pair<std::string, T>>;
  T& operator[](std::string_view path) {
    auto at = map_.lower_bound(path);
    if (at == map_.end() || at->first != path) at = map_.emplace_hint(at, std::string(path), T{});
    return at->second;
  }
  bool contains(std::string_view path) const { return map_.find(path) != map_.end(); }
  T* Find(std::string_view path) {
    auto found = map_.find(path);
    return found == map_.end() ? nullptr : &found->second;
  }
  const T* Find(std::string_view path) const { return const_cast<PathMap*>(this)->Find(path); }
  void Erase(std::string_view path) {
    auto found = map_.find(path);
    if (found != map_.end()) map_.erase(found);
  }
  Map& map() { return map_; }
  const Map& map() const { return map_; }

  // Removes everything below `dir` and returns it with paths from there.
  Taken TakeBelow(std::string_view dir) {
    // '0' follows '/' in ASCII, so these bounds enclose exactly what starts with "dir/".
    std::string begin = std::string(dir) + '/', end = std::string(dir) + '0';
    auto first = map_.lower_bound(begin), last = map_.lower_bound(end);
    Taken taken;
    for (auto it = first; it != last; ++it)
      taken.emplace_back(it->first.substr(begin.size()), std::move(it->second));
    map_.erase(first, last);
    return taken;
  }
  // Everything below `from` (not `from` itself) is below `to` now.
  void MoveBelow(std::string_view from, std::string_view to) {
    auto moved = TakeBelow(from);
    PutBelow(to, std::move(moved));
  }
  void SwapBelow(std::string_view a, std::string_view b) {
    auto below_a = TakeBelow(a), below_b = TakeBelow(b);
    PutBelow(a, std::move(below_b));
    PutBelow(b, std::move(below_a));
  }

 private:
  void PutBelow(std::string_view dir, Taken taken) {
    for (auto& [rest, value] : taken) map_[std::string(dir) + '/' + rest] = std::move(value);
  }

  Map map_;
};

ChangeCounts CountsOf(const std::vector<Change>& changes);

// What a step left at a path, and what it found there.
struct Expected {
  ObjectId object;       // kNoObject: nothing has this name
  bool changed = false;  // its content or metadata was touched, not only its name or a name in it
  bool parent_only = false;  // a directory in which names changed
  bool before_known = false;
  ObjectId before;  // what had the name before the step; kNoObject: nothing
};

class StepView {
 public:
  static Result<StepView> Open(int step_dir);
  explicit StepView(JournalView journal);

  const JournalView& journal() const { return journal_; }
  const JournalHeader& header() const { return journal_.header(); }
  Settled Outcome(OpSeq seq) const;
  bool IsDropped(const ContentRecord& record) const;
  const std::string& unprotected_why() const { return unprotected_why_; }
  bool unprotected() const { return !unprotected_why_.empty(); }

  // Paths at the end of the step. Root is "".
  const PathMap<Expected>& expected() const { return expected_; }
  // Paths in folders that the step removed, with what had been there.
  const std::vector<std::pair<std::string, ObjectId>>& buried() const { return buried_; }
  // What had this name before the step (kNoObject: nothing, or the step did not care).
  ObjectId InitialAt(std::string_view path) const;
  bool has_changed_objects() const { return !changed_.empty(); }
  const std::unordered_set<ObjectId>& changed() const { return changed_; }
  const std::unordered_set<ObjectId>& born() const { return born_; }
  bool IsBorn(ObjectId object) const { return born_.contains(object); }
  // Its content or metadata was touched, under whatever name, or it was born: taking the step back touches it again.
  bool IsChanged(ObjectId object) const { return changed_.contains(object) || IsBorn(object); }
  // For people. Sizes after the step are known once it is closed.
  std::vector<Change> Changes() const;
  // What taking the step back does to the project if nobody else has touched it.
  std::vector<Change> InverseChanges() const;
  ChangeCounts Counts() const;

 private:
  struct SizeNote {
    uint64_t before = 0, after = 0;
    bool has_before = false;  // the first record counts
  };

  void Index();
  void Follow();
  void Apply(const Record& record);
  void Apply(const MetaRecord& r);
  void Apply(const CreateRecord& r);
  void Apply(const RemoveRecord& r);
  void Apply(const RenameRecord& r);
  void Apply(const ReplaceRecord& r);
  // A folder went: what was known about names in it does not concern whatever gets its name next.
  void Bury(const std::string& path);
  // The note of a path. The first to ask for it says what had the path before the step.
  Expected& At(std::string_view path, ObjectId before);
  ObjectId UnlessBorn(ObjectId object) const { return IsBorn(object) ? kNoObject : object; }
  static void Place(Expected& expected, ObjectId object, bool changed);
  void NoteChange(std::string_view path, ObjectId object);
  // Calls `each(kind, path, object before, object after, old path or null)`.
  template <class Each>
  void ForEachChange(Each each) const;
  Change Describe(ChangeKind kind, const std::string& path, ObjectId before, ObjectId after) const;

  JournalView journal_;
  std::vector<Settled> outcomes_;
  std::unordered_set<uint32_t> dropped_blobs_;
  std::unordered_set<ObjectId> born_;
  std::unordered_set<ObjectId> changed_;
  std::unordered_map<ObjectId, SizeNote> sizes_;
  std::string unprotected_why_;
  PathMap<Expected> expected_;
  std::vector<std::pair<std::string, ObjectId>> buried_;  // what had been in folders that went
};

}  // namespace sandglass::undo

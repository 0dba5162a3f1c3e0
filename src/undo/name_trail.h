// NameTrail: where the names from before a step lead after it, and where the names after it come from.
//
// A path means something only at one moment: folders above it get other names, its own name goes to another object. Whoever
// compares two moments with a step in between (a plan of several rollbacks, a look into the past) has to follow names, not
// texts. Built once from a StepView and immutable after that; value type.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "undo/step_view.h"

namespace sandglass::undo {

class NameTrail {
 public:
  // What became of a path from before the step.
  struct End {
    enum class Kind : uint8_t {
      kHere,   // whatever had it, if anything, has `path` after the step
      kGone,   // `object` had it and lost its name in the step
      kNever,  // nothing had it
    } kind = Kind::kHere;
    std::string path;
    ObjectId object;
    Kept kept = Kept::kNothing;
    AnchorId anchor{};
  };

  explicit NameTrail(const StepView& view);

  End Follow(std::string_view path) const;
  // Where the name that is `path` after the step was before it; nullopt: it is a new one.
  std::optional<std::string> Back(std::string_view path) const;
  // Every path that the step itself gave another meaning: as they were before it, and as they are after it.
  void ForEachOld(const std::function<void(const std::string&)>& each) const;
  void ForEachNew(const std::function<void(const std::string&)>& each) const;

 private:
  struct Origin {
    bool born = false;
    std::string path;  // before the step
  };

  void Apply(const Record& record, const StepView& view);
  void Create(const std::string& path);
  void Remove(const std::string& path, const End& end);
  void Rename(const RenameRecord& r);
  void Exchange(const std::string& a, const std::string& b);
  Origin OriginOf(std::string_view path) const;
  // From now on the object that has the name `path` is the one from `origin`.
  void Place(const std::string& path, const Origin& origin);
  // The name was free before the step, unless something is known to have had it.
  void NoteFree(const std::string& path);

  std::map<std::string, End, std::less<>> ends_;  // by path before the step
  PathMap<Origin> origins_;                       // by path after the step
};

// The renames of a step, to turn paths in its records back. Reads the journal once; value type.
class EarlierNames {
 public:
  explicit EarlierNames(const StepView& view);
  // Where the path that stands in the record `index` was before the step.
  std::string Before(size_t index, std::string path) const;

 private:
  struct Rename {
    size_t index;  // of its record
    std::string from, to;
    bool exchange;
  };
  std::vector<Rename> renames_;  // in order
};

}  // namespace sandglass::undo

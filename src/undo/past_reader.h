// PastReader: what single paths were at some moment, worked out from the preimages of every step since.
//
// It reads the store without owning it and changes nothing in it. Immutable once made; one thread, because packs are read by it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "undo/metadata.h"
#include "undo/name_trail.h"
#include "undo/objects_table.h"
#include "undo/past_content.h"
#include "undo/place.h"
#include "undo/step_files.h"
#include "undo/step_view.h"
#include "undo/store_frame.h"
#include "undo/types.h"

namespace sandglass::undo {

// What had a path at some moment in the past.
struct PastState {
  enum class Kind : uint8_t { kAbsent, kPresent } kind = Kind::kAbsent;
  ObjectId object;  // the one that had the path, as it is known today
  Metadata meta;
  std::string source;  // where in the project it is now; "": nowhere in it
};
// The same with what it held.
struct PastFile {
  PastState state;
  PastContent content;  // of regular files
};

// Which step is open, and how far it has got; uid 0: none.
struct OpenStepMark {
  uint64_t uid = 0;
  size_t records = 0;
  friend bool operator==(const OpenStepMark&, const OpenStepMark&) = default;
};

class PastReader {
 public:
  enum class Purpose : uint8_t {
    // Every step since must be readable. Whoever restores has closed the open one.
    kRestore,
    // A step that cannot be read is left out: then what it changed looks as if it had always been so, and the caller has to find out
    // where that matters. The open step, as far as it has got, counts as one more.
    kShow,
  };
  // What paths were before `step`. kNotFound: no such step. kCorrupt: it or a later one is damaged. kBusy: the history changes too fast.
  static Result<PastReader> Before(const Place& place, StepId step,
                                   Purpose purpose = Purpose::kRestore);
  // What paths were after `step`, i.e. before the one that followed it.
  static Result<PastReader> After(const Place& place, StepId step,
                                  Purpose purpose = Purpose::kRestore);
  // Is the history still the one that was read? If not, what this tells may be neither past nor present.
  bool IsUpToDate() const;

  // Paths at or below `prefix` that were something else then, as far as the steps can tell: what they touched, what changed under
  // another name, and what went along with a folder that was renamed.
  std::vector<std::string> ChangedBelow(std::string_view prefix) const;
  // How something came to the present path `path` that is not what the steps left there (`now` is there, under today's identity);
  // nullopt: it did not, as far as they can tell.
  std::optional<ConflictKind> Intrusion(const std::string& path, ObjectId now) const;
  // Where the name `path` of after `step` is now; nullopt: it is gone, or the step is none of these.
  std::optional<std::string> Today(StepId step, const std::string& path) const;
  // kConflict: another hand took it away or put something else in its place, and what the steps kept is not all of it.
  Result<PastState> LookAt(const std::string& path) const;
  // kCorrupt: what was kept of its content is damaged. kDenied: it may not be read.
  Result<PastFile> Open(const std::string& path) const;
  // The damaged step that was left out, if any: the oldest.
  std::optional<StepId> left_out() const { return left_out_; }
  // Today's identity of an object of that time.
  ObjectId Current(ObjectId object) const { return objects_->Current(object); }

 private:
  struct Step {
    std::string folder;  // in steps/; "": the open one
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
  // What the steps kept of an object.
  struct Preimages {
    struct Kept {
      size_t step;
      ContentRecord record;
    };
    std::optional<Metadata> meta;
    std::vector<Kept>
        contents;             // newest first; what lies behind one of the whole content is left out
    bool whole = false;       // they are all of the content
    uint64_t kept_bytes = 0;  // of the last step, by ranges, which never overlap within a step

    void Add(size_t step, const ContentRecord& record);
  };
  explicit PastReader(const Place& place) : place_(&place) {}
  static Result<PastReader> Since(const Place& place, StepId step, size_t skip, Purpose purpose);
  static Result<PastReader> TrySince(const Place& place, StepId step, size_t skip, Purpose purpose);
  Status AddClosed(const StepRow& row);
  void Add(std::string folder, Fd dir, StepView view);

  bool IsRewinding() const;
  bool IsReversed() const;
  bool HasSameSteps() const;

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
  // Whatever had the path, and the object itself if it is still there.
  struct Traced {
    PastState state;
    std::optional<OpenObject> source;
    Preimages kept;
  };
  Result<Traced> Trace(const std::string& path) const;
  // The object itself, if it still is where the steps left it or kept it.
  Result<std::optional<OpenObject>> SourceOf(const Fate& fate) const;
  // Backwards from now to the moment that was asked for. Also of what lost a name long ago: it may have changed later under others.
  Preimages KeptOf(ObjectId object) const;

  const Place* place_;
  Fd steps_folder_;
  std::vector<std::string> listed_;   // what was in it
  std::optional<OpenStepMark> open_;  // if it counts
  std::unique_ptr<ObjectsTable> objects_ = std::make_unique<ObjectsTable>();
  std::vector<Step> steps_;  // oldest first
  std::optional<StepId> left_out_;
  bool copied_ = false;  // some step kept a copy of what lost a name
  std::unordered_map<ObjectId, std::vector<RecordAt>>
      preimages_;  // by today's object, oldest first
};

}  // namespace sandglass::undo

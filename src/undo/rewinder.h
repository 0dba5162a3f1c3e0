// Rewinder: the inside of Rewind(). Split over files by what is put back: rewind.cc (the replay, finding things, metadata),
// rewind_names.cc, rewind_content.cc. Lives for one rewind; one thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "undo/link_index.h"
#include "undo/passed_folders.h"
#include "undo/rewind.h"
#include "undo/verify.h"

namespace sandglass::undo {

class Rewinder {
 public:
  Rewinder(const RewindInput& input, RewindReport& report)
      : in_(input),
        place_(input.place),
        report_(report),
        links_(input.place),
        passed_(input.view, input.objects) {}

  Status Run();

 private:
  // A directory that names are changed in; the last one is kept open because neighbours in the journal share it.
  struct Parent {
    std::string path;
    OpenObject object;
  };

  // What is known about a path that the rewind touched.
  struct Note {
    ObjectId object;               // if known: it came back from an anchor
    std::optional<KeptLook> look;  // as it must look then
    std::optional<FileStat>
        seen;  // as it looked when it came back, unless something was done to it since
    std::optional<size_t> deferred_meta;
    Lifted lifted;  // to be put back if no metadata is on record
  };

  Status UndoRecord(const Record& record);
  void NoteUndone(const Record& record, size_t index);
  void MoveNotes(const RenameRecord& r);
  // Folders' times move with what happens in them, and a locked file could not be worked on any more.
  static bool ComesLast(const MetaRecord& r) {
    return S_ISDIR(r.meta.mode) || (r.meta.flags & kBlockingFlags) != 0;
  }
  Status Undo(const MetaRecord& r, size_t index);
  Status Undo(const ContentRecord& r);
  Status Undo(const CreateRecord& r);
  Status Undo(const RemoveRecord& r);
  Status Undo(const RenameRecord& r);
  Status Undo(const ReplaceRecord& r);

  // --- Pieces of the above.
  struct Lost {  // an object that has to come back to a name
    NameAt at;
    ObjectId object;
    uint32_t mode;
    Kept kept;
    AnchorId anchor;
    uint32_t nlink;  // names that it had; 0: not on record
    uint64_t rdev;
    std::string_view symlink_target;
  };
  Status BringBack(const Lost& lost);
  // False: something has the name.
  Result<bool> ReturnAnchor(const Lost& lost, Parent& parent, const std::string& name, Note& note);
  Status ReturnToFreeName(const Lost& lost, Parent& parent, const std::string& name);
  Status NoteOccupied(const std::string& path);
  Status CopyAnchor(const Lost& lost, Parent& parent, const std::string& name);
  Status ReturnAside(const Lost& lost, Parent& parent, const std::string& name);
  Status MakeAnew(const Lost& lost, Parent& parent, const std::string& name);
  uint32_t FlagsFor(ObjectId object);
  Status LinkAgain(const Lost& lost, ObjectId object, const std::string& other, Parent& parent,
                   const std::string& name);
  Status TakeAway(const NameAt& at, Parent& parent, const std::string& name,
                  const OpenObject& object);
  Status TakeAwayRaw(const CreateRecord& r, Parent& parent, const std::string& name,
                     const OpenObject& object);
  Status TakenAway(const std::string& path, const OpenObject& object, int err);
  Status TellTaken(const CreateRecord& r, const std::string& path);
  Status ShareWithOrigin(AnchorId slot, Parent& parent, const std::string& name);
  bool IsMadeAnew(const Lost& lost, const OpenObject& occupant) const;
  Status UndoExchange(const RenameRecord& r, Parent& from, Parent& to,
                      const std::optional<OpenObject>& at_to);
  // Edits by other hands, told by the signature at the first look at an object: our own changes move its times afterwards.
  void FirstLook(ObjectId object, const FileStat& stat);
  void FirstLookAtAnchor(ObjectId object, const FileStat& stat);
  bool WasEdited(ObjectId object) const { return edited_.contains(object); }
  // It looks as others want it, and not as we leave it.
  bool IsOthers(ObjectId object) const {
    return WasEdited(object) || (in_.keep != nullptr && in_.keep->contains(object));
  }
  // Could whoever ended the step look at it? Otherwise its signature is an older one.
  bool WasSeenAtTheEnd(ObjectId current);
  // By today's identity, which the journal need not know.
  bool StepChanged(ObjectId current);
  // Anything of it is in the journal, if only that names in it changed.
  bool IsOnRecord(ObjectId current);
  Status NoteOtherNames(const OpenObject& object);
  Status NoteSignature(ObjectId object, const FileStat& stat);
  Status MoveBack(const RenameRecord& r, Parent& from, Parent& to);
  Status ExchangeInodes(const ReplaceRecord& r, Parent& parent, const std::string& name,
                        const OpenObject& now);
  Status ReturnReplaced(const ReplaceRecord& r, Parent& parent, const std::string& name);
  Status SetAside(const NameAt& at, Parent& parent, const std::string& name,
                  const OpenObject& occupant);
  bool HoldsAlready(const OpenObject& object, const ContentRecord& r);
  Status WriteContent(const OpenObject& object, const ContentRecord& r, Parent& parent,
                      const std::string& name);
  // A running program gets a fresh inode under all its names. nullopt: it could not and is left alone, which the report says.
  Result<std::optional<OpenObject>> ReplaceRunning(const OpenObject& object,
                                                   const std::string& path);
  // A copy of it with the names in the recorder's folder that are to change places with its own.
  struct FreshInode {
    OpenObject object;
    std::vector<AnchorId> slots;
  };
  Result<FreshInode> PrepareFresh(const OpenObject& object, const std::string& path, size_t names);
  Result<OpenObject> CopyOf(const OpenObject& object, AnchorId slot);
  // For an object that is about to be exchanged into it: what that keeps from being freed counts from here on.
  Result<AnchorId> SlotFor(const OpenObject& object, const std::string& path);
  Result<OpSeq> ExchangeFor(const OpenObject& fresh, AnchorId slot, const OpenObject& object,
                            const std::string& path);
  Status RecordContentChange(const OpenObject& object, const ContentRecord& r);
  Status FillWhole(int fd, const ContentRecord& r);
  Status FillFromPack(int fd, const ContentRecord& r);
  Status FillFromBlob(int fd, const ContentRecord& r);
  Status FillRange(int fd, const ContentRecord& r);
  Result<Fd> OpenForWriting(const OpenObject& object, const std::string& path, Parent& parent,
                            const std::string& name);
  Status ApplyMeta(const OpenObject& object, std::string_view path, const MetaRecord& r,
                   const Lifted& lifted);
  Status PutBack(const OpenObject& object, const MetaRecord& r, const Lifted& lifted);
  // Names in the folder moved its times, and nothing else of it is the step's.
  bool OnlyTimesMoved(const OpenObject& object, const MetaRecord& r) const;
  Status ApplyDeferred();
  Status NoteSignatures();
  Status CheckReturned(const std::string& path, const Note& note, const FileStat& stat);

  // A file that its owner may not read is open to them for a moment while its xattrs are recorded. Killed right then, the record that only
  // tells how it looked has the mode.
  Status LowerForgotten(const MetaRecord& r);
  // Opens a folder to us for the time of the rewind. What it was is noted, and put back by the end.
  void LiftFolder(const OpenObject& folder, std::string_view path);
  void LowerAgain(const std::string& path, const Note& note);
  Status LiftAbove(std::string_view dir);
  Result<Parent*> OpenParent(std::string_view dir, ObjectId expected, int slot = 0);
  Result<std::optional<OpenObject>> Occupant(Parent& parent, const std::string& name);
  // The object at a path, if it is still the one recorded and not a person's to keep.
  Result<std::optional<OpenObject>> Recorded(std::string_view path, ObjectId recorded,
                                             Parent** parent);
  bool MayChange(const OpenObject& object) const {
    return in_.keep == nullptr || !in_.keep->contains(object.id);
  }
  void ForgetParents() {
    parents_[0].reset();
    parents_[1].reset();
  }
  void AddConflict(ConflictKind kind, std::string_view path, std::string_view detail) {
    report_.conflicts.push_back({kind, std::string(path), std::string(detail)});
  }
  // Once per path: content and metadata have a record each.
  void TellKept(std::string_view path) {
    if (told_kept_.emplace(path).second)
      AddConflict(ConflictKind::kEdited, path, "was changed from outside; kept as it is");
  }
  Status MarkUnreturned();
  bool SkipsLink(uint32_t mode) const {
    return S_ISLNK(mode) && in_.symlinks != SymlinkPolicy::kReadWrite;
  }

  // Tries `op`; when the kernel refuses, lifts what can be lifted (mode bits of the directory, immutable and append-only flags) and tries
  // again. Everything lifted is on record and put back by the end; of an object that stays in the project, right after `op`.
  enum class Stays : uint8_t { kNo, kYes };
  template <class Op>
  int Attempt(Parent& parent, const OpenObject* object, Op op, Stays stays = Stays::kNo);
  static TouchReason ReasonToMove(const OpenObject& object);
  // A folder holds the name "..": who gives it another parent needs to be allowed to write to it.
  static bool IsWrittenWhenMoved(const OpenObject& object, Stays stays) {
    return stays == Stays::kYes && object.stat.IsDirectory() && ::geteuid() != 0;
  }

  const RewindInput& in_;
  const Place& place_;
  RewindReport& report_;
  LinkIndex links_;
  const PassedFolders passed_;
  std::optional<Parent> parents_[2];
  bool lifted_ = false;  // a folder that was closed to us has been opened
  std::unordered_set<ObjectId> looked_at_;
  std::optional<std::unordered_set<ObjectId>> changed_;  // by the step, as of today; when asked for
  std::optional<std::unordered_set<ObjectId>> seen_at_the_end_;  // when asked for
  std::optional<std::unordered_set<ObjectId>> on_record_;        // the same
  std::unordered_set<ObjectId> edited_;  // by others; only what the step itself left alone
  // Folders whose time others moved since the step, by names in them or themselves.
  struct MovedTime {
    int64_t signed_ns, found_ns;
  };
  std::unordered_map<ObjectId, MovedTime> moved_times_;
  std::unordered_set<ObjectId> made_anew_;
  std::optional<std::unordered_map<ObjectId, uint32_t>> flags_;  // of FlagsFor, when asked for
  PathMap<Note> notes_;  // everything touched, at its present path
  std::unordered_set<std::string> told_kept_;
  bool marked_ = false;
};

template <class Op>
int Rewinder::Attempt(Parent& parent, const OpenObject* object, Op op, Stays stays) {
  if (op() == 0) return 0;
  if (errno != EACCES && errno != EPERM) return errno;
  LiftFolder(parent.object, parent.path);
  Lifted lifted;
  if (object != nullptr) Lift(*object, IsWrittenWhenMoved(*object, stays) ? S_IWUSR : 0, lifted);
  const int err = op() == 0 ? 0 : errno;
  if (object != nullptr && stays == Stays::kYes) Lower(*object, lifted);
  return err;
}

}  // namespace sandglass::undo

#include "undo/rewind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/looker.h"

namespace sandglass::undo {
namespace {

constexpr size_t kHoleBytes = 4096;

// Folders that were born in the step and are gone again, although something older passed through them: on its way back it passes
// through them once more.
class PassedFolders {
 public:
  PassedFolders(const StepView& view, const ObjectsTable& objects)
      : view_(view), objects_(objects) {
    view.journal().ForEachOf<CreateRecord>(
        [this](const CreateRecord& create, size_t) { NoteBorn(create); });
    // Once more while there are more: one of them may have been in yet another one.
    for (size_t before = SIZE_MAX; before != passed_.size() && !born_.empty();) {
      before = passed_.size();
      view.journal().ForEach([this](const Record& record) { NotePassage(record); });
    }
  }
  bool Contains(ObjectId folder) const { return Has(passed_, folder); }
  bool IsBorn(ObjectId folder) const { return Has(born_, folder); }

 private:
  // In the journal of a rewind a folder is known by what the step that was taken back called it, or by its own identity.
  using Folders = std::unordered_set<ObjectId>;
  bool Has(const Folders& folders, ObjectId id) const {
    return folders.contains(id) || folders.contains(objects_.Current(id));
  }
  void Add(Folders& folders, ObjectId id) { folders.insert({id, objects_.Current(id)}); }

  void NoteBorn(const CreateRecord& create) {
    if (!S_ISDIR(create.mode)) return;
    if (const ObjectId id = view_.Outcome(create.seq).created; id != kNoObject) Add(born_, id);
  }
  void NotePassage(const Record& record) {
    if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
      if (Matters(remove->object)) NoteParent(remove->at);
    } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
      if (!Matters(rename->object) && !Matters(rename->target)) return;
      NoteParent(rename->from);
      NoteParent(rename->to);
    } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
      NoteParent(replace->at);
    }
  }
  bool Matters(ObjectId object) const {
    return object != kNoObject && (!view_.IsBorn(object) || Contains(object));
  }
  void NoteParent(const NameAt& at) {
    if (IsBorn(at.parent)) Add(passed_, at.parent);
  }

  const StepView& view_;
  const ObjectsTable& objects_;
  Folders born_, passed_;
};

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
  Result<bool> ReturnAnchor(const Lost& lost, Parent& parent, const std::string& name);
  Status ReturnToFreeName(const Lost& lost, Parent& parent, const std::string& name);
  Status NoteOccupied(const std::string& path);
  Status CopyAnchor(const Lost& lost, Parent& parent, const std::string& name);
  Status ReturnAside(const Lost& lost, Parent& parent, const std::string& name);
  Status MakeAnew(const Lost& lost, Parent& parent, const std::string& name);
  Status TakeAway(const NameAt& at, Parent& parent, const std::string& name,
                  const OpenObject& object);
  Status TakeAwayRaw(const CreateRecord& r, Parent& parent, const std::string& name,
                     const OpenObject& object);
  Status UndoExchange(const RenameRecord& r, Parent& from, Parent& to,
                      const std::optional<OpenObject>& at_to);
  // Edits by other hands, told by the signature at the first look at an object: our own changes move its times afterwards.
  void FirstLook(ObjectId object, const FileStat& stat);
  void FirstLookAtAnchor(ObjectId object, const FileStat& stat);
  bool WasEdited(ObjectId object) const { return edited_.contains(object); }
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
  Status ReplaceBusy(const OpenObject& object, const ContentRecord& r, Parent& parent,
                     const std::string& name);
  Status RecordContentChange(const OpenObject& object, const ContentRecord& r);
  Status FillWhole(int fd, const ContentRecord& r);
  Status FillRange(int fd, const ContentRecord& r);
  Result<Fd> OpenForWriting(const OpenObject& object, const std::string& path, Parent& parent,
                            const std::string& name);
  Status ApplyMeta(const OpenObject& object, std::string_view path, const MetaRecord& r);
  Status ApplyDeferred();
  Status NoteSignatures();

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
  bool SkipsLink(uint32_t mode) const {
    return S_ISLNK(mode) && in_.symlinks != SymlinkPolicy::kReadWrite;
  }

  // Tries `op`; when the kernel refuses, lifts what can be lifted (mode bits of the directory, immutable and append-only flags) and tries
  // again. Everything lifted is on record and put back by the end.
  template <class Op>
  int Attempt(Parent& parent, const OpenObject* object, Op op);

  const RewindInput& in_;
  const Place& place_;
  RewindReport& report_;
  LinkIndex links_;
  const PassedFolders passed_;
  std::optional<Parent> parents_[2];
  struct Note {
    ObjectId object;  // if known
    std::optional<size_t> deferred_meta;
    std::optional<uint32_t> lifted_mode;  // to be put back if no metadata is on record
  };
  bool lifted_ = false;  // a folder that was closed to us has been opened
  std::unordered_set<ObjectId> looked_at_;
  std::unordered_map<ObjectId, FileStat>
      edited_;           // as first seen; only what the step itself left alone
  PathMap<Note> notes_;  // everything touched, at its present path
};

template <class Op>
int Rewinder::Attempt(Parent& parent, const OpenObject* object, Op op) {
  if (op() == 0) return 0;
  if (errno != EACCES && errno != EPERM) return errno;
  ClearBlockingFlags(parent.object);
  auto stat = StatFd(parent.object.fd.get());
  if (stat.ok() && (stat->mode & 0700) != 0700) {
    ::chmod(ProcPath(parent.object.fd.get()).c_str(), (stat->mode & 07777) | 0700);
  }
  if (object != nullptr) ClearBlockingFlags(*object);
  return op() == 0 ? 0 : errno;
}

Status Rewinder::Run() {
  std::optional<CursorFile> cursor;
  size_t undone = 0;
  if (in_.recorder == nullptr) {
    TRY_ASSIGN(CursorFile file, CursorFile::Open(in_.files.dir(), "journal"));
    cursor.emplace(std::move(file));
    undone = std::min<uint64_t>(cursor->Get(), in_.view.journal().size());
    for (size_t index = in_.view.journal().size(); index-- > in_.view.journal().size() - undone;) {
      if (auto record = in_.view.journal().At(index); record.ok()) NoteUndone(*record, index);
    }
  }
#ifdef SANDGLASS_MUTANT_restore_out_of_order
  for (size_t index = 0; index < in_.view.journal().size(); ++index) {
#else
  for (size_t index = in_.view.journal().size() - undone; index-- > 0;) {
#endif
    auto record = in_.view.journal().At(index);
    if (!record.ok()) continue;
    Status status = std::holds_alternative<MetaRecord>(*record)
                        ? Undo(std::get<MetaRecord>(*record), index)
                        : UndoRecord(*record);
    if (!status.ok()) return status;
    if (cursor) cursor->Set(in_.view.journal().size() - index);
  }
  TRY(ApplyDeferred());
  return NoteSignatures();
}

// What an earlier run of the same rewind already took back: only the notes about it are missing.
void Rewinder::NoteUndone(const Record& record, size_t index) {
  if (const auto* meta = std::get_if<MetaRecord>(&record)) {
    Note& note = notes_[meta->path];
    if (ComesLast(*meta)) note.deferred_meta = index;
  } else if (const auto* content = std::get_if<ContentRecord>(&record)) {
    notes_[content->path];
  } else if (const auto* create = std::get_if<CreateRecord>(&record)) {
    notes_.Erase(JoinPath(create->at.dir, create->at.name));
  } else if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
    notes_[JoinPath(remove->at.dir, remove->at.name)];
  } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
    notes_[JoinPath(replace->at.dir, replace->at.name)];
  } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
    if (!in_.view.Outcome(rename->seq).failed()) MoveNotes(*rename);
  }
}

void Rewinder::MoveNotes(const RenameRecord& r) {
  const std::string from_path = JoinPath(r.from.dir, r.from.name),
                    to_path = JoinPath(r.to.dir, r.to.name);
  const Note moved = notes_[to_path], other = notes_[from_path];
  notes_[from_path] = moved;
  if (r.exchange != 0) {
    notes_[to_path] = other;
    notes_.SwapBelow(to_path, from_path);
  } else {
    notes_.Erase(to_path);
    notes_.MoveBelow(to_path, from_path);
  }
}

Status Rewinder::UndoRecord(const Record& record) {
  if (const auto* content = std::get_if<ContentRecord>(&record)) return Undo(*content);
  if (const auto* create = std::get_if<CreateRecord>(&record)) return Undo(*create);
  if (const auto* remove = std::get_if<RemoveRecord>(&record)) return Undo(*remove);
  if (const auto* rename = std::get_if<RenameRecord>(&record)) return Undo(*rename);
  if (const auto* replace = std::get_if<ReplaceRecord>(&record)) return Undo(*replace);
  return Ok();
}

// --- Finding things.

Result<Rewinder::Parent*> Rewinder::OpenParent(std::string_view dir, ObjectId expected, int slot) {
  std::optional<Parent>& cached = parents_[slot];
  if (!cached || cached->path != dir) {
    auto opened = OpenDirBeneath(place_.root.get(), dir);
    if (!opened.ok() && opened.error().code() == Code::kDenied) {
      TRY(LiftAbove(dir));
      opened = OpenDirBeneath(place_.root.get(), dir);
    }
    if (!opened.ok()) return opened.error();
    OpenObject object{.fd = std::move(*opened)};
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
    TRY_ASSIGN(object.id, place_.identifier.OfFd(object.fd.get()));
    FirstLook(object.id, object.stat);
    cached = Parent{std::string(dir), std::move(object)};
    if (in_.recorder != nullptr)
      TRY(in_.recorder->TouchMeta(cached->object, dir, TouchReason::kNames));
    notes_[dir];
  }
  if (expected != kNoObject && cached->object.id != in_.objects.Current(expected)) {
    return Error(Code::kConflict, fmt::format("{} is another folder than it was", dir));
  }
  return &*cached;
}

// Folders on the way that keep us out (a step closed them, or they always were) are opened for the time of the rewind.
Status Rewinder::LiftAbove(std::string_view dir) {
  for (size_t end = 0; end != std::string_view::npos; end = dir.find('/', end + 1)) {
    const std::string path(dir.substr(0, end));
    auto fd = OpenDirBeneath(place_.root.get(), path);
    if (!fd.ok()) return Ok();  // the caller will see the same
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd->get()));
    FirstLook(object.id, object.stat);
    if ((object.stat.mode & 0700) == 0700) continue;
    if (in_.recorder != nullptr) TRY(in_.recorder->TouchMeta(object, path, TouchReason::kNames));
    if (::chmod(ProcPath(object.fd.get()).c_str(), (object.stat.mode & 07777) | 0700) == 0) {
      notes_[path].lifted_mode = object.stat.mode & 07777;
      lifted_ = true;
    }
  }
  return Ok();
}

Result<std::optional<OpenObject>> Rewinder::Occupant(Parent& parent, const std::string& name) {
  auto object = OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str());
  if (!object.ok() && object.error().code() == Code::kDenied) {
    // A folder without search permission: ours, so lift it.
    lifted_ = true;
    Attempt(parent, nullptr, [&] {
      errno = EACCES;
      return -1;
    });
    object = OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str());
  }
  if (object.ok()) {
    FirstLook(object->id, object->stat);
    return std::optional<OpenObject>(std::move(*object));
  }
  if (object.error().code() == Code::kNotFound) return std::optional<OpenObject>();
  return object.error();
}

void Rewinder::FirstLook(ObjectId object, const FileStat& stat) {
  if (in_.signatures == Signatures::kOutdated || !looked_at_.insert(object).second) return;
  if (lifted_)
    return;  // nobody could look there when the step closed, so the signature is an older one
  const auto signature = in_.objects.Find(object);
  if (signature && !signature->Matches(stat) && !in_.view.IsChanged(object))
    edited_.emplace(object, stat);
}

// An object that has no other name left can have been changed by nobody, and losing the last one left its signature behind.
void Rewinder::FirstLookAtAnchor(ObjectId object, const FileStat& stat) {
  if (stat.nlink > 1)
    FirstLook(object, stat);
  else
    looked_at_.insert(object);
}

Result<std::optional<OpenObject>> Rewinder::Recorded(std::string_view path, ObjectId recorded,
                                                     Parent** parent_out) {
  using Nothing = std::optional<OpenObject>;
  if (path.empty()) {  // the root itself
    TRY_ASSIGN(Parent * root, OpenParent("", kNoObject));
    *parent_out = root;
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, root->object.fd.get()));
    return Nothing(std::move(object));
  }
  auto parent = OpenParent(ParentOf(path), kNoObject);
  if (!parent.ok()) {
    if (parent.error().code() != Code::kNotFound && parent.error().code() != Code::kOutsideRoot)
      return parent.error();
    AddConflict(ConflictKind::kMissing, path, "its folder is gone");
    return Nothing();
  }
  *parent_out = *parent;
  TRY_ASSIGN(auto object, Occupant(**parent, std::string(BaseName(path))));
  if (!object || object->id != in_.objects.Current(recorded)) {
    AddConflict(object ? ConflictKind::kReplaced : ConflictKind::kMissing, path,
                "not the recorded object any more");
    return Nothing();
  }
  if (!MayChange(*object)) {
    AddConflict(ConflictKind::kEdited, path,
                "changed after the step was interrupted; kept as it is");
    return Nothing();
  }
  return object;
}

// --- Names.

Status Rewinder::Undo(const CreateRecord& r) {
  const Settled outcome = in_.view.Outcome(r.seq);
  if (outcome.failed() || SkipsLink(r.mode)) return Ok();
  auto parent = OpenParent(r.at.dir, r.at.parent);
  const std::string path = JoinPath(r.at.dir, r.at.name), name(r.at.name);
  if (!parent.ok()) {
    if (passed_.IsBorn(r.at.parent)) return Ok();  // gone with its folder, by the step itself
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  TRY_ASSIGN(auto occupant, Occupant(**parent, name));
  if (!occupant) return Ok();
  const ObjectId object = r.object != kNoObject ? r.object : outcome.created;
  if (object != kNoObject && occupant->id != in_.objects.Current(object)) {
    AddConflict(ConflictKind::kReplaced, path, "someone else's object has this name now; kept");
    return Ok();
  }
  if (!MayChange(*occupant)) {
    AddConflict(ConflictKind::kEdited, path,
                "changed after the step was interrupted; kept as it is");
    return Ok();
  }
#ifdef SANDGLASS_MUTANT_keep_born_files
  if (occupant->stat.IsRegular()) return Ok();
#endif
  if (in_.recorder == nullptr) return TakeAwayRaw(r, **parent, name, *occupant);
  return TakeAway(r.at, **parent, name, *occupant);
}

Status Rewinder::TakeAway(const NameAt& at, Parent& parent, const std::string& name,
                          const OpenObject& object) {
  const std::string path = JoinPath(at.dir, at.name);
  TRY_ASSIGN(Keep keep, in_.recorder->KeepObject(object, parent.object.fd.get(), name.c_str(), path,
                                                 KeepBy::kRename));
  TRY_ASSIGN(OpSeq seq, in_.recorder->IntendRemove(at, object, keep));
  int err = 0;
  if (keep.kept == Kept::kAnchor) {
    TRY_ASSIGN(int anchors, in_.recorder->files().Anchors());
    err = Attempt(parent, &object, [&] {
      return ::renameat(parent.object.fd.get(), name.c_str(), anchors,
                        AnchorName(keep.anchor).c_str());
    });
  } else {
    const int flags = object.stat.IsDirectory() ? AT_REMOVEDIR : 0;
    err = Attempt(parent, &object,
                  [&] { return ::unlinkat(parent.object.fd.get(), name.c_str(), flags); });
  }
  TRY(in_.recorder->Settle(seq, err));
  if (object.stat.IsDirectory()) ForgetParents();
  if (err == ENOTEMPTY || err == EEXIST) {
    report_.kept.push_back(path);
    return Ok();
  }
  if (err != 0) return Error::FromErrno(err, fmt::format("remove {}", path));
  notes_.Erase(path);
  return NoteOtherNames(object);
}

// Losing a name moves the ctime of an object that has others. That is our doing and no edit, so its signature moves along.
Status Rewinder::NoteOtherNames(const OpenObject& object) {
  if (object.stat.IsDirectory() || object.stat.nlink < 2) return Ok();
  TRY_ASSIGN(FileStat stat, StatFd(object.fd.get()));
  return NoteSignature(object.id, stat);
}

// A person's edit of what the step left alone stays one: an older step that changed the object must still find it.
Status Rewinder::NoteSignature(ObjectId object, const FileStat& stat) {
  if (WasEdited(object) || (in_.keep != nullptr && in_.keep->contains(object))) return Ok();
  in_.objects.Put(object, Signature::Of(stat));
  return in_.recorder != nullptr ? in_.recorder->NoteAfter(object, stat) : Ok();
}

Status Rewinder::TakeAwayRaw(const CreateRecord& r, Parent& parent, const std::string& name,
                             const OpenObject& object) {
  const std::string path = JoinPath(r.at.dir, r.at.name);
  int err = 0;
  if (r.birth == Birth::kReturned) {
    CHECK(in_.origin != nullptr);
    TRY_ASSIGN(int anchors, in_.origin->Anchors());
    err = Attempt(parent, &object, [&] {
      return ::renameat(parent.object.fd.get(), name.c_str(), anchors,
                        AnchorName(r.origin).c_str());
    });
  } else {
    const int flags = object.stat.IsDirectory() ? AT_REMOVEDIR : 0;
    err = Attempt(parent, &object,
                  [&] { return ::unlinkat(parent.object.fd.get(), name.c_str(), flags); });
  }
  if (object.stat.IsDirectory()) ForgetParents();
  if (err == ENOTEMPTY || err == EEXIST) {
    report_.kept.push_back(path);
    return Ok();
  }
  if (err != 0) return Error::FromErrno(err, fmt::format("remove {}", path));
  notes_.Erase(path);
  return NoteOtherNames(object);
}

Status Rewinder::Undo(const RemoveRecord& r) {
  if (in_.view.Outcome(r.seq).failed()) return Ok();
  const Kept kept = passed_.Contains(r.object) ? Kept::kDirectory : r.kept;
  if (kept == Kept::kNothing) return Ok();
  if (SkipsLink(r.mode)) {
    report_.warnings.push_back(fmt::format("{}: symlinks are not restored under this policy",
                                           JoinPath(r.at.dir, r.at.name)));
    return Ok();
  }
  return BringBack({r.at, r.object, r.mode, kept, r.anchor, r.nlink, r.rdev, r.symlink_target});
}

Status Rewinder::BringBack(const Lost& lost) {
  auto parent = OpenParent(lost.at.dir, lost.at.parent);
  const std::string path = JoinPath(lost.at.dir, lost.at.name), name(lost.at.name);
  if (!parent.ok()) {
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  notes_[path];
  if (lost.kept == Kept::kAnchor && in_.recorder != nullptr) {
    // Most names are free, and the rename itself finds out.
    TRY_ASSIGN(bool returned, ReturnAnchor(lost, **parent, name));
    if (returned) return Ok();
  }
  TRY_ASSIGN(auto occupant, Occupant(**parent, name));
  if (occupant && occupant->id == in_.objects.Current(lost.object)) return Ok();  // it never left
  const bool made_anew = lost.kept == Kept::kDirectory || lost.kept == Kept::kContent;
  if (occupant && in_.recorder == nullptr && made_anew &&
      (occupant->stat.mode & S_IFMT) == (lost.mode & S_IFMT)) {
    // Killed between making it anew and noting whose place it took.
    in_.objects.Succeed(lost.object, occupant->id);
    return in_.objects.Flush();
  }
  if (occupant) {
    TRY(NoteOccupied(path));
    if (in_.recorder == nullptr) return Ok();
    // After a crash the person's object keeps the name; by force the step's does. The other one gets a name beside.
    if (in_.keep != nullptr && lost.kept == Kept::kAnchor) return ReturnAside(lost, **parent, name);
    TRY(SetAside(lost.at, **parent, name, *occupant));
  }
  if (lost.kept == Kept::kAnchor) return ReturnToFreeName(lost, **parent, name);
  return MakeAnew(lost, **parent, name);
}

// Whoever did this was faster than the look before the rewind, or had done it before the step was closed.
Status Rewinder::NoteOccupied(const std::string& path) {
  constexpr const char* kWhat = "someone else's object has this name now";
  if (in_.recorder != nullptr && in_.force == Force::kNo)
    return Error(Code::kConflict, fmt::format("{}: {}", path, kWhat));
  AddConflict(ConflictKind::kOccupied, path, kWhat);
  return Ok();
}

Status Rewinder::ReturnToFreeName(const Lost& lost, Parent& parent, const std::string& name) {
  TRY_ASSIGN(bool returned, ReturnAnchor(lost, parent, name));
  if (returned) return Ok();
  return Error(Code::kExists,
               fmt::format("{} was taken again at once", JoinPath(lost.at.dir, lost.at.name)));
}

static std::optional<std::string> FreeNameBeside(int dir_fd, const std::string& name) {
  for (int n = 1; n < 1000; ++n) {
    std::string beside = fmt::format("{}.kept-{}", name.substr(0, 240), n);
    if (!NameExists(dir_fd, beside.c_str())) return beside;
  }
  return std::nullopt;
}

Status Rewinder::ReturnAside(const Lost& lost, Parent& parent, const std::string& name) {
  const auto beside = FreeNameBeside(parent.object.fd.get(), name);
  if (!beside) return Error(Code::kExists, "no free name beside an occupied one");
  Lost renamed = lost;
  renamed.at.name = *beside;
  report_.kept.push_back(JoinPath(lost.at.dir, *beside));
  return ReturnToFreeName(renamed, parent, *beside);
}

// The name is taken by something that is not ours. Nothing may be lost: it moves to a name beside, which the report gives.
Status Rewinder::SetAside(const NameAt& at, Parent& parent, const std::string& name,
                          const OpenObject& occupant) {
  const auto beside = FreeNameBeside(parent.object.fd.get(), name);
  if (!beside) return Error(Code::kExists, "no free name beside an occupied one");
  const NameAt to{at.parent, at.dir, *beside};
  TRY_ASSIGN(OpSeq seq,
             in_.recorder->IntendRename(at, to, RenameMode::kNoReplace, occupant, nullptr, {}));
  const int err = Attempt(parent, &occupant, [&] {
    return static_cast<int>(::renameat2(parent.object.fd.get(), name.c_str(),
                                        parent.object.fd.get(), beside->c_str(), RENAME_NOREPLACE));
  });
  TRY(in_.recorder->Settle(seq, err));
  if (err != 0)
    return Error::FromErrno(err, fmt::format("set {} aside", JoinPath(at.dir, at.name)));
  const std::string from_path = JoinPath(at.dir, at.name), to_path = JoinPath(at.dir, *beside);
  if (occupant.stat.IsDirectory()) notes_.MoveBelow(from_path, to_path);
  report_.kept.push_back(to_path);
  return Ok();
}

Result<bool> Rewinder::ReturnAnchor(const Lost& lost, Parent& parent, const std::string& name) {
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  AnchorName anchor(lost.anchor);
  const std::string path = JoinPath(lost.at.dir, lost.at.name);
  const ObjectId object = in_.objects.Current(lost.object);
  if (lost.nlink == 1) {
    looked_at_.insert(object);
  } else if (const auto kept = LookAt(anchors, anchor.c_str())) {
    FirstLookAtAnchor(object, *kept);
  }
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY_ASSIGN(seq, in_.recorder->IntendCreate(lost.at, Birth::kReturned, lost.mode, lost.object,
                                               lost.anchor));
  }
  const int err = Attempt(parent, nullptr, [&] {
    return static_cast<int>(::renameat2(anchors, anchor.c_str(), parent.object.fd.get(),
                                        name.c_str(), RENAME_NOREPLACE));
  });
  if (seq) TRY(in_.recorder->Settle(*seq, err));
  if (err == EEXIST) return false;
  if (err == ENOENT) {
    AddConflict(ConflictKind::kCorrupt, path, "what was kept of it is missing from the store");
    return true;
  }
  if (err == EXDEV) {  // the store has moved behind another mount since
    TRY(CopyAnchor(lost, parent, name));
    return true;
  }
  if (err != 0) return Error::FromErrno(err, fmt::format("bring back {}", path));
  notes_[path].object = object;
  return true;
}

Status Rewinder::CopyAnchor(const Lost& lost, Parent& parent, const std::string& name) {
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  TRY_ASSIGN(OpenObject kept,
             OpenObjectAt(place_.identifier, anchors, AnchorName(lost.anchor).c_str()));
  TRY_ASSIGN(Metadata meta, CaptureMetadata(kept));
  Lost anew = lost;
  anew.kept = Kept::kContent;
  anew.mode = meta.mode;
  anew.rdev = meta.rdev;
  anew.symlink_target = meta.symlink_target;
  TRY(MakeAnew(anew, parent, name));
  TRY_ASSIGN(OpenObject fresh,
             OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str()));
  if (fresh.stat.nlink > 1) return Ok();  // one more name for what was copied already
  if (S_ISREG(meta.mode)) {
    Fd out(::openat(parent.object.fd.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!out.valid()) return Error::FromErrno(errno, fmt::format("copy back {}", name));
    TRY(CopySparse(kept.fd.get(), out.get(), meta.size));
  }
  return ApplyMetadata(fresh, meta);
}

Status Rewinder::MakeAnew(const Lost& lost, Parent& parent, const std::string& name) {
  const std::string path = JoinPath(lost.at.dir, lost.at.name);
  const int dir = parent.object.fd.get();
  std::optional<std::string> other;
  if (!S_ISDIR(lost.mode) && lost.nlink != 1) other = links_.Find(in_.objects.Current(lost.object));
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY_ASSIGN(seq,
               in_.recorder->IntendCreate(lost.at, other ? Birth::kLink : Birth::kNew, lost.mode,
                                          other ? in_.objects.Current(lost.object) : kNoObject));
  }
  const std::string target(lost.symlink_target);
  Fd other_dir;
  if (other) {
    TRY_ASSIGN(other_dir, OpenDirBeneath(place_.root.get(), ParentOf(*other)));
  }
  const int err = Attempt(parent, nullptr, [&]() -> int {
    if (other)
      return ::linkat(other_dir.get(), std::string(BaseName(*other)).c_str(), dir, name.c_str(), 0);
    if (S_ISDIR(lost.mode)) return ::mkdirat(dir, name.c_str(), 0700);
    if (S_ISLNK(lost.mode)) return ::symlinkat(target.c_str(), dir, name.c_str());
    return ::mknodat(dir, name.c_str(), (lost.mode & S_IFMT) | 0600, lost.rdev);
  });
  ObjectId created = kNoObject;
  if (err == 0 && !other) {
    TRY_ASSIGN(created, place_.identifier.OfName(dir, name.c_str()));
    in_.objects.Succeed(lost.object, created);
    TRY(in_.objects.Flush());
    links_.Add(created, path);
  }
  if (seq) TRY(in_.recorder->Settle(*seq, err, created));
  if (err != 0) return Error::FromErrno(err, fmt::format("make {} anew", path));
  return Ok();
}

Status Rewinder::Undo(const RenameRecord& r) {
  if (in_.view.Outcome(r.seq).failed() || SkipsLink(r.mode)) return Ok();
  const std::string to_path = JoinPath(r.to.dir, r.to.name),
                    from_path = JoinPath(r.from.dir, r.from.name);
  auto from = OpenParent(r.from.dir, r.from.parent, 0);
  auto to = OpenParent(r.to.dir, r.to.parent, 1);
  if (!from.ok() || !to.ok()) {
    const bool only_born = in_.view.IsBorn(r.object) && r.target_kept == Kept::kNothing;
    if (only_born) return Ok();  // gone with their folder, by the step itself
    AddConflict(ConflictKind::kMissing, to_path, (from.ok() ? to : from).error().message());
    return Ok();
  }
  TRY_ASSIGN(auto moved, Occupant(**to, std::string(r.to.name)));
  if (r.exchange != 0) return UndoExchange(r, **from, **to, moved);
  if (moved && moved->id == in_.objects.Current(r.object)) {
    TRY(MoveBack(r, **from, **to));
  } else if (!in_.view.IsBorn(r.object)) {
    TRY_ASSIGN(auto there, Occupant(**from, std::string(r.from.name)));
    if (!there || there->id != in_.objects.Current(r.object)) {
      AddConflict(moved ? ConflictKind::kReplaced : ConflictKind::kMissing, to_path,
                  "not the renamed object any more");
    }
  }
  const Kept kept = passed_.Contains(r.target) ? Kept::kDirectory : r.target_kept;
  if (r.target == kNoObject || kept == Kept::kNothing || SkipsLink(r.target_mode)) return Ok();
  return BringBack(
      {r.to, r.target, r.target_mode, kept, r.anchor, 0, r.target_rdev, r.target_symlink});
}

// One of the two may have been born in the step and be gone by now: then the other one moves back alone.
Status Rewinder::UndoExchange(const RenameRecord& r, Parent& from, Parent& to,
                              const std::optional<OpenObject>& at_to) {
  TRY_ASSIGN(auto at_from, Occupant(from, std::string(r.from.name)));
  const bool object_moved = at_to && at_to->id == in_.objects.Current(r.object);
  const bool target_moved = at_from && at_from->id == in_.objects.Current(r.target);
  if (object_moved && target_moved) return MoveBack(r, from, to);
  RenameRecord alone = r;
  alone.exchange = 0;
  if (object_moved && !at_from) return MoveBack(alone, from, to);
  if (target_moved && !at_to) {
    std::swap(alone.from, alone.to);
    std::swap(alone.object, alone.target);
    return MoveBack(alone, to, from);
  }
  const bool never = at_from && at_from->id == in_.objects.Current(r.object);
  const bool both_gone = in_.view.IsBorn(r.object) && in_.view.IsBorn(r.target);
  if (!never && !both_gone) {
    AddConflict(ConflictKind::kReplaced, JoinPath(r.to.dir, r.to.name),
                "not the exchanged objects any more");
  }
  return Ok();
}

Status Rewinder::MoveBack(const RenameRecord& r, Parent& from, Parent& to) {
  const std::string from_name(r.from.name), to_name(r.to.name);
  const std::string from_path = JoinPath(r.from.dir, from_name),
                    to_path = JoinPath(r.to.dir, to_name);
  const bool exchange = r.exchange != 0;
  TRY_ASSIGN(auto object, Occupant(to, to_name));
  if (!object) return Ok();
  TRY_ASSIGN(auto blocker, Occupant(from, from_name));
  if (!exchange && blocker) {
    TRY(NoteOccupied(from_path));
    if (in_.recorder == nullptr) return Ok();
    TRY(SetAside(r.from, from, from_name, *blocker));
  }
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY(in_.recorder->TouchMeta(*object, to_path, TouchReason::kNames));
    if (exchange && blocker) TRY(in_.recorder->TouchMeta(*blocker, from_path, TouchReason::kNames));
    TRY_ASSIGN(seq, in_.recorder->IntendRename(
                        r.to, r.from, exchange ? RenameMode::kExchange : RenameMode::kNoReplace,
                        *object, exchange && blocker ? &*blocker : nullptr, {}));
  }
  const unsigned flags = exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  const auto rename_back = [&] {
    return static_cast<int>(::renameat2(to.object.fd.get(), to_name.c_str(), from.object.fd.get(),
                                        from_name.c_str(), flags));
  };
  int err = Attempt(to, &*object, rename_back);
  if (err == EACCES || err == EPERM) err = Attempt(from, nullptr, rename_back);
  if (seq) TRY(in_.recorder->Settle(*seq, err));
  if (err != 0)
    return Error::FromErrno(err, fmt::format("rename {} back to {}", to_path, from_path));
  MoveNotes(r);
  if (object->stat.IsDirectory() || (blocker && blocker->stat.IsDirectory())) {
    // Paths below have changed; the two parents themselves have not, unless one lies below the other's child.
    ForgetParents();
    TRY(OpenParent(r.from.dir, r.from.parent, 0));
    TRY(OpenParent(r.to.dir, r.to.parent, 1));  // the caller's references are to these two places
  }
  return Ok();
}

Status Rewinder::Undo(const ReplaceRecord& r) {
  if (in_.view.Outcome(r.seq).failed()) return Ok();
  const std::string path = JoinPath(r.at.dir, r.at.name), name(r.at.name);
  auto parent = OpenParent(r.at.dir, r.at.parent);
  if (!parent.ok()) {
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  notes_[path];
  TRY_ASSIGN(auto now, Occupant(**parent, name));
  const bool swapped = now && now->id == in_.objects.Current(r.fresh_object);
  if (now && now->id == in_.objects.Current(r.old_object)) return ReturnReplaced(r, **parent, name);
  if (now && !swapped) {
    AddConflict(ConflictKind::kReplaced, path, "someone else's object has this name now");
    if (in_.recorder == nullptr) return Ok();
    TRY(SetAside(r.at, **parent, name, *now));
    now.reset();
  }
  if (swapped && !MayChange(*now)) {
    AddConflict(ConflictKind::kEdited, path,
                "changed after the step was interrupted; kept as it is");
    return Ok();
  }
  if (now) return ExchangeInodes(r, **parent, name, *now);
  // The fresh inode was removed later in the step: the old one comes back as after a removal.
  if (in_.recorder == nullptr && r.returned != 0) return ReturnReplaced(r, **parent, name);
  return ReturnToFreeName({r.at, r.old_object, S_IFREG, Kept::kAnchor, r.anchor, 0, 0, {}},
                          **parent, name);
}

Status Rewinder::ExchangeInodes(const ReplaceRecord& r, Parent& parent, const std::string& name,
                                const OpenObject& now) {
  const std::string path = JoinPath(r.at.dir, r.at.name);
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  AnchorName kept(r.anchor);
  const auto old = StatAt(anchors, kept.c_str());
  if (!old.ok()) {
    AddConflict(ConflictKind::kCorrupt, path, "what was kept of it is missing from the store");
    return Ok();
  }
  if (in_.recorder == nullptr) {
    const int err = Attempt(parent, &now, [&] {
      return static_cast<int>(::renameat2(anchors, kept.c_str(), parent.object.fd.get(),
                                          name.c_str(), RENAME_EXCHANGE));
    });
    if (err != 0) return Error::FromErrno(err, fmt::format("bring back {}", path));
    return ReturnReplaced(r, parent, name);
  }
  FirstLookAtAnchor(in_.objects.Current(r.old_object), *old);
  // The old inode moves to the recorder's folder first, so that the exchange leaves the present one there, ready for redo.
  TRY(in_.recorder->TouchMeta(now, path, TouchReason::kDirect));
  TRY_ASSIGN(int mine, in_.recorder->files().Anchors());
  TRY_ASSIGN(AnchorId slot, in_.recorder->files().NewAnchor());
  AnchorName slot_name(slot);
  TRY_ASSIGN(OpSeq seq, in_.recorder->IntendReplace(r.at, now.id, r.old_object, slot, r.anchor));
  if (::renameat2(anchors, kept.c_str(), mine, slot_name.c_str(), RENAME_NOREPLACE) != 0) {
    return Error::FromErrno(errno, fmt::format("bring back {}", path));
  }
  const int err = Attempt(parent, &now, [&] {
    return static_cast<int>(::renameat2(mine, slot_name.c_str(), parent.object.fd.get(),
                                        name.c_str(), RENAME_EXCHANGE));
  });
  if (err != 0) return Error::FromErrno(err, fmt::format("bring back {}", path));
  TRY(in_.recorder->Settle(seq, 0));
  return NoteOtherNames(now);
}

// Of a killed rewind: the inode that came from the rewound step goes back to where that step keeps it.
Status Rewinder::ReturnReplaced(const ReplaceRecord& r, Parent&, const std::string&) {
  if (in_.recorder != nullptr || r.returned == 0 || in_.origin == nullptr) return Ok();
  TRY_ASSIGN(int mine, in_.files.Anchors());
  TRY_ASSIGN(int theirs, in_.origin->Anchors());
  if (!NameExists(mine, AnchorName(r.anchor).c_str())) return Ok();
  if (::renameat2(mine, AnchorName(r.anchor).c_str(), theirs, AnchorName(r.origin).c_str(),
                  RENAME_NOREPLACE) != 0) {
    return Error::FromErrno(errno, "return a kept inode");
  }
  return Ok();
}

// --- Contents.

Status Rewinder::Undo(const ContentRecord& r) {
  if (in_.view.IsDropped(r)) return Ok();
  Parent* parent = nullptr;
  TRY_ASSIGN(auto object, Recorded(r.path, r.object, &parent));
  if (!object) return Ok();
  notes_[r.path];
  return WriteContent(*object, r, *parent, std::string(BaseName(r.path)));
}

Status Rewinder::RecordContentChange(const OpenObject& object, const ContentRecord& r) {
  if (in_.recorder == nullptr) return Ok();
  if (r.whole) {
    return in_.recorder->TouchContent(object, r.path, ContentChange::TruncateTo(0),
                                      WriteVisibility::kUnseen);
  }
  if (object.stat.size > r.file_size) {
    TRY(in_.recorder->TouchContent(object, r.path, ContentChange::TruncateTo(r.file_size),
                                   WriteVisibility::kAnnounced));
  }
  return in_.recorder->TouchContent(object, r.path, ContentChange::Range(r.offset, r.length),
                                    WriteVisibility::kAnnounced);
}

// What was copied only to be safe is often as it was: then there is nothing to write, and nothing to record.
bool Rewinder::HoldsAlready(const OpenObject& object, const ContentRecord& r) {
  if (!r.whole || !object.readable || object.stat.size != r.file_size) return false;
  if (r.keeping == Keeping::kPack) {
    Bytes now(r.file_size);
    auto got = PReadFully(object.fd.get(), now, 0);
    return got.ok() && *got == r.file_size && HashBytes64(now) == r.checksum;
  }
  auto blobs = in_.files.Blobs();
  if (!blobs.ok()) return false;
  Fd blob(
      ::openat(*blobs, BlobName({static_cast<uint32_t>(r.where)}).c_str(), O_RDONLY | O_CLOEXEC));
  auto same =
      blob.valid() ? SameBytes(blob.get(), object.fd.get(), r.file_size) : Result<bool>(false);
  return same.ok() && *same;
}

Status Rewinder::WriteContent(const OpenObject& object, const ContentRecord& r, Parent& parent,
                              const std::string& name) {
  if (HoldsAlready(object, r)) return Ok();
  TRY(RecordContentChange(object, r));
  auto fd = OpenForWriting(object, std::string(r.path), parent, name);
  if (!fd.ok() && fd.error().sys_errno() == ETXTBSY && r.whole) {
    TRY(ReplaceBusy(object, r, parent, name));
    fd = OpenForWriting(object, std::string(r.path), parent, name);
  }
  if (!fd.ok()) return fd.error();
  Status filled = r.whole ? FillWhole(fd->get(), r) : FillRange(fd->get(), r);
  if (filled.ok() || filled.error().code() != Code::kCorrupt) return filled;
  AddConflict(ConflictKind::kCorrupt, r.path, filled.error().message());
  return Ok();
}

// A program that is running cannot be written to: it gets a new inode, and the table says so.
Status Rewinder::ReplaceBusy(const OpenObject& object, const ContentRecord& r, Parent& parent,
                             const std::string& name) {
  const NameAt at{parent.object.id, ParentOf(r.path), name};
  if (in_.recorder != nullptr) {
    TRY(TakeAway(at, parent, name, object));
  } else if (::unlinkat(parent.object.fd.get(), name.c_str(), 0) != 0) {
    return Error::FromErrno(errno, fmt::format("replace {}", r.path));
  }
  return MakeAnew({at, object.id, S_IFREG, Kept::kContent, {}, 1, 0, {}}, parent, name);
}

Result<Fd> Rewinder::OpenForWriting(const OpenObject& object, const std::string& path,
                                    Parent& parent, const std::string& name) {
  Fd fd;
  const auto open_it = [&] {
    fd = Fd(::openat(parent.object.fd.get(), name.c_str(),
                     O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    return fd.valid() ? 0 : -1;
  };
  int err = Attempt(parent, &object, open_it);
  if (err == EACCES) {  // mode bits of the file itself
    ::chmod(ProcPath(object.fd.get()).c_str(), (object.stat.mode & 07777) | S_IRUSR | S_IWUSR);
    err = open_it() == 0 ? 0 : errno;
  }
  if (err == 0) return fd;
  return Error::FromErrno(err, fmt::format("restore the content of {}", path));
}

Status Rewinder::FillRange(int fd, const ContentRecord& r) {
  if (r.length > 0) {
    TRY_ASSIGN(Bytes bytes, in_.files.ReadPack(r.where, r.length));
    if (HashBytes64(bytes) != r.checksum)
      return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    TRY(PWriteFully(fd, bytes, static_cast<off_t>(r.offset)));
  }
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

Status Rewinder::FillWhole(int fd, const ContentRecord& r) {
  if (r.keeping == Keeping::kPack) {
    TRY_ASSIGN(Bytes bytes, in_.files.ReadPack(r.where, r.length));
    if (HashBytes64(bytes) != r.checksum)
      return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    if (r.sparse && ::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = r.sparse ? std::min(kHoleBytes, bytes.size() - at) : bytes.size();
      ByteView block = ByteView(bytes).subspan(at, size);
      const bool hole =
          r.sparse && std::all_of(block.begin(), block.end(), [](uint8_t b) { return b == 0; });
      if (!hole) TRY(PWriteFully(fd, block, static_cast<off_t>(at)));
      at += size;
    }
  } else {
    TRY_ASSIGN(int blobs, in_.files.Blobs());
    Fd blob(
        ::openat(blobs, BlobName({static_cast<uint32_t>(r.where)}).c_str(), O_RDONLY | O_CLOEXEC));
    if (!blob.valid())
      return Error(Code::kCorrupt, "what was kept of it is missing from the store");
    if (::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
    if (r.keeping == Keeping::kBlob || ::ioctl(fd, FICLONE, blob.get()) != 0) {
      TRY_ASSIGN(uint64_t checksum, CopySparse(blob.get(), fd, r.file_size));
      if (r.checksum != 0 && checksum != r.checksum)
        return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    }
  }
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

// --- Metadata.

Status Rewinder::Undo(const MetaRecord& r, size_t index) {
  if (SkipsLink(r.meta.mode)) return Ok();
  if (r.names_only()) {
    notes_[r.path];
    return Ok();
  }
  if (ComesLast(r)) {
    notes_[r.path].deferred_meta = index;
    return Ok();
  }
  Parent* parent = nullptr;
  TRY_ASSIGN(auto object, Recorded(r.path, r.object, &parent));
  if (!object) return Ok();
  notes_[r.path];
  return ApplyMeta(*object, r.path, r);
}

Status Rewinder::ApplyMeta(const OpenObject& object, std::string_view path, const MetaRecord& r) {
  Metadata want = r.meta;
  if (const auto edited = edited_.find(object.id); edited != edited_.end()) {
    // Names in a folder changed, or those of a file: what a person did to the object itself is not ours to take back.
    if (!object.stat.IsDirectory()) return Ok();
    want.mode = edited->second.mode;
    want.uid = edited->second.uid;
    want.gid = edited->second.gid;
  }
  if (in_.recorder != nullptr) {
    // First touched for its names, an object may have been changed itself later in the step.
    const bool changed = in_.view.IsChanged(r.object);
    TRY(in_.recorder->TouchMeta(object, path, changed ? TouchReason::kDirect : r.reason));
  }
  Status applied = ApplyMetadata(object, want);
  if (!applied.ok()) {
    ClearBlockingFlags(object);
    applied = ApplyMetadata(object, want);
  }
  if (!applied.ok())
    report_.warnings.push_back(fmt::format("{}: {}", path, applied.error().message()));
  return Ok();
}

// Deepest first: restoring a folder's time must be the last thing that happens in it.
Status Rewinder::ApplyDeferred() {
  ForgetParents();
  for (auto it = notes_.map().rbegin(); it != notes_.map().rend(); ++it) {
    if (!it->second.deferred_meta) {
      if (it->second.lifted_mode) {
        if (auto fd = OpenBeneath(place_.root.get(), it->first, O_PATH | O_NOFOLLOW); fd.ok()) {
          ::chmod(ProcPath(fd->get()).c_str(), *it->second.lifted_mode);
        }
      }
      continue;
    }
    auto record = in_.view.journal().At(*it->second.deferred_meta);
    if (!record.ok()) continue;
    const auto& meta = std::get<MetaRecord>(*record);
    auto fd = OpenBeneath(place_.root.get(), it->first, O_PATH | O_NOFOLLOW);
    if (!fd.ok()) {
      if (fd.error().code() != Code::kNotFound) report_.warnings.push_back(fd.error().ToString());
      continue;
    }
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd->get()));
    if (object.id != in_.objects.Current(meta.object) || !MayChange(object)) continue;
    TRY(ApplyMeta(object, it->first, meta));
  }
  return Ok();
}

Status Rewinder::NoteSignatures() {
  Looker looker(place_);
  for (const auto& [path, note] : notes_.map()) {
    const auto found = note.object != kNoObject ? looker.Known(path, note.object) : looker.At(path);
    if (found) TRY(NoteSignature(found->id, found->stat));
  }
  return in_.objects.Flush();
}

}  // namespace

Status Rewind(const RewindInput& input, RewindReport& report) {
  return Rewinder(input, report).Run();
}

}  // namespace sandglass::undo

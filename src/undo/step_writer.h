// StepWriter: the open step. Keeps preimages on first touch and writes intents before, outcomes after an operation.
//
// Used by the interceptor for what a world does, and by rewinds for what they do themselves, so that a rollback is recorded (and can
// be redone, or taken back when it is killed) by the very same code. It decides how to keep things, not whether that is allowed.
// Split over files by task: step_writer.cc (records, intents, the end), step_contents.cc, step_anchors.cc.
//
// Thread-safe, but the caller holds the KeyLocks of the directories and objects concerned from touch to Settle.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/interceptor.h"
#include "undo/journal.h"
#include "undo/object.h"
#include "undo/place.h"
#include "undo/shadows.h"
#include "undo/step_files.h"

namespace sandglass::undo {

struct StepWriterOptions {
  uint64_t max_copied_bytes = UINT64_MAX;
  // Beyond it no operation is intended any more; what has begun can still end.
  uint64_t max_journal_bytes = UINT64_MAX;
  Durability durability = Durability::kProcess;
  Shadows* shadows = nullptr;  // none: no live writers to think of
};

// How an object that loses a name is kept.
struct Keep {
  Kept kept = Kept::kNothing;
  AnchorId anchor{};
  // The anchor is not made yet: the caller renames the name itself into anchors/ (after the intent), instead of removing it.
  bool by_rename = false;
  bool shared = false;  // the object has further names
  // What the anchor keeps from being freed; 0 while the object has further names.
  uint64_t retained = 0;
};

enum class KeepBy : uint8_t { kLink, kRename };

class StepWriter {
 public:
  // Makes the folder `name` in `parent_fd` and starts the journal. On error the folder is as before: a new one is gone again, and one
  // that was there (kExists) is somebody's preimages and not touched.
  static Result<std::unique_ptr<StepWriter>> Create(const Place& place, int parent_fd,
                                                    const char* name, const JournalHeader& header,
                                                    const StepWriterOptions& options);

  const JournalHeader& header() const { return header_; }
  StepFiles& files() { return files_; }
  Durability durability() const { return options_.durability; }

  // --- First touches. Each does nothing when the step has what it needs already.
  Status TouchMeta(const OpenObject& object, std::string_view path, TouchReason reason);
  // kLimit: the step would copy more than it may. kNotRestorable: the content could be kept but not put back exactly.
  Status TouchContent(const OpenObject& object, std::string_view path, ContentChange change,
                      WriteVisibility visibility);
  bool IsBorn(ObjectId object) const;
  // Has it made anything yet?
  bool has_births() const { return has_births_; }
  bool HasTouched(ObjectId object) const;
  // The same of a folder that is still there, as far as the step knows.
  bool HasFolder(ObjectId folder) const;
  void NoteGone(ObjectId folder);
  uint32_t AnchorCount(ObjectId object) const;
  // Anything of it is on record.
  bool Knows(ObjectId object) const;
  // The folder is renamed in this step; the first path counts.
  void NoteCarried(ObjectId folder, std::string from) EXCLUDES(mutex_);
  std::optional<std::string> CarriedFrom(ObjectId folder) const EXCLUDES(mutex_);
  bool carries() const { return carries_; }

  // --- Names.
  Result<OpSeq> IntendCreate(const NameAt& at, Birth birth, uint32_t mode,
                             ObjectId object = kNoObject, AnchorId origin = {});
  // Makes sure that `object` can come back after losing the name `name` in `dir_fd`.
  Result<Keep> KeepObject(const OpenObject& object, int dir_fd, const char* name,
                          std::string_view path, KeepBy by);
  Result<OpSeq> IntendRemove(const NameAt& at, const OpenObject& object, const Keep& keep);
  Result<OpSeq> IntendRename(const NameAt& from, const NameAt& to, RenameMode mode,
                             const OpenObject& object, const OpenObject* target,
                             const Keep& target_keep);
  // Is it large, alone and untouched enough for TryReplaceInode to be worth trying?
  bool MayReplaceInode(const OpenObject& object) const;
  // Gives the name a fresh inode with the same metadata and no content, and keeps the old one, if that is possible and cheaper than
  // copying. nullopt: it is not.
  struct Replacement {
    OpSeq seq;
    AnchorId anchor;
    ObjectId old_object, fresh;
    uint64_t retained = 0;
    Fd fresh_fd;
  };
  Result<std::optional<Replacement>> TryReplaceInode(const OpenObject& object,
                                                     const OpenObject& dir, const NameAt& at);
  // The operation that the inode was replaced for did not happen: the old one gets its name back.
  Status TakeBackReplacement(const Replacement& replacement, const OpenObject& dir,
                             const std::string& name);
  // Of a rewind: the inode in anchors/`anchor` and the one at `at` change places.
  Result<OpSeq> IntendReplace(const NameAt& at, ObjectId old_object, ObjectId fresh,
                              AnchorId anchor, AnchorId origin);
  // The operation that `keep` was made for did not happen, and `name` in `dir_fd` is to have its object.
  void ReleaseKeep(const Keep& keep, ObjectId object, int dir_fd, const std::string& name);
  // The outcome of an intended operation; `created` is the new object's identity.
  Status Settle(OpSeq seq, int sys_errno, ObjectId created = kNoObject);

  // --- The end.
  Status MarkUnprotected(std::string_view why);
  bool unprotected() const { return unprotected_; }
  // Drops provisional copies of what did not change.
  Status DropUnchanged();
  // What a touched object looks like now that the step closes.
  Status NoteAfter(ObjectId object, const FileStat& stat);
  // An object that lost a name without an anchor, and lives on under names that the step need not know: it looked so right afterwards.
  void NoteLostName(ObjectId object, const FileStat& stat) EXCLUDES(mutex_);
  std::unordered_map<ObjectId, FileStat> LostNames() const EXCLUDES(mutex_);
  // Writes the closing record and cuts the journal to size. Done once; nothing can be recorded any more.
  Status Close(int64_t now_ns, const ChangeCounts& counts);
  bool closed() const { return closed_; }
  // Gives memory back before the journal is read.
  void Unload() { journal_->Unload(); }
  void Beat(int64_t now_ns) { journal_->Beat(now_ns); }
  // Everything recorded so far survives a power cut (Durability::kPower only).
  Status MakeDurable();

  // Intents whose outcome nobody told: their tickets were dropped.
  bool has_open_intents() const { return settled_ < next_seq_; }

  uint64_t copied_bytes() const { return copied_; }
  uint64_t retained_bytes() const { return retained_ + shared_retained_; }
  // What anchors of objects with several names retain; found out when the step closes, maybe more than once.
  void SetSharedRetained(uint64_t bytes) { shared_retained_ = bytes; }
  bool shares_anchors() const { return shared_anchors_ > 0; }
  // How many records have been searched for edits by others.
  size_t noticed_records() const { return noticed_records_; }
  void NoteNoticed(size_t records) { noticed_records_ = records; }

 private:
  // What is kept of a large file whose changes are announced with their offsets.
  struct Ranges {
    uint64_t old_size;
    std::map<uint64_t, uint64_t> kept = {};  // where an extent begins and ends; none touch

    // The extent at or behind `at`.
    std::map<uint64_t, uint64_t>::const_iterator Next(uint64_t at) const;
    void Add(uint64_t begin, uint64_t end);
    bool AllKept() const;
  };
  struct Touch {
    bool born = false;
    bool named = false;   // some metadata is on record, perhaps only that of a change of names
    bool meta = false;    // all of it is
    bool direct = false;  // and that it changes itself
    bool whole = false;
    bool gone = false;     // a folder that was removed
    uint32_t anchors = 0;  // tmpfs and xfs allow more links than 16 bits count
    std::unique_ptr<Ranges> ranges;
  };
  struct Provisional {
    ObjectId object;
    BlobId blob;
    uint64_t copied;
    uint64_t size;
    int64_t mtime_ns;
    std::string path;
  };
  // Null: nothing that would bring it back is on record.
  const Touch* FindTouched(ObjectId object) const REQUIRES(mutex_);

  StepWriter(const Place& place, Fd dir, const JournalHeader& header,
             const StepWriterOptions& options);
  static Result<std::unique_ptr<StepWriter>> Start(const Place& place, int parent_fd,
                                                   const char* name, const JournalHeader& header,
                                                   const StepWriterOptions& options);

  Status Append(const Record& record);

  // --- step_contents.cc
  Status DropIfUnchanged(const Provisional& copy);
  Status CountCopy(uint64_t bytes);
  // Counts, appends to the pack and says where. Nothing is counted on error.
  Result<uint64_t> CopyToPack(ByteView bytes);
  Result<OpenObject> Readable(const OpenObject& object) const;
  Status CaptureWhole(const OpenObject& object, std::string_view path, bool provisional);
  Status CapturePack(const OpenObject& object, std::string_view path);
  Status CaptureBlob(const OpenObject& object, std::string_view path, bool provisional);
  Result<CopyResult> CopyToBlob(const OpenObject& object, BlobId slot);
  // Only a copy is counted, and nothing on error.
  Result<CopyResult> FillBlob(const OpenObject& object, int blob);
  Status CheckRestorable(const OpenObject& object, std::string_view path) const;
  Result<Ranges*> RangesOf(const OpenObject& object, std::string_view path);
  Status CaptureExtent(const OpenObject& source, std::string_view path, uint64_t old_size,
                       uint64_t begin, uint64_t end);
  Status CaptureRange(const OpenObject& object, std::string_view path, uint64_t begin,
                      uint64_t end);
  Status LinkShadow(const Shadow& shadow, BlobId blob);
  Status AdoptShadow(ObjectId object, std::string_view path, Shadow shadow);

  // --- step_anchors.cc
  Result<Keep> KeepNonDirectory(const OpenObject& object, int dir_fd, const char* name,
                                std::string_view path, KeepBy by);
  Status KeepAsContent(const OpenObject& object, std::string_view path);
  Result<Keep> Anchored(const OpenObject& object, AnchorId slot, bool by_rename);
  // TryReplaceInode's deed, with the fresh inode in `slot`. On error the name has its old inode again, unless that fails too.
  Result<std::optional<Replacement>> ReplaceBy(AnchorId slot, const Metadata& meta,
                                               const OpenObject& object, const OpenObject& dir,
                                               const NameAt& at);
  // A private file in the slot that looks like the object, but for its content.
  Result<OpenObject> MakeFreshInode(AnchorId slot, const Metadata& meta);

  // --- step_writer.cc
  bool IsWhole(ObjectId object) const;
  void MarkWhole(ObjectId object);
  void MarkBorn(ObjectId object);
  void NoteMeta(ObjectId object, TouchReason reason, bool names_only);
  // kLimit: the journal is as long as it may be.
  Status CheckJournal() const;
  // Puts an intent on record. On error it is not there, or as one that failed.
  Status Intend(OpSeq seq, const Record& record);
  OpSeq NextSeq() { return {next_seq_++}; }

  const Place& place_;
  JournalHeader header_;
  StepWriterOptions options_;
  StepFiles files_;
  std::unique_ptr<JournalWriter> journal_;
  std::atomic<uint32_t> next_seq_{0}, settled_{0};
  std::atomic<uint64_t> copied_{0};
  std::atomic<uint64_t> retained_{0}, shared_retained_{0};
  std::atomic<uint32_t> shared_anchors_{0};
  size_t noticed_records_ = 0;
  std::atomic<bool> unprotected_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> carries_{false};
  std::atomic<bool> has_births_{false};
  mutable Mutex mutex_;
  std::unordered_map<ObjectId, Touch> touched_ GUARDED_BY(mutex_);
  std::vector<Provisional> provisional_ GUARDED_BY(mutex_);
  std::unordered_map<ObjectId, FileStat> lost_names_ GUARDED_BY(mutex_);
  std::unordered_map<ObjectId, std::string> carried_ GUARDED_BY(mutex_);
};

}  // namespace sandglass::undo

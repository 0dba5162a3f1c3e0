// The records of a step's journal: structs, checked decoding, encoding. docs/formats/undo.md is their description.
//
// Decoding is pure, never reads past its input and allocates no more than a small multiple of it; the views in a decoded record point into
// the input. Value types; any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/bytes.h"
#include "base/ids.h"
#include "undo/metadata.h"
#include "undo/object.h"
#include "undo/types.h"

namespace sandglass::undo {

// The number of a namespace operation within its step: an outcome refers to its intent by it.
using OpSeq = StrongId<struct OpSeqTag, uint32_t>;
// The number of a file in a step's blobs/ or in its anchors/.
using BlobId = StrongId<struct BlobIdTag, uint32_t>;
using AnchorId = StrongId<struct AnchorIdTag, uint32_t>;

// A name in a directory at the moment of the operation. Replayed backwards, that path is right again when its turn comes.
struct NameAt {
  ObjectId parent;
  std::string_view dir;
  std::string_view name;
};

enum class TouchReason : uint8_t {
  kDirect = 0,   // the object itself is about to change
  kNames = 1,    // only names change: one of its own, or one in it, which moves a folder's times
  kContent = 2,  // its content may be about to change: a content record says whether it did
};

// An object's metadata before its first change in this step.
struct MetaRecord {
  ObjectId object;
  TouchReason reason;
  std::string_view path;
  Metadata meta;

  // Losing or gaining names leaves a file as it is, so only what tells an edit is on record then: no xattrs, no flags, nothing to put
  // back. A later change of the file itself writes a full record. A locked file has to be unlocked for it, which is such a change.
  bool names_only() const {
    return reason == TouchReason::kNames && (meta.mode & S_IFMT) != S_IFDIR &&
           (meta.flags & kBlockingFlags) == 0;
  }
};

// The object's metadata is on record for another reason, and now it is changed itself: summaries need to know.
struct MarkRecord {
  ObjectId object;
  std::string_view path;
};

enum class Keeping : uint8_t {
  kPack = 0,   // bytes in the pack
  kBlob = 1,   // a file of its own, copied: it has a checksum
  kClone = 2,  // a file of its own, sharing blocks: no checksum yet
};

// Bytes of an object before they change. Whole content: offset 0, length == file_size.
struct ContentRecord {
  ObjectId object;
  std::string_view path;
  Keeping keeping;
  bool whole;
  bool sparse;         // had holes: put back with holes
  uint64_t file_size;  // the object's size before the step
  uint64_t offset;
  uint64_t length;
  uint64_t where;     // offset in the pack, or the number of the blob
  uint64_t checksum;  // XXH3-64 of the bytes; 0 for kClone
};

// A provisional copy turned out to be needless: nothing had changed when the step closed.
struct DropRecord {
  ObjectId object;
  BlobId blob;
};

enum class Birth : uint8_t {
  kNew = 0,       // a new object
  kLink = 1,      // a further name for an object that exists
  kReturned = 2,  // an anchored object comes back from the step that kept it (rewinds only)
};

struct CreateRecord {
  OpSeq seq;
  NameAt at;
  Birth birth;
  uint32_t mode;    // file type bits
  ObjectId object;  // kLink and kReturned; for kNew the outcome has it
  AnchorId origin;  // kReturned: the anchor it came from
};

enum class Kept : uint8_t {
  kNothing = 0,    // born in this step: nothing to bring back
  kAnchor = 1,     // the inode itself is in anchors/
  kContent = 2,    // to be made anew: meta and content records have the rest
  kDirectory = 3,  // to be made anew, empty
};

struct RemoveRecord {
  OpSeq seq;
  NameAt at;
  ObjectId object;
  uint32_t mode;
  Kept kept;
  AnchorId anchor;
  uint32_t nlink;                   // names it had before
  uint64_t rdev;                    // kContent
  std::string_view symlink_target;  // kContent
};

struct RenameRecord {
  OpSeq seq;
  NameAt from, to;
  uint8_t exchange;
  ObjectId object;
  uint32_t mode;
  ObjectId target;  // what had the new name before; kNoObject: nothing
  uint32_t target_mode;
  Kept target_kept;
  AnchorId anchor;
  std::string_view target_symlink;
  uint64_t target_rdev;
};

// A file's inode was exchanged for a fresh one, so that its old content need not be copied.
struct ReplaceRecord {
  OpSeq seq;
  NameAt at;
  ObjectId old_object;
  ObjectId fresh_object;
  AnchorId anchor;   // holds the other one of the two
  uint8_t returned;  // rewinds only: old content came from `origin` of the step being rewound
  AnchorId origin;
};

struct OutcomeRecord {
  OpSeq seq;
  int32_t sys_errno;
  ObjectId object;  // of a create
};

struct CloseRecord {
  int64_t closed_ns;
  Protection protection;
  ChangeCounts counts;
  uint64_t copied_bytes;
  uint64_t retained_bytes;
  uint32_t
      shared_anchors;  // anchors of objects that had further names: dropping one moves their ctime
};

// The step is not recorded in full any more.
struct UnprotectedRecord {
  std::string_view why;
};

// What a touched object looked like when the step closed.
struct AfterRecord {
  ObjectId object;
  uint64_t size;
  int64_t mtime_ns, ctime_ns;
  uint32_t mode, uid, gid;

  static AfterRecord Of(ObjectId object, const FileStat& stat) {
    return {object, stat.size, stat.mtime_ns, stat.ctime_ns, stat.mode, stat.uid, stat.gid};
  }
};

using Record = std::variant<MetaRecord, MarkRecord, ContentRecord, DropRecord, CreateRecord,
                            RemoveRecord, RenameRecord, ReplaceRecord, OutcomeRecord, CloseRecord,
                            UnprotectedRecord, AfterRecord>;

// The number of a record type on disk: its place in the variant.
template <class T, size_t kIndex = 0>
constexpr uint8_t RecordType() {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<kIndex, Record>>)
    return kIndex;
  else
    return RecordType<T, kIndex + 1>();
}

// What a record may hold, to its writer and to its reader (metadata.h has the limits of extended attributes). Every path that may stand
// in a record fits; a longer one is not ours.
inline constexpr size_t kMaxPathBytes = 1 << 20;
inline constexpr size_t kMaxRecordBytes = 16 << 20;

// kNotRestorable: no reader would take such a record, so it must not be written; `out` may hold a part of it.
Status EncodeRecord(const Record& record, ByteWriter& out);
// kCorrupt: not a record.
Result<Record> DecodeRecord(ByteView payload);

}  // namespace sandglass::undo

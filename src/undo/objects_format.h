// The bytes of the file `objects` (docs/formats/undo.md): entries of 64 bytes, of which the last one for a key counts. Pure functions,
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes.h"
#include "undo/object.h"

namespace sandglass::undo {

struct Signature {
  // In the place of a ctime that we are about to move ourselves: whoever is killed before the new one is on record has not made an edit.
  static constexpr int64_t kAnyCtime = INT64_MIN;

  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint32_t mode = 0, uid = 0, gid = 0;

  static Signature Of(const FileStat& stat) {
    return {stat.size, stat.mtime_ns, stat.ctime_ns, stat.mode, stat.uid, stat.gid};
  }
  // Times and size of a directory move with every name in it, which is nobody's edit of the directory itself. But names move both times
  // to the same moment: a ctime that moved without the mtime, or after it, tells that somebody changed the directory itself.
  bool Matches(const FileStat& stat) const;
  friend bool operator==(const Signature&, const Signature&) = default;
};

inline constexpr size_t kObjectEntryBytes = 64;

struct ObjectsContent {
  std::unordered_map<ObjectId, Signature> signatures;
  // Of folders that a step changed themselves: a hash of what no stat tells (HashAttributes).
  std::unordered_map<ObjectId, uint64_t> attributes;
  std::unordered_map<ObjectId, ObjectId> successors;
  std::unordered_set<uint64_t> adopted;  // uids of steps
  uint64_t damaged = 0;                  // entries that were passed over
};

// Whatever the bytes: damaged entries are passed over, and so is a torn one at the end.
ObjectsContent DecodeObjects(ByteView file);
// The same piece by piece; all but the last one have whole entries.
void AddObjects(ByteView piece, ObjectsContent& content);

// One entry each, appended to `out`.
void EncodeSignature(ObjectId object, const Signature& signature, std::string& out);
void EncodeAttributes(ObjectId object, uint64_t hash, std::string& out);  // 0: not known any more
void EncodeSuccessor(ObjectId recorded, ObjectId successor, std::string& out);
void EncodeAdopted(uint64_t step_uid, std::string& out);
// Everything, in no particular order.
std::string EncodeObjects(const ObjectsContent& content);

}  // namespace sandglass::undo

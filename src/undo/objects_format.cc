#include "undo/objects_format.h"

#include <cstring>

#include "base/hash.h"

namespace sandglass::undo {
namespace {

enum Kind : uint32_t { kSignature = 1, kSuccessor = 2, kAdopted = 3, kAttributes = 4 };

// On disk; 64 bytes, so a torn append never shifts what follows it.
struct Entry {
  uint32_t checksum;
  uint32_t kind;
  ObjectId object;
  // size, mtime, ctime; of a successor: its two halves; of an adopted step: its uid; of attributes: their hash
  uint64_t words[3];
  uint32_t mode, uid, gid, unused;
};
static_assert(sizeof(Entry) == kObjectEntryBytes);

uint32_t ChecksumOf(const Entry& entry) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&entry);
  return static_cast<uint32_t>(
      HashBytes64({bytes + sizeof(entry.checksum), sizeof(Entry) - sizeof(entry.checksum)}));
}

void Seal(Entry entry, std::string& out) {
  entry.checksum = ChecksumOf(entry);
  out.append(reinterpret_cast<const char*>(&entry), sizeof(Entry));
}

void Add(const Entry& entry, ObjectsContent& content) {
  switch (entry.kind) {
    case kSignature:
      content.signatures[entry.object] = {entry.words[0],
                                          static_cast<int64_t>(entry.words[1]),
                                          static_cast<int64_t>(entry.words[2]),
                                          entry.mode,
                                          entry.uid,
                                          entry.gid};
      return;
    case kSuccessor:
      content.successors[entry.object] = {entry.words[0], entry.words[1]};
      return;
    case kAdopted:
      content.adopted.insert(entry.words[0]);
      return;
    case kAttributes:
      if (entry.words[0] != 0)
        content.attributes[entry.object] = entry.words[0];
      else
        content.attributes.erase(entry.object);
      return;
    default:
      ++content.damaged;
      return;
  }
}

}  // namespace

bool Signature::Matches(const FileStat& stat) const {
  if (mode != stat.mode || uid != stat.uid || gid != stat.gid) return false;
  if (stat.IsDirectory())
    return ctime_ns == stat.ctime_ns ||
           (mtime_ns != stat.mtime_ns && stat.mtime_ns == stat.ctime_ns);
  return size == stat.size && mtime_ns == stat.mtime_ns &&
         (ctime_ns == stat.ctime_ns || ctime_ns == kAnyCtime);
}

void AddObjects(ByteView piece, ObjectsContent& content) {
  for (; piece.size() >= sizeof(Entry); piece = piece.subspan(sizeof(Entry))) {
    Entry entry{};
    std::memcpy(&entry, piece.data(), sizeof(Entry));
    if (entry.checksum == ChecksumOf(entry))
      Add(entry, content);
    else
      ++content.damaged;
  }
}

ObjectsContent DecodeObjects(ByteView file) {
  ObjectsContent content;
  AddObjects(file, content);
  return content;
}

void EncodeSignature(ObjectId object, const Signature& signature, std::string& out) {
  Seal({.kind = kSignature,
        .object = object,
        .words = {signature.size, static_cast<uint64_t>(signature.mtime_ns),
                  static_cast<uint64_t>(signature.ctime_ns)},
        .mode = signature.mode,
        .uid = signature.uid,
        .gid = signature.gid},
       out);
}

void EncodeAttributes(ObjectId object, uint64_t hash, std::string& out) {
  Seal({.kind = kAttributes, .object = object, .words = {hash}}, out);
}

void EncodeSuccessor(ObjectId recorded, ObjectId successor, std::string& out) {
  Seal({.kind = kSuccessor, .object = recorded, .words = {successor.lo, successor.hi}}, out);
}

void EncodeAdopted(uint64_t step_uid, std::string& out) {
  Seal({.kind = kAdopted, .object = kNoObject, .words = {step_uid}}, out);
}

std::string EncodeObjects(const ObjectsContent& content) {
  std::string bytes;
  for (const auto& [id, signature] : content.signatures) EncodeSignature(id, signature, bytes);
  for (const auto& [id, hash] : content.attributes) EncodeAttributes(id, hash, bytes);
  for (const auto& [id, successor] : content.successors) EncodeSuccessor(id, successor, bytes);
  for (uint64_t uid : content.adopted) EncodeAdopted(uid, bytes);
  return bytes;
}

}  // namespace sandglass::undo

// Fuzzes what reads the files of a store that are no journals: version, project, barriers, the list of what recovery keeps, where a
// rollback goes, notes of shadows, the table of objects, compressed packs; and the entries of the registry. store_files_input.h says how an input is laid out.
//
// Whatever the bytes: no crash, errors of the promised code only, and what was understood survives being written and read again.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/result.h"
#include "fuzz/store_files_input.h"
#include "undo/journal_format.h"
#include "undo/objects_format.h"
#include "undo/pack.h"
#include "undo/state_files.h"

namespace sandglass::fuzz {
namespace {

using undo::PackIndex;
using undo::PackReader;

void ExpectCode(const Error& error, Code code) { CHECK(error.code() == code); }

void CheckVersion(std::string_view text) {
  const auto version = undo::ParseVersion(text);
  if (!version.ok()) return ExpectCode(version.error(), Code::kVersion);
  CHECK(*undo::ParseVersion(undo::WriteVersion(*version)) == *version);
}

void CheckProject(std::string_view text) {
  const auto owner = undo::ParseStoreOwner(text);
  if (!owner.ok()) return ExpectCode(owner.error(), Code::kCorrupt);
  const auto again = undo::ParseStoreOwner(undo::WriteStoreOwner(*owner));
  CHECK(again.ok() && again->root == owner->root && again->path == owner->path);
  CHECK(again->salt == owner->salt && again->file_system.fsid == owner->file_system.fsid &&
        again->file_system.uuid == owner->file_system.uuid);
}

void CheckBarriers(std::string_view text) {
  const auto barriers = undo::ParseBarriers(text);
  if (!barriers.ok()) return ExpectCode(barriers.error(), Code::kCorrupt);
  const std::string once = undo::WriteBarriers(*barriers);
  CHECK(undo::WriteBarriers(*undo::ParseBarriers(once)) == once);
}

void CheckKeepList(std::string_view text) {
  const auto objects = undo::ParseKeepList(text);
  CHECK(objects.size() <= text.size() / 33);
  CHECK(undo::ParseKeepList(undo::WriteKeepList(objects)) == objects);
}

void CheckJourney(std::string_view text) {
  const auto journey = undo::ParseJourney(text);
  if (!journey) return;
  const auto again = undo::ParseJourney(undo::WriteJourney(*journey));
  CHECK(again && again->target == journey->target && again->start == journey->start &&
        again->force == journey->force);
}

void CheckFrames(ByteView bytes) {
  const auto records = undo::DecodeFrames(bytes);
  if (!records.ok()) return;
  const Bytes once = undo::EncodeFrames(*records).value();
  const auto again = undo::DecodeFrames(once);
  CHECK(again.ok() && again->size() == records->size() && *undo::EncodeFrames(*again) == once);
}

Bytes SealFrames(ByteView input) {
  Bytes out;
  while (input.size() >= sizeof(uint16_t)) {
    const size_t wanted = input[0] | input[1] << 8;
    input = input.subspan(sizeof(uint16_t));
    const ByteView payload = input.first(std::min(wanted, input.size()));
    input = input.subspan(payload.size());
    ByteWriter frame;
    frame.Put(static_cast<uint32_t>(payload.size()));
    frame.Put(undo::FrameChecksum(payload));
    frame.PutBytes(payload);
    out.insert(out.end(), frame.bytes().begin(), frame.bytes().end());
    out.resize(out.size() + undo::FrameBytes(payload.size()) - frame.bytes().size());
  }
  return out;
}

void CheckRegistryEntry(std::string_view text) {
  const auto entry = undo::ParseRegistryEntry(text);
  if (!entry.ok()) return ExpectCode(entry.error(), Code::kCorrupt);
  CHECK(entry->project.starts_with('/') && entry->store.starts_with('/'));
  const auto again = undo::ParseRegistryEntry(undo::WriteRegistryEntry(*entry));
  CHECK(again.ok() && again->project == entry->project && again->store == entry->store);
}

void CheckObjects(ByteView bytes) {
  const undo::ObjectsContent content = undo::DecodeObjects(bytes);
  const size_t entries = content.signatures.size() + content.attributes.size() +
                         content.successors.size() + content.adopted.size();
  CHECK(entries <= bytes.size() / undo::kObjectEntryBytes);
  // A signature is that of the state that it was taken of.
  for (const auto& [id, of] : content.signatures) {
    CHECK(of.Matches({.mode = of.mode,
                      .uid = of.uid,
                      .gid = of.gid,
                      .size = of.size,
                      .mtime_ns = of.mtime_ns,
                      .ctime_ns = of.ctime_ns}));
  }
  const undo::ObjectsContent again = undo::DecodeObjects(AsBytes(undo::EncodeObjects(content)));
  CHECK(again.signatures == content.signatures && again.successors == content.successors &&
        again.adopted == content.adopted && again.attributes == content.attributes);
}

Bytes SealObjects(ByteView input) {
  constexpr size_t kUnsealed = undo::kObjectEntryBytes - sizeof(uint32_t);
  ByteWriter out;
  for (; input.size() >= kUnsealed; input = input.subspan(kUnsealed)) {
    out.Put(static_cast<uint32_t>(HashBytes64(input.first(kUnsealed))));
    out.PutBytes(input.first(kUnsealed));
  }
  return out.bytes();
}

Fd InMemory(ByteView content) {
  Fd file(::memfd_create("pack", MFD_CLOEXEC));
  CHECK(file.valid() && PWriteFully(file.get(), content, 0).ok());
  return file;
}

// Reads to the end or to the first frame that is none. A frame is small and a chunk is not, so this is done chunk by chunk.
void CheckPack(ByteView bytes) {
  auto reader = PackReader::Open(InMemory(bytes));
  if (!reader.ok()) return ExpectCode(reader.error(), Code::kCorrupt);
  for (uint64_t at = 1;; at += undo::kPackChunkBytes) {
    const auto read = reader->Read(at, undo::kPackChunkBytes / 2);
    if (!read.ok()) return ExpectCode(read.error(), Code::kCorrupt);
    CHECK(read->size() == undo::kPackChunkBytes / 2);
  }
}

Bytes SealPack(ByteView input) {
  ByteCursor in(input);
  const auto raw_bytes = in.Take<uint64_t>();
  PackIndex index{.raw_bytes = raw_bytes.ok() ? *raw_bytes : 0};
  Bytes file;
  for (auto length = in.Take<uint16_t>(); length.ok(); length = in.Take<uint16_t>()) {
    const auto frame = in.TakeBytes(std::min<size_t>(*length, in.remaining()));
    file.insert(file.end(), frame->begin(), frame->end());
    index.ends.push_back(file.size());
  }
  const Bytes tail = index.Encode();
  file.insert(file.end(), tail.begin(), tail.end());
  return file;
}

// What was compressed reads back, from anywhere and not beyond the end.
void CheckRoundTrip(ByteView input) {
  if (input.empty()) return;
  Bytes raw;
  for (int i = 0; i <= input.front(); ++i) raw.insert(raw.end(), input.begin() + 1, input.end());
  const Fd from = InMemory(raw);
  Fd to = InMemory({});
  CHECK(undo::WriteCompressedPack(from.get(), raw.size(), to.get()).ok());
  auto reader = PackReader::Open(std::move(to));
  CHECK(reader.ok());
  const auto all = reader->Read(0, raw.size());
  CHECK(all.ok() && *all == raw);
  const size_t half = raw.size() / 2;
  const auto rest = reader->Read(half, raw.size() - half);
  CHECK(rest.ok() && std::ranges::equal(*rest, ByteView(raw).subspan(half)));
  CHECK(reader->Read(half, raw.size() - half + 1).error().code() == Code::kCorrupt);
  CHECK(undo::WriteCompressedPack(from.get(), raw.size() + 1, from.get()).error().code() ==
        Code::kCorrupt);
}

void Check(ByteView input) {
  if (input.empty() || input.size() > kMaxStoreInputBytes) return;
  const ByteView rest = input.subspan(1);
  switch (static_cast<StoreInput>(input.front() % kStoreInputs)) {
    case StoreInput::kVersion:
      return CheckVersion(AsText(rest));
    case StoreInput::kProject:
      return CheckProject(AsText(rest));
    case StoreInput::kBarriers:
      return CheckBarriers(AsText(rest));
    case StoreInput::kKeepList:
      return CheckKeepList(AsText(rest));
    case StoreInput::kFrames:
      return CheckFrames(rest);
    case StoreInput::kSealedFrames:
      return CheckFrames(SealFrames(rest));
    case StoreInput::kJourney:
      return CheckJourney(AsText(rest));
    case StoreInput::kRegistryEntry:
      return CheckRegistryEntry(AsText(rest));
    case StoreInput::kObjects:
      return CheckObjects(rest);
    case StoreInput::kSealedObjects:
      return CheckObjects(SealObjects(rest));
    case StoreInput::kPack:
      return CheckPack(rest);
    case StoreInput::kSealedPack:
      return CheckPack(SealPack(rest));
    case StoreInput::kRawPack:
      return CheckRoundTrip(rest);
  }
}

}  // namespace
}  // namespace sandglass::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sandglass::fuzz::Check({data, size});
  return 0;
}

// The small text files of a store and of the registry (docs/formats/undo.md), between bytes and values. Pure functions, any thread.
//
// Whoever reads a file may be reading somebody else's: a parser takes any bytes and refuses, or leaves out what makes no sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "undo/object.h"
#include "undo/types.h"

namespace sandglass::undo {

// More than any of them has; a registry entry is smaller.
inline constexpr size_t kMaxStateFile = 64 << 20;
inline constexpr size_t kMaxRegistryEntry = 64 << 10;

std::string HexId(ObjectId id);
std::optional<ObjectId> ParseHexId(std::string_view text);

// `version`. kVersion: it is no number.
Result<uint32_t> ParseVersion(std::string_view text);
std::string WriteVersion(uint32_t version);

// `project`: whom the store belongs to.
struct StoreOwner {
  ObjectId root;     // the folder's identity
  std::string path;  // where it was; "?": not told
  // Which identities the store has, and on which file system; older stores do not tell.
  std::optional<uint64_t> salt;
  FileSystemId file_system;
};
// kCorrupt: it names nobody.
Result<StoreOwner> ParseStoreOwner(std::string_view text);
std::string WriteStoreOwner(const StoreOwner& owner);

// `barriers`. kCorrupt: not all of them can be read, and nobody knows what is missing.
Result<std::vector<Barrier>> ParseBarriers(std::string_view text);
std::string WriteBarriers(const std::vector<Barrier>& barriers);

// `wal/keep`. A line that is no identity is left out.
std::unordered_set<ObjectId> ParseKeepList(std::string_view text);
std::string WriteKeepList(const std::unordered_set<ObjectId>& objects);

// `wal/target`: where a rollback or redo of several steps goes, and where it came from, in numbers of steps that are left.
struct Journey {
  uint64_t target = 0, start = 0;
  Force force = Force::kNo;
};
// nullopt: it makes no sense.
std::optional<Journey> ParseJourney(std::string_view text);
std::string WriteJourney(const Journey& journey);

// An entry of the registry. kCorrupt: it is none.
Result<RegisteredProject> ParseRegistryEntry(std::string_view text);
std::string WriteRegistryEntry(const RegisteredProject& entry);

}  // namespace sandglass::undo

// What commands choose from: sizes and offsets at which the undo library works differently, and kinds of places. Free functions.
#pragma once

#include <cstdint>
#include <string>

#include "tests/model/command.h"
#include "tests/model/inventory.h"

namespace sandglass::model {

inline constexpr uint32_t kKiB = 1024;
inline constexpr uint64_t kLarge =
    256 * kKiB;  // from here on the store does not copy into its pack
inline constexpr uint64_t kMaxFile = 1536 * kKiB;
inline constexpr const char* kXattr = "user.model";

// One of the sizes at which keeping content works differently.
uint64_t SomeSize(Dice& dice);
// Of a write: a few bytes, a page, more than one block of a range.
uint64_t SomeLength(Dice& dice);
// Within the file, at a block's edge, at its end, or behind a new hole.
uint64_t SomeOffset(Dice& dice, uint64_t size);
// `length` bytes that differ for different salts.
std::string Pattern(uint32_t salt, size_t length);

// For the trace.
std::string Shown(const std::string& path);

inline bool IsFile(const Spot& spot) { return spot.is_file(); }
inline bool IsFileWithContent(const Spot& spot) { return spot.is_file() && spot.size() > 0; }
inline bool IsLargeFile(const Spot& spot) { return spot.is_file() && spot.size() >= kLarge; }
inline bool IsSmallEnough(const Spot& spot) { return spot.is_file() && spot.size() < kMaxFile; }
inline bool IsOther(const Spot& spot) { return spot.is_other(); }
inline bool IsDirectory(const Spot& spot) { return spot.is_directory(); }
inline bool Exists(const Spot& spot) { return spot.exists; }
inline bool IsFree(const Spot& spot) { return spot.free(); }
inline bool IsFreeForFile(const Spot& spot) { return spot.free() && !spot.for_directory; }
inline bool IsFreeForDirectory(const Spot& spot) { return spot.free() && spot.for_directory; }

// A file that fits; large ones are preferred now and then, because few files are large.
const Spot* PickFile(const Inventory& inventory, uint32_t choice, Dice& dice,
                     const Inventory::Predicate& fits);

}  // namespace sandglass::model

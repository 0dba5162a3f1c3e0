// Limits of the interfaces, as the schemas and docs/api.md state them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandglass::api {

inline constexpr size_t kMaxLineBytes = size_t{1} << 20;     // of a request, without its newline
inline constexpr size_t kMaxReadBytes = size_t{512} << 10;   // of one fs.read
inline constexpr size_t kMaxWriteBytes = size_t{640} << 10;  // of one fs.write
inline constexpr size_t kMaxEditedBytes = size_t{16} << 20;  // of a file for fs.edit
inline constexpr size_t kDefaultFound = 250;                 // of fs.glob and fs.grep
inline constexpr size_t kMaxFoundBytes = size_t{512} << 10;  // of lines in one fs.grep
inline constexpr size_t kMaxListed = 1'000;                  // entries of one fs.list
inline constexpr size_t kMaxFolderEntries = 1'000'000;       // of a folder that can be listed
inline constexpr size_t kMaxCommandBytes =
    size_t{120} << 10;  // the kernel takes no longer argument than 128 KiB

}  // namespace sandglass::api

// The inputs of control_channel_fuzz: what the first byte selects, and what follows it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandglass::fuzz {

enum class ControlInput : uint8_t {
  kHostLine = 0,  // a line, as it is
  kShimLine = 1,
  kStream = 2,   // u8 how it is cut into reads, then bytes; lines may have kStreamLineBytes
  kSession = 3,  // u8 how it is cut into reads, then what a shim says to a host with two commands
};
inline constexpr uint8_t kControlInputs = 4;

inline constexpr size_t kStreamLineBytes = 64;
inline constexpr size_t kMaxControlInputBytes = 64 << 10;

}  // namespace sandglass::fuzz

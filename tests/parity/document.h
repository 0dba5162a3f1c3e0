// docs/parity.md, and the differences that are known.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sandglass::parity {

// A case that gives something else in a world than outside.
struct KnownDifference {
  const char* call;  // `*`: any
  const char* what;  // of the case; ends with `*` if it is the start of several
  const char* reason;
  // Whether it shows may depend on the file system, on the user and on what is mounted where.
  enum class Shows : uint8_t { kAlways, kSometimes } shows = Shows::kAlways;
};
std::span<const KnownDifference> KnownDifferences();
// Of the case with this name (Case::Name()); null: none.
const KnownDifference* FindKnownDifference(const std::string& name);

std::string Document();

}  // namespace sandglass::parity

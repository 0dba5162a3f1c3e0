// The versions of the Model Context Protocol that are spoken, and what differs between them. Constant data.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace sandglass::api::mcp {

enum class Has : uint8_t { kNo, kYes };

struct Version {
  std::string_view name;
  Has batches;         // arrays of messages
  Has annotations;     // what a tool does to the world
  Has structured;      // results as JSON too, with a schema; titles
  Has primed_streams;  // an event stream begins with an empty event, from which it can be resumed
  Has faults_as_results;  // wrong arguments are a failure that the model sees, not one of the protocol
  Has stateless = Has::kNo;  // no initialize: every request says all about the client
};

// Those that a client agrees upon with `initialize`, oldest first.
inline constexpr Version kVersions[] = {
    {"2024-11-05", Has::kNo, Has::kNo, Has::kNo, Has::kNo, Has::kNo},
    {"2025-03-26", Has::kYes, Has::kYes, Has::kNo, Has::kNo, Has::kNo},
    {"2025-06-18", Has::kNo, Has::kYes, Has::kYes, Has::kNo, Has::kNo},
    {"2025-11-25", Has::kNo, Has::kYes, Has::kYes, Has::kYes, Has::kYes},
};

// The one that a client names in every request instead.
inline constexpr Version kStateless{"2026-07-28", Has::kNo,  Has::kYes, Has::kYes,
                                    Has::kNo,     Has::kYes, Has::kYes};

// Of those with `initialize`.
inline constexpr const Version& kNewest = kVersions[std::size(kVersions) - 1];

// Null: we do not speak it.
constexpr const Version* FindVersion(std::string_view name) {
  for (const Version& version : kVersions) {
    if (version.name == name) return &version;
  }
  return nullptr;
}

// The client's if we speak it, else our newest: the client may leave then.
constexpr const Version& Negotiated(std::string_view asked) {
  const Version* spoken = FindVersion(asked);
  return spoken != nullptr ? *spoken : kNewest;
}

}  // namespace sandglass::api::mcp

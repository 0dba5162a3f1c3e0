// The versions of the Model Context Protocol that are spoken, and what differs between them. Constant data.
#pragma once

#include <cstdint>
#include <string_view>

namespace sandglass::api::mcp {

enum class Has : uint8_t { kNo, kYes };

struct Version {
  std::string_view name;
  Has batches;            // arrays of messages
  Has annotations;        // what a tool does to the world
  Has structured;         // results as JSON too, with a schema; titles
  Has faults_as_results;  // wrong arguments are a failure that the model sees, not one of the protocol
};

// Oldest first.
inline constexpr Version kVersions[] = {
    {"2024-11-05", Has::kNo, Has::kNo, Has::kNo, Has::kNo},
    {"2025-03-26", Has::kYes, Has::kYes, Has::kNo, Has::kNo},
    {"2025-06-18", Has::kNo, Has::kYes, Has::kYes, Has::kNo},
    {"2025-11-25", Has::kNo, Has::kYes, Has::kYes, Has::kYes},
};

// The client's if we speak it, else our newest: the client may leave then.
constexpr const Version& Negotiated(std::string_view asked) {
  for (const Version& version : kVersions) {
    if (version.name == asked) return version;
  }
  return kVersions[3];
}

}  // namespace sandglass::api::mcp

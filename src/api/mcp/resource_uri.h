// The names of resources: files of the project as file:// URIs, and steps of its history. Parsing is pure and takes any text from a
// client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sandglass::api::mcp {

struct FileResource {
  std::string path;  // absolute; any bytes but NUL
  friend bool operator==(const FileResource&, const FileResource&) = default;
};
struct StepResource {
  int64_t step;
  friend bool operator==(const StepResource&, const StepResource&) = default;
};
using Resource = std::variant<FileResource, StepResource>;

inline constexpr std::string_view kStepUri = "sandglass://steps/";

std::string UriOf(const Resource& resource);
// nullopt: it is none of these.
std::optional<Resource> ParseUri(std::string_view uri);

}  // namespace sandglass::api::mcp

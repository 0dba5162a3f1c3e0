#include "api/mcp/resource_uri.h"

#include <fmt/format.h>

#include <charconv>

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kFileUri = "file://";

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

std::string Encoded(std::string_view path) {
  std::string text;
  for (const char c : path) {
    if (IsPlain(c))
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '?' || c == '#' || c == '\0') return std::nullopt;
    if (c == '%') {
      const int high = i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? DigitOf(text[i + 2]) : -1;
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    bytes += c;
  }
  return bytes;
}

}  // namespace

std::string UriOf(const Resource& resource) {
  if (const auto* file = std::get_if<FileResource>(&resource))
    return std::string(kFileUri) + Encoded(file->path);
  return fmt::format("{}{}", kStepUri, std::get<StepResource>(resource).step);
}

std::optional<Resource> ParseUri(std::string_view uri) {
  if (uri.starts_with(kStepUri)) {
    const std::string_view number = uri.substr(kStepUri.size());
    int64_t step = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step);
    if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
    return StepResource{step};
  }
  if (!uri.starts_with(kFileUri)) return std::nullopt;
  auto path = Decoded(uri.substr(kFileUri.size()));
  if (!path || !path->starts_with('/')) return std::nullopt;
  return FileResource{std::move(*path)};
}

}  // namespace sandglass::api::mcp

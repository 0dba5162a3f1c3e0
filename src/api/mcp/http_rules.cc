#include "api/mcp/http_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kLoopbackNames[] = {"localhost", "127.0.0.1", "[::1]"};
constexpr std::string_view kSchemes[] = {"http://", "https://"};
constexpr size_t kMaxPortDigits = 5;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameText(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

bool IsPort(std::string_view text) {
  if (text.empty()) return true;
  text.remove_prefix(1);
  return text.size() <= kMaxPortDigits && !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

bool IsLoopbackHost(std::string_view host) {
  return std::ranges::any_of(kLoopbackNames, [&](std::string_view name) {
    if (!SameText(host.substr(0, name.size()), name)) return false;
    const std::string_view rest = host.substr(name.size());
    return (rest.empty() || rest.front() == ':') && IsPort(rest);
  });
}

bool IsLoopbackOrigin(std::string_view origin) {
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) {
    return SameText(origin.substr(0, scheme.size()), scheme) &&
           IsLoopbackHost(origin.substr(scheme.size()));
  });
}

bool IsSameSecret(std::string_view offered, std::string_view secret) {
  unsigned difference = offered.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char other = i < offered.size() ? offered[i] : '\0';
    difference |= static_cast<unsigned char>(secret[i] ^ other);
  }
  return difference == 0;
}

bool HasToken(const http::Request& request, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto given = request.Header("Authorization");
  if (!given || !SameText(given->substr(0, kScheme.size()), kScheme)) return false;
  return IsSameSecret(Trimmed(given->substr(kScheme.size())), token);
}

bool HasMediaType(std::string_view list, std::string_view type) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = list.substr(0, comma);
    const std::string_view name = Trimmed(item.substr(0, item.find(';')));
    if (SameText(name, type) || name == "*/*") return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string ToText(EventId id) { return fmt::format("{}-{}", id.stream, id.event); }

std::optional<EventId> ParseEventId(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto stream = ParseNumber(text.substr(0, dash));
  const auto event = ParseNumber(text.substr(dash + 1));
  if (!stream || !event) return std::nullopt;
  return EventId{*stream, *event};
}

}  // namespace sandglass::api::mcp

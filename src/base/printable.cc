#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/json.h"

namespace sandglass {
namespace {

// The bytes of the UTF-8 character at the start of `text`; 0: there is no valid one.
size_t CharacterBytes(std::string_view text) {
  for (size_t size = 1; size <= std::min<size_t>(4, text.size()); ++size) {
    if (IsValidUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

// C0, DEL, and C1 (U+0080 to U+009F), which some terminals obey too.
bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

std::string Escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  std::string out;
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return out;
}

// Calls each(character, is_plain) for every character; a byte that belongs to none is one that is
// not plain.
template <class Each>
void ForEachCharacter(std::string_view text, Each each) {
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(size, 1));
    each(character, size != 0 && !IsControl(character));
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::string PrintableName(std::string_view bytes) {
  bool all_plain = true;
  ForEachCharacter(bytes, [&](std::string_view, bool plain) { all_plain = all_plain && plain; });
  if (all_plain) return std::string(bytes);
  std::string out;
  ForEachCharacter(bytes, [&](std::string_view character, bool plain) {
    if (character == "\\")
      out += "\\\\";
    else
      out += plain ? std::string(character) : Escaped(character);
  });
  return out;
}

std::string PrintableText(std::string_view bytes) {
  std::string out;
  ForEachCharacter(bytes, [&](std::string_view character, bool plain) {
    const bool stays = plain || character == "\n" || character == "\t";
    out += stays ? std::string(character) : Escaped(character);
  });
  return out;
}

std::string PrintableSize(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // Not 1024: 1023.96 would be shown as 1024.0 of the smaller unit.
  for (; amount >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string PrintableTime(Instant at) {
  const std::time_t seconds = at.ns / 1'000'000'000;
  std::tm local{};
  std::array<char, 32> text{};
  if (::localtime_r(&seconds, &local) == nullptr) return "?";
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return {text.data(), size};
}

}  // namespace sandglass

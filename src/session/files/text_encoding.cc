#include "session/files/text_encoding.h"

#include <cstring>

#include "base/json.h"

namespace sandglass::session::files {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16LeMark = "\xFF\xFE";
constexpr std::string_view kUtf16BeMark = "\xFE\xFF";
constexpr std::string_view kUtf32LeMark{"\xFF\xFE\0\0", 4};

constexpr char32_t kReplacement = 0xFFFD;

bool IsHighHalf(char32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowHalf(char32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Of text that is known to be valid.
char32_t TakeCodePoint(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  const size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  constexpr uint8_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = first & kLeadBits[size];
  for (size_t i = 1; i < size; ++i) point = (point << 6) | (byte(at + i) & 0x3F);
  at += size;
  return point;
}

void AppendUtf8(std::string& out, char32_t point) {
  const auto put = [&](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | (point >> 6));
  } else if (point < 0x10000) {
    put(0xE0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3F));
  } else {
    put(0xF0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3F));
    put(0x80 | ((point >> 6) & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

void AppendUtf16(std::u16string& out, char32_t point) {
  if (point < 0x10000) {
    out.push_back(static_cast<char16_t>(point));
    return;
  }
  out.push_back(static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10)));
  out.push_back(static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF)));
}

char32_t TakeCodePoint(std::u16string_view units, size_t& at) {
  const char32_t first = units[at++];
  if (!IsHighHalf(first)) return IsLowHalf(first) ? kReplacement : first;
  if (at == units.size() || !IsLowHalf(units[at])) return kReplacement;
  return 0x10000 + ((first - 0xD800) << 10) + (units[at++] - 0xDC00);
}

}  // namespace

std::string_view EncodingName(Encoding encoding) {
  switch (encoding) {
    case Encoding::kUtf8:
      return "utf-8";
    case Encoding::kUtf8WithMark:
      return "utf-8 with a byte order mark";
    case Encoding::kUtf16Le:
      return "utf-16le";
    case Encoding::kUtf16Be:
      return "utf-16be";
    case Encoding::kBytes:
      return "latin-1";
    case Encoding::kBinary:
      return "binary";
  }
  return "";
}

Encoding DetectEncoding(std::string_view content) {
  // Before UTF-16, whose mark is the beginning of this one.
  if (content.starts_with(kUtf32LeMark)) return Encoding::kBinary;
  if (content.starts_with(kUtf16LeMark)) return Encoding::kUtf16Le;
  if (content.starts_with(kUtf16BeMark)) return Encoding::kUtf16Be;
  if (content.find('\0') != std::string_view::npos) return Encoding::kBinary;
  if (!IsValidUtf8(content)) return Encoding::kBytes;
  return content.starts_with(kUtf8Mark) ? Encoding::kUtf8WithMark : Encoding::kUtf8;
}

size_t MarkSize(Encoding encoding) {
  switch (encoding) {
    case Encoding::kUtf8WithMark:
      return kUtf8Mark.size();
    case Encoding::kUtf16Le:
    case Encoding::kUtf16Be:
      return kUtf16LeMark.size();
    case Encoding::kUtf8:
    case Encoding::kBytes:
    case Encoding::kBinary:
      return 0;
  }
  return 0;
}

bool LooksBinary(std::string_view beginning) {
  constexpr size_t kLookAt = 64 << 10;
  const std::string_view looked = beginning.substr(0, kLookAt);
  if (looked.starts_with(kUtf32LeMark)) return true;
  if (looked.starts_with(kUtf16LeMark) || looked.starts_with(kUtf16BeMark)) return false;
  return looked.find('\0') != std::string_view::npos;
}

std::u16string DecodeUtf16(std::string_view bytes, Encoding encoding) {
  const size_t high = encoding == Encoding::kUtf16Be ? 0 : 1;
  std::u16string units(bytes.size() / 2, u'\0');
  for (size_t i = 0; i < units.size(); ++i) {
    const auto upper = static_cast<uint8_t>(bytes[2 * i + high]);
    const auto lower = static_cast<uint8_t>(bytes[2 * i + 1 - high]);
    units[i] = static_cast<char16_t>(upper << 8 | lower);
  }
  return units;
}

std::string EncodeUtf16(std::u16string_view units, Encoding encoding) {
  const size_t high = encoding == Encoding::kUtf16Be ? 0 : 1;
  std::string bytes(units.size() * 2, '\0');
  for (size_t i = 0; i < units.size(); ++i) {
    bytes[2 * i + high] = static_cast<char>(units[i] >> 8);
    bytes[2 * i + 1 - high] = static_cast<char>(units[i] & 0xFF);
  }
  return bytes;
}

std::optional<std::u16string> Utf8ToUtf16(std::string_view text) {
  if (!IsValidUtf8(text)) return std::nullopt;
  std::u16string units;
  units.reserve(text.size());
  for (size_t at = 0; at < text.size();) AppendUtf16(units, TakeCodePoint(text, at));
  return units;
}

std::string Utf16ToUtf8(std::u16string_view units) {
  std::string text;
  text.reserve(units.size());
  for (size_t at = 0; at < units.size();) AppendUtf8(text, TakeCodePoint(units, at));
  return text;
}

std::optional<std::string> Utf8ToLatin1(std::string_view text) {
  if (!IsValidUtf8(text)) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t point = TakeCodePoint(text, at);
    if (point > 0xFF) return std::nullopt;
    bytes.push_back(static_cast<char>(point));
  }
  return bytes;
}

}  // namespace sandglass::session::files

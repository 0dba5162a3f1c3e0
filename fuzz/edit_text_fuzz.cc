// Edits of text files. Input: file, NUL NUL, old text, NUL NUL, new text; a first byte that is odd asks for all places. What an edit
// leaves must be what a plain replacement would, and the edit must be reversible where the texts say so.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "session/files/edit_text.h"
#include "session/files/text_encoding.h"

namespace files = sandglass::session::files;

namespace {

std::string_view Take(std::string_view& rest) {
  constexpr std::string_view kBetween{"\0\0", 2};
  const size_t end = rest.find(kBetween);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kBetween.size());
  return part;
}

std::string ReplaceAll(std::string_view content, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  for (size_t found; (found = content.find(from, at)) != std::string_view::npos;
       at = found + from.size())
    out.append(content.substr(at, found - at)).append(to);
  return out.append(content.substr(at));
}

// What one encoding says must survive the way into another and back.
void CheckEncodings(std::string_view content) {
  const files::Encoding encoding = files::DetectEncoding(content);
  CHECK(!files::EncodingName(encoding).empty());
  CHECK(files::LooksBinary(content) == (encoding == files::Encoding::kBinary));
  if (const auto units = files::Utf8ToUtf16(content)) CHECK(files::Utf16ToUtf8(*units) == content);
  if (const auto latin1 = files::Utf8ToLatin1(content)) CHECK(latin1->size() <= content.size());
  const std::string_view pairs = content.substr(0, content.size() & ~size_t{1});
  for (const auto order : {files::Encoding::kUtf16Le, files::Encoding::kUtf16Be}) {
    const std::u16string units = files::DecodeUtf16(pairs, order);
    CHECK(files::EncodeUtf16(units, order) == pairs);
    CHECK(files::Utf8ToUtf16(files::Utf16ToUtf8(units)).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > (64 << 10)) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto occurrences =
      data[0] % 2 == 1 ? files::Occurrences::kAll : files::Occurrences::kExactlyOne;
  // The mark of UTF-16 is followed by NULs, so such a file comes last.
  std::string_view content, old_text, new_text;
  if (data[0] % 4 >= 2) {
    old_text = Take(rest), new_text = Take(rest), content = rest;
  } else {
    content = Take(rest), old_text = Take(rest), new_text = rest;
  }
  CheckEncodings(content);
  const auto edited = files::EditText(content, {old_text, new_text, occurrences});
  if (!edited.ok()) return 0;
  CHECK(edited->replaced > 0 && edited->first_line > 0);
  CHECK(edited->content.substr(0, files::MarkSize(edited->encoding)) ==
        content.substr(0, files::MarkSize(edited->encoding)));
  const bool plain = content.find('\r') == std::string_view::npos &&
                     old_text.find('\r') == std::string_view::npos &&
                     new_text.find('\r') == std::string_view::npos;
  if (plain && edited->encoding == files::Encoding::kUtf8)
    CHECK(edited->content == ReplaceAll(content, old_text, new_text));
  return 0;
}

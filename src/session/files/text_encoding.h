// How the bytes of a text file are to be read. Only enough to edit a file without changing anything about it but the edited place:
// a mark at its beginning decides, then whether it is valid UTF-8, and what is left is taken byte for byte (Latin-1, or anything
// else of which one byte is one character). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandglass::session::files {

enum class Encoding : uint8_t {
  kUtf8,
  kUtf8WithMark,
  kUtf16Le,  // these two only with a mark: nothing else tells them from binary data
  kUtf16Be,
  kBytes,   // not UTF-8, and no NUL in it
  kBinary,  // a NUL where no text has one
};
std::string_view EncodingName(Encoding encoding);

Encoding DetectEncoding(std::string_view content);
// The size of the mark that stands before the text.
size_t MarkSize(Encoding encoding);

// A NUL within what people look at of a file at most: enough to tell binary files, and never a whole large one.
bool LooksBinary(std::string_view beginning);

// Of units, either way. An odd byte at the end is not part of the text. A half of a surrogate pair stays as it is.
std::u16string DecodeUtf16(std::string_view bytes, Encoding encoding);
std::string EncodeUtf16(std::u16string_view units, Encoding encoding);

// nullopt: not valid UTF-8.
std::optional<std::u16string> Utf8ToUtf16(std::string_view text);
// Halves of pairs become U+FFFD.
std::string Utf16ToUtf8(std::u16string_view units);
// nullopt: not valid UTF-8, or a character beyond U+00FF.
std::optional<std::string> Utf8ToLatin1(std::string_view text);

}  // namespace sandglass::session::files

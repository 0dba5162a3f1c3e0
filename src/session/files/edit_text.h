// EditText: one piece of a text file replaced by another, and nothing else about the file changed.
//
// Whoever edits sees a file as lines with "\n" and UTF-8, whatever it is on disk. So a line break in what they give matches "\n" and
// "\r\n" alike, and a line break that they put in is written as those around it are: as the one that stood in its place, else as
// the next one of the file. Encoding, mark, final line break and every byte outside of the replaced places stay. A carriage return
// alone is a character like any other. Pure; any thread; time is linear but for the search for what was probably meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "session/files/text_encoding.h"

namespace sandglass::session::files {

enum class Occurrences : uint8_t { kExactlyOne, kAll };

struct TextEdit {
  std::string_view old_text;  // UTF-8, not empty
  std::string_view new_text;
  Occurrences occurrences = Occurrences::kExactlyOne;
};

struct EditedText {
  std::string content;  // the whole file
  size_t replaced = 0;  // how many places
  size_t first_line = 0;
  Encoding encoding = Encoding::kUtf8;
};

// kNotFound: the old text does not occur; the message names the nearest line.
// kConflict: it occurs more than once where once was asked for; the message has the count and the lines.
// kInvalid: the old text is empty or is the new one, either is not UTF-8, the file is binary, or its encoding has no way to write the
// new text.
Result<EditedText> EditText(std::string_view content, const TextEdit& edit);

}  // namespace sandglass::session::files

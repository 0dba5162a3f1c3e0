#include "session/files/edit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kMostLinesTold = 10;
constexpr size_t kMostCharactersTold = 120;

// The text as it is compared, in which every line break is one unit, and what it was on disk.
template <class Char>
struct Folded {
  using Text = std::basic_string<Char>;
  using View = std::basic_string_view<Char>;
  Text text;
  std::vector<size_t> crlf;  // positions in `text` of line breaks that are two units on disk

  static Folded Of(View raw) {
    Folded folded;
    folded.text.reserve(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == Char('\r') && i + 1 < raw.size() && raw[i + 1] == Char('\n')) {
        folded.crlf.push_back(folded.text.size());
        ++i;
      }
      folded.text.push_back(raw[i]);
    }
    return folded;
  }

  bool IsCrlf(size_t at) const { return std::ranges::binary_search(crlf, at); }

  // What stands from `begin` to `end`, as it is on disk.
  void AppendRaw(Text& out, size_t begin, size_t end) const {
    auto next = std::ranges::lower_bound(crlf, begin);
    for (size_t at = begin; at < end;) {
      const size_t stop = next != crlf.end() && *next < end ? *next : end;
      out.append(text, at, stop - at);
      at = stop;
      if (stop == end) break;
      out.push_back(Char('\r'));
      out.push_back(Char('\n'));
      ++next, ++at;
    }
  }
};

template <class Char>
size_t LineAt(const std::basic_string<Char>& text, size_t at) {
  return 1 + static_cast<size_t>(
                 std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), Char('\n')));
}

// For each beginning of `wanted`, the longest one that is also its end (Knuth, Morris and Pratt).
template <class Char>
std::vector<size_t> Borders(const std::basic_string<Char>& wanted) {
  std::vector<size_t> border(wanted.size() + 1, 0);
  for (size_t i = 1, length = 0; i < wanted.size(); ++i) {
    while (length > 0 && wanted[i] != wanted[length]) length = border[length];
    if (wanted[i] == wanted[length]) ++length;
    border[i + 1] = length;
  }
  return border;
}

// Also those that overlap: of these nobody can tell which one is meant. Linear, whatever the texts repeat.
template <class Char>
std::vector<size_t> AllPlaces(const std::basic_string<Char>& text,
                              const std::basic_string<Char>& wanted) {
  const std::vector<size_t> border = Borders(wanted);
  std::vector<size_t> places;
  for (size_t i = 0, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != wanted[length]) length = border[length];
    if (text[i] == wanted[length]) ++length;
    if (length < wanted.size()) continue;
    places.push_back(i + 1 - length);
    length = border[length];
  }
  return places;
}

// From the left, each beginning where the one before has ended at the earliest.
std::vector<size_t> WithoutOverlaps(const std::vector<size_t>& places, size_t size) {
  std::vector<size_t> apart;
  for (const size_t at : places) {
    if (apart.empty() || at >= apart.back() + size) apart.push_back(at);
  }
  return apart;
}

template <class Char>
class Replacement {
 public:
  using Text = std::basic_string<Char>;
  Replacement(const Folded<Char>& file, const Text& old_text, const Text& new_text)
      : file_(file), old_(old_text), new_(new_text) {}

  // `places` in order, apart from each other.
  Text Apply(const std::vector<size_t>& places) {
    Text out;
    size_t done = 0;
    for (const size_t at : places) {
      file_.AppendRaw(out, done, at);
      AppendNew(out, at);
      done = at + old_.size();
    }
    file_.AppendRaw(out, done, file_.text.size());
    return out;
  }

 private:
  // Its n-th line break is as the n-th one that it replaces; further ones are as the last of these, or as those around.
  void AppendNew(Text& out, size_t at) {
    const auto end = static_cast<ptrdiff_t>(at + old_.size());
    auto replaced = static_cast<ptrdiff_t>(at);
    bool crlf = IsCrlfNear(at);
    for (const Char c : new_) {
      if (c == Char('\n')) {
        const auto begin = file_.text.begin();
        const auto brk = std::find(begin + replaced, begin + end, Char('\n')) - begin;
        if (brk < end) crlf = file_.IsCrlf(static_cast<size_t>(brk));
        replaced = std::min(brk + 1, end);
        if (crlf) out.push_back(Char('\r'));
      }
      out.push_back(c);
    }
  }

  // Whether line breaks near a place are two units: the next one tells, else the last of all. Places come in order, so the whole
  // text is looked through once.
  bool IsCrlfNear(size_t at) {
    if (next_break_ != Text::npos && next_break_ < at)
      next_break_ = file_.text.find(Char('\n'), at);
    const size_t brk = next_break_ != Text::npos ? next_break_ : last_break_;
    return brk != Text::npos && file_.IsCrlf(brk);
  }

  const Folded<Char>& file_;
  const Text& old_;
  const Text& new_;
  size_t next_break_ = file_.text.find(Char('\n'));
  const size_t last_break_ = file_.text.rfind(Char('\n'));
};

// --- What was probably meant

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
}

std::string_view FirstFilledLine(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (const std::string_view line = Trimmed(text.substr(0, end)); !line.empty()) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

// How much of two lines is the same at their ends, of twice the longer one. Coarse, but linear.
size_t Likeness(std::string_view a, std::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t front = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  size_t back = 0;
  while (back < shorter - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front + back;
}

struct NearestLine {
  size_t number = 0;  // 0: none is near
  std::string_view text;
  size_t likeness = 0;
};

NearestLine FindNearest(std::string_view content, std::string_view wanted) {
  NearestLine nearest;
  size_t number = 1;
  for (size_t begin = 0; begin < content.size(); ++number) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = Trimmed(content.substr(begin, end - begin));
    const size_t likeness = Likeness(line, wanted);
    const bool near = 2 * likeness >= std::max(line.size(), wanted.size());
    if (near && likeness > nearest.likeness) nearest = {number, line, likeness};
    begin = end + 1;
  }
  return nearest;
}

// Cut where a character begins.
std::string Shown(std::string_view line) {
  if (line.size() <= kMostCharactersTold) return std::string(line);
  size_t end = kMostCharactersTold;
  while (end > 0 && (static_cast<uint8_t>(line[end]) & 0xC0) == 0x80) --end;
  return std::string(line.substr(0, end)) + "...";
}

Error NotFound(std::string_view content, std::string_view old_text) {
  const std::string_view wanted = FirstFilledLine(old_text);
  const NearestLine nearest = wanted.empty() ? NearestLine() : FindNearest(content, wanted);
  std::string message = "the text to replace does not occur in the file (0 places)";
  if (nearest.number == 0) return Error(Code::kNotFound, message + "; read the file again");
  if (nearest.text != wanted)
    return Error(Code::kNotFound, fmt::format("{}; the nearest is line {}: {}", message,
                                              nearest.number, Shown(nearest.text)));
  return Error(Code::kNotFound,
               fmt::format("{}; line {} has its first line, so white space or a later line differs",
                           message, nearest.number));
}

template <class Char>
Error Ambiguous(const std::basic_string<Char>& text, const std::vector<size_t>& places) {
  std::string lines;
  for (size_t i = 0; i < std::min(places.size(), kMostLinesTold); ++i)
    lines += fmt::format("{}{}", i == 0 ? "" : ", ", LineAt(text, places[i]));
  if (places.size() > kMostLinesTold) lines += ", ...";
  return Error(Code::kConflict,
               fmt::format("the text to replace occurs in {} places, beginning in lines {}; give "
                           "more of what is around it, or replace all",
                           places.size(), lines));
}

// --- One edit, in the units of the file

template <class Char>
struct Units {
  std::basic_string<Char> raw, old_text, new_text;
};

std::string AsUtf8(const std::string& text) { return text; }
std::string AsUtf8(const std::u16string& text) { return Utf16ToUtf8(text); }

template <class Char>
struct Edited {
  std::basic_string<Char> raw;
  size_t replaced, first_line;
};

template <class Char>
Result<Edited<Char>> EditUnits(const Units<Char>& units, Occurrences occurrences) {
  const auto file = Folded<Char>::Of(units.raw);
  const auto old_text = Folded<Char>::Of(units.old_text).text;
  const auto new_text = Folded<Char>::Of(units.new_text).text;
  if (old_text == new_text)
    return Error(Code::kInvalid, "the new text is the old one: there is nothing to change");
  std::vector<size_t> places = AllPlaces(file.text, old_text);
  if (places.empty()) return NotFound(AsUtf8(file.text), AsUtf8(old_text));
  if (occurrences == Occurrences::kExactlyOne && places.size() > 1)
    return Ambiguous(file.text, places);
  places = WithoutOverlaps(places, old_text.size());
  return Edited<Char>{Replacement<Char>(file, old_text, new_text).Apply(places), places.size(),
                      LineAt(file.text, places.front())};
}

Result<EditedText> EditBytes(std::string_view mark, const Units<char>& units,
                             Occurrences occurrences, Encoding encoding) {
  TRY_ASSIGN(Edited<char> edited, EditUnits(units, occurrences));
  return EditedText{std::string(mark) + edited.raw, edited.replaced, edited.first_line, encoding};
}

Result<EditedText> EditUtf16(std::string_view mark, std::string_view text, const TextEdit& edit,
                             Encoding encoding) {
  const std::string_view odd = text.substr(text.size() - text.size() % 2);
  const auto old_text = Utf8ToUtf16(edit.old_text), new_text = Utf8ToUtf16(edit.new_text);
  TRY_ASSIGN(const Edited<char16_t> edited,
             EditUnits(Units<char16_t>{DecodeUtf16(text, encoding), *old_text, *new_text},
                       edit.occurrences));
  return EditedText{std::string(mark).append(EncodeUtf16(edited.raw, encoding)).append(odd),
                    edited.replaced, edited.first_line, encoding};
}

bool IsAscii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; });
}

// Latin-1, but a file that holds the old text as UTF-8 is mostly that, whatever else is in it.
Result<EditedText> EditUnknown(std::string_view content, const TextEdit& edit) {
  const bool as_utf8 =
      !IsAscii(edit.old_text) && content.find(edit.old_text) != std::string_view::npos;
  Units<char> units{std::string(content), std::string(edit.old_text), std::string(edit.new_text)};
  if (!as_utf8) {
    auto old_text = Utf8ToLatin1(edit.old_text), new_text = Utf8ToLatin1(edit.new_text);
    if (!new_text)
      return Error(Code::kInvalid,
                   "the file is not UTF-8 but Latin-1 or the like, which cannot write the new "
                   "text; convert the file first");
    if (!old_text) return NotFound(content, edit.old_text);
    units.old_text = std::move(*old_text);
    units.new_text = std::move(*new_text);
  }
  return EditBytes("", units, edit.occurrences, Encoding::kBytes);
}

}  // namespace

Result<EditedText> EditText(std::string_view content, const TextEdit& edit) {
  if (edit.old_text.empty())
    return Error(Code::kInvalid, "the text to replace is empty; write the whole file instead");
  if (!IsValidUtf8(edit.old_text) || !IsValidUtf8(edit.new_text))
    return Error(Code::kInvalid, "the texts of an edit must be UTF-8");
  const Encoding encoding = DetectEncoding(content);
  const std::string_view mark = content.substr(0, MarkSize(encoding));
  const std::string_view text = content.substr(mark.size());
  switch (encoding) {
    case Encoding::kUtf8:
    case Encoding::kUtf8WithMark:
      return EditBytes(mark,
                       {std::string(text), std::string(edit.old_text), std::string(edit.new_text)},
                       edit.occurrences, encoding);
    case Encoding::kUtf16Le:
    case Encoding::kUtf16Be:
      return EditUtf16(mark, text, edit, encoding);
    case Encoding::kBytes:
      return EditUnknown(content, edit);
    case Encoding::kBinary:
      return Error(Code::kInvalid, "the file is binary; an edit needs text");
  }
  return Error(Code::kInvalid, "unknown encoding");
}

}  // namespace sandglass::session::files

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.h"
#include "cli/config_splice.h"

namespace sandglass::cli {
namespace {

constexpr std::string_view kBlanks = " \t";

// A section of the file: from its header, up to the end of its last value. Comments behind that are about what follows. The first one
// has no header.
struct Section {
  size_t begin = 0, end = 0;
  std::vector<std::string> name;  // its parts; none: what is before the first header
  std::vector<std::string> keys;  // the first part of each
};

// Goes through the text by lines and knows what is inside of a value. No recursion.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Result<std::vector<Section>> Sections() {
    sections_.emplace_back();
    while (at_ < text_.size()) {
      TRY(TakeLine());
    }
    return std::move(sections_);
  }

 private:
  Error Wrong(std::string_view what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n');
    return Error(Code::kInvalid, fmt::format("line {}: {}", line, what));
  }
  bool Is(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
  void SkipRest() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  Status TakeLine() {
    const size_t line = at_;
    SkipBlanks();
    if (Is("\r")) ++at_;
    if (at_ == text_.size() || Is("\n") || Is("#")) return EndLine();
    if (Is("[")) return TakeHeader(line);
    TRY_ASSIGN(const std::vector<std::string> key, TakeName('='));
    sections_.back().keys.push_back(key.front());
    TRY(TakeValue());
    return EndContent();
  }

  // Ends a line that belongs to its section.
  Status EndContent() {
    TRY(EndLine());
    sections_.back().end = std::min(at_, text_.size());
    return Ok();
  }

  Status EndLine() {
    SkipBlanks();
    if (Is("#")) SkipRest();
    if (Is("\r")) ++at_;
    if (at_ < text_.size() && text_[at_] != '\n') return Wrong("the line should end here");
    ++at_;
    return Ok();
  }

  Status TakeHeader(size_t line) {
    const bool is_list = Is("[[");
    at_ += is_list ? 2 : 1;
    Section section{.begin = line};
    TRY_ASSIGN(section.name, TakeName(']'));
    if (is_list && !Is("]")) return Wrong("\"]]\" is missing");
    if (is_list) ++at_;
    sections_.push_back(std::move(section));
    return EndContent();
  }

  // Parts with dots between them, up to `end`, which is taken.
  Result<std::vector<std::string>> TakeName(char end) {
    std::vector<std::string> parts;
    while (true) {
      SkipBlanks();
      TRY_ASSIGN(std::string part, TakePart());
      parts.push_back(std::move(part));
      SkipBlanks();
      if (at_ == text_.size() || (text_[at_] != '.' && text_[at_] != end))
        return Wrong(fmt::format("'{}' is missing", end));
      if (text_[at_++] == end) return parts;
    }
  }

  Result<std::string> TakePart() {
    const size_t begin = at_;
    if (Is("\"") || Is("'")) {
      TRY(SkipString());
      const std::string_view inside = text_.substr(begin + 1, at_ - begin - 2);
      if (text_[begin] == '\'' || inside.find('\\') == inside.npos) return std::string(inside);
      return Wrong("a name with escapes; change the file by hand");
    }
    const auto is_bare = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    };
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (at_ == begin) return Wrong("a name should stand here");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Up to the end of its line, or of the bracket that it opened.
  Status TakeValue() {
    SkipBlanks();
    const size_t begin = at_;
    size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        TRY(SkipString());
        continue;
      }
      if (depth == 0 && (c == '\n' || c == '#' || c == '\r')) break;
      if (c == '#') SkipRest();
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') {
        if (depth == 0) return Wrong("a bracket closes what nobody opened");
        --depth;
      }
      if (at_ < text_.size()) ++at_;
    }
    if (depth > 0) return Wrong("a bracket is not closed");
    if (at_ == begin) return Wrong("a value is missing");
    return Ok();
  }

  Status SkipString() {
    const char quote = text_[at_];
    const std::string three(3, quote);
    const bool is_long = Is(three);
    const std::string_view end =
        is_long ? std::string_view(three) : std::string_view(three).substr(2);
    for (at_ += end.size(); at_ < text_.size() && !Is(end); ++at_) {
      if (!is_long && text_[at_] == '\n') return Wrong("a text is not closed");
      if (quote == '"' && text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) return Wrong("a text is not closed");
    at_ += end.size();
    // Up to two quotes may stand before the three that end it.
    for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
    return Ok();
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::vector<Section> sections_;
};

bool IsOf(const Section& section, const EntryName& entry) {
  return section.name.size() >= 2 && section.name[0] == entry.table &&
         section.name[1] == entry.name;
}

// The entry is a section, or it is not there; nothing that only looks different.
Status CheckPlain(const std::vector<Section>& sections, const EntryName& entry) {
  for (const Section& section : sections) {
    const bool in_root = section.name.empty();
    const bool in_table = section.name.size() == 1 && section.name[0] == entry.table;
    const std::string_view key = in_root ? entry.table : entry.name;
    if ((in_root || in_table) && std::ranges::find(section.keys, key) != section.keys.end())
      return Error(Code::kInvalid,
                   fmt::format("\"{}\" is written in another way there; change the file by hand",
                               in_root ? entry.table : entry.name));
  }
  return Ok();
}

// The text, as it is divided by an entry.
struct Split {
  std::string others;
  std::string entry;            // its sections, with what is between two of them
  std::optional<size_t> place;  // in the others, where the first of the sections was
};

Split SplitAt(std::string_view text, const std::vector<Section>& sections, const EntryName& entry) {
  Split split;
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t begin = sections[i].begin;
    const bool is_last = i + 1 == sections.size();
    const size_t next = is_last ? text.size() : sections[i + 1].begin;
    size_t ours_end = begin;
    if (IsOf(sections[i], entry)) {
      if (!split.place) split.place = split.others.size();
      ours_end = !is_last && IsOf(sections[i + 1], entry) ? next : sections[i].end;
    }
    split.entry += text.substr(begin, ours_end - begin);
    split.others += text.substr(ours_end, next - ours_end);
  }
  return split;
}

Result<Split> Scan(std::string_view text, const EntryName& entry) {
  if (!IsValidUtf8(text) || text.find('\0') != text.npos)
    return Error(Code::kInvalid, "it is no text");
  TRY_ASSIGN(const std::vector<Section> sections, Scanner(text).Sections());
  TRY(CheckPlain(sections, entry));
  return SplitAt(text, sections, entry);
}

}  // namespace

Result<std::string> SetTomlEntry(std::string_view text, const EntryName& entry,
                                 std::string_view body) {
  TRY_ASSIGN(Split split, Scan(text, entry));
  std::string& out = split.others;
  const std::string block = fmt::format("[{}.{}]\n{}", entry.table, entry.name, body);
  if (split.place) return out.insert(*split.place, block);
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out + (out.empty() ? "" : "\n") + block;
}

Result<std::string> RemoveTomlEntry(std::string_view text, const EntryName& entry) {
  TRY_ASSIGN(Split split, Scan(text, entry));
  return std::move(split.others);
}

Result<std::string> FindTomlEntry(std::string_view text, const EntryName& entry) {
  TRY_ASSIGN(Split split, Scan(text, entry));
  return std::move(split.entry);
}

}  // namespace sandglass::cli

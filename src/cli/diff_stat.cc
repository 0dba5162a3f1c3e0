#include "cli/diff_stat.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/printable.h"
#include "undo/text_diff.h"

namespace sandglass::cli {
namespace {

// What the diff says about one path. A path without a part in it has no text that changed: a folder, an empty file, a mode.
struct Part {
  size_t added = 0, removed = 0;
  enum class Content : uint8_t { kText, kNotCompared } content = Content::kText;
};

struct ReadDiff {
  std::map<std::string, Part, std::less<>>
      parts;                           // by the names in the header, as the diff spells them
  std::set<std::string_view> remarks;  // on paths that are too large: "# path: why"
  size_t left_out = 0;                 // how many paths at the end are not compared
};

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

constexpr std::string_view kHeader = "diff --git ";

// "# and 5 more paths"
size_t LeftOut(std::string_view line) {
  constexpr std::string_view kBefore = "# and ", kBehind = " more paths";
  size_t count = 0;
  if (line.starts_with(kBefore) && line.ends_with(kBehind))
    std::from_chars(line.data() + kBefore.size(), line.data() + line.size(), count);
  return count;
}

// Lines of content have a mark in front, so nothing in a file looks like a header or a remark. Behind the header, "---" and "+++" name
// the file, and only behind "@@" they are content.
ReadDiff Read(std::string_view diff) {
  ReadDiff read;
  Part* part = nullptr;
  bool in_hunks = false;
  while (!diff.empty()) {
    const std::string_view line = TakeLine(diff);
    if (line.starts_with(kHeader)) {
      part = &read.parts[std::string(line.substr(kHeader.size()))];
      in_hunks = false;
    } else if (line.starts_with("# ")) {
      read.remarks.insert(line);
      read.left_out = diff.empty() ? LeftOut(line) : 0;
    } else if (part == nullptr) {
      continue;
    } else if (line.starts_with("@@ ")) {
      in_hunks = true;
    } else if (!in_hunks && line.starts_with("Binary files ")) {
      part->content = Part::Content::kNotCompared;
    } else if (in_hunks && !line.empty()) {
      part->added += line.front() == '+' ? 1 : 0;
      part->removed += line.front() == '-' ? 1 : 0;
    }
  }
  return read;
}

// The header puts a name with a space in quotes where no lines of content follow.
std::string QuotedAnyway(std::string_view path) {
  const std::string quoted = undo::QuotePath(path);
  return quoted.starts_with('"') ? quoted : fmt::format("\"{}\"", quoted);
}

Part PartOf(const undo::Change& change, const ReadDiff& diff) {
  const bool renamed = change.kind == undo::ChangeKind::kRenamed;
  const std::string from = "a/" + (renamed ? change.old_path : change.path);
  const std::string to = "b/" + change.path;
  for (const auto& quote : {undo::QuotePath, QuotedAnyway}) {
    for (const auto& other : {undo::QuotePath, QuotedAnyway}) {
      const auto found = diff.parts.find(fmt::format("{} {}", quote(from), other(to)));
      if (found != diff.parts.end()) return found->second;
    }
  }
  const std::string remark = fmt::format("# {}: ", change.path);
  const auto next = diff.remarks.lower_bound(remark);
  const bool too_large = next != diff.remarks.end() && next->starts_with(remark);
  return {.content = too_large ? Part::Content::kNotCompared : Part::Content::kText};
}

std::string NameOf(const undo::Change& change) {
  std::string path = change.path.empty() ? "(the project folder)" : PrintableName(change.path);
  if (change.kind != undo::ChangeKind::kRenamed) return path;
  return fmt::format("{} => {}", PrintableName(change.old_path), path);
}

// Characters, not bytes.
size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

// Of a long name the end tells most.
std::string Shortened(std::string name, size_t width) {
  constexpr std::string_view kDots = "...";
  if (WidthOf(name) <= width) return name;
  size_t at = 0;
  for (size_t left = WidthOf(name); left > width - kDots.size(); --left) {
    do ++at;
    while (at < name.size() && (static_cast<uint8_t>(name[at]) & 0xc0) == 0x80);
  }
  return fmt::format("{}{}", kDots, name.substr(at));
}

struct Row {
  std::string name;
  Part part;
  uint64_t old_size = 0, new_size = 0;
};

std::vector<Row> RowsOf(const std::vector<undo::Change>& changes, std::string_view diff) {
  const ReadDiff read = Read(diff);
  const size_t compared = changes.size() - std::min(read.left_out, changes.size());
  std::vector<Row> rows;
  for (const undo::Change& change : changes) {
    Row row{NameOf(change), PartOf(change, read)};
    if (rows.size() >= compared) row.part.content = Part::Content::kNotCompared;
    row.old_size = change.kind == undo::ChangeKind::kCreated ? 0 : change.old_size;
    row.new_size = change.kind == undo::ChangeKind::kDeleted ? 0 : change.new_size;
    rows.push_back(std::move(row));
  }
  return rows;
}

// How the columns are shared.
struct Layout {
  size_t name = 0, number = 1, graph = 0;
  size_t most = 0;  // changed lines of one path
};

Layout LayoutOf(const std::vector<Row>& rows, size_t columns) {
  constexpr size_t kFixed = 5;  // " name | 12 ++"
  Layout layout;
  for (const Row& row : rows) {
    layout.name = std::max(layout.name, WidthOf(row.name));
    layout.most = std::max(layout.most, row.part.added + row.part.removed);
    if (row.part.content == Part::Content::kNotCompared) layout.number = 3;  // "Bin"
  }
  layout.number = std::max(layout.number, fmt::format("{}", layout.most).size());
  const size_t room = columns - std::min(columns, kFixed + layout.number);
  layout.name = std::min(layout.name, std::max<size_t>(room * 2 / 3, 10));
  layout.graph = std::max<size_t>(room - std::min(room, layout.name), 10);
  return layout;
}

// At least one mark for any change.
size_t Scaled(size_t lines, const Layout& layout) {
  if (layout.most <= layout.graph || lines == 0) return lines;
  return std::max<size_t>(lines * layout.graph / layout.most, 1);
}

std::string Line(const Row& row, const Layout& layout) {
  const std::string name = Shortened(row.name, layout.name);
  const std::string start =
      fmt::format(" {}{} | ", name, std::string(layout.name - WidthOf(name), ' '));
  if (row.part.content == Part::Content::kNotCompared)
    return start +
           fmt::format("{:>{}} {} -> {} bytes\n", "Bin", layout.number, row.old_size, row.new_size);
  const size_t lines = row.part.added + row.part.removed;
  const std::string marks = std::string(Scaled(row.part.added, layout), '+') +
                            std::string(Scaled(row.part.removed, layout), '-');
  return start + fmt::format("{:>{}}{}{}\n", lines, layout.number, marks.empty() ? "" : " ", marks);
}

std::string TotalLine(const std::vector<Row>& rows) {
  Part total;
  for (const Row& row : rows) {
    total.added += row.part.added;
    total.removed += row.part.removed;
  }
  const auto counted = [](size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  std::string out = fmt::format(" {} changed", counted(rows.size(), "path"));
  if (total.added != 0) out += fmt::format(", {}(+)", counted(total.added, "insertion"));
  if (total.removed != 0) out += fmt::format(", {}(-)", counted(total.removed, "deletion"));
  return out + '\n';
}

}  // namespace

std::string DiffStat(const std::vector<undo::Change>& changes, std::string_view diff,
                     size_t columns) {
  const std::vector<Row> rows = RowsOf(changes, diff);
  const Layout layout = LayoutOf(rows, columns);
  std::string out;
  for (const Row& row : rows) out += Line(row, layout);
  return out + TotalLine(rows);
}

}  // namespace sandglass::cli

#include "undo/text_diff.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace sandglass::undo {
namespace {

// ---- Lines ----

// Lines keep their newline, so that "a" without one at the end of a file differs from "a" with one.
class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  std::string_view Next() {
    const size_t size = std::min(rest_.find('\n'), rest_.size() - 1) + 1;
    const std::string_view line = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return line;
  }
  void Skip(size_t lines) {
    for (; lines > 0; --lines) Next();
  }

 private:
  std::string_view rest_;
};

size_t CountLines(std::string_view text) {
  const auto newlines = static_cast<size_t>(std::ranges::count(text, '\n'));
  return newlines + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

// A run of lines that the other side does not have. Either count may be 0, not both.
struct Edit {
  size_t before_start;
  size_t before_count;
  size_t after_start;
  size_t after_count;
};

// Bytes of whole lines that both texts start with.
size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto size = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (size == a.size() && size == b.size()) return size;
  return size == 0 ? 0 : a.rfind('\n', size - 1) + 1;  // npos + 1 is 0
}

bool IsLineStart(std::string_view text, size_t pos) { return pos == 0 || text[pos - 1] == '\n'; }

// Bytes of whole lines that both texts end with.
size_t CommonSuffix(std::string_view a, std::string_view b) {
  const auto mismatch = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const auto size = static_cast<size_t>(mismatch.first - a.rbegin());
  if (IsLineStart(a, a.size() - size) && IsLineStart(b, b.size() - size)) return size;
  const size_t newline = a.find('\n', a.size() - size);
  return newline == std::string_view::npos ? 0 : a.size() - newline - 1;
}

// ---- The search ----

// One side of the search: its lines as numbers, equal where the lines are equal.
struct Side {
  std::vector<uint32_t> ids;
  std::vector<uint8_t> changed;  // one per line; set where the other side does not have it
};

// Every step of the search is a point (x, y): x lines of the one side and y of the other have been
// dealt with.
struct Point {
  int64_t x;
  int64_t y;
};
struct Box {
  Point low;
  Point high;
};

constexpr int64_t kUnreachable = INT64_MIN / 2;

// How far the search has come on each diagonal x - y, counted from the diagonal it started on.
class Frontier {
 public:
  explicit Frontier(int64_t max_depth) : center_(max_depth + 1), reach_(2 * max_depth + 3) {}

  void Restart(int64_t diagonal, int64_t x) {
    origin_ = diagonal;
    depth_ = 0;
    At(diagonal) = x;
  }
  // Opens one more diagonal on either side; the ones beyond count as never reached.
  void Deepen() {
    ++depth_;
    At(origin_ - depth_) = At(origin_ + depth_) = kUnreachable;
    At(origin_ - depth_ - 1) = At(origin_ + depth_ + 1) = kUnreachable;
  }
  bool Covers(int64_t diagonal) const {
    return diagonal >= lowest() && diagonal <= highest() && At(diagonal) != kUnreachable;
  }
  int64_t lowest() const { return origin_ - depth_; }
  int64_t highest() const { return origin_ + depth_; }
  int64_t& At(int64_t diagonal) { return reach_[Index(diagonal)]; }
  int64_t At(int64_t diagonal) const { return reach_[Index(diagonal)]; }

 private:
  size_t Index(int64_t diagonal) const { return static_cast<size_t>(diagonal - origin_ + center_); }

  int64_t center_;
  std::vector<int64_t> reach_;
  int64_t origin_ = 0;
  int64_t depth_ = 0;
};

// Myers' divide and conquer: search from both corners of a box at once, one more edit at a time;
// where the two searches meet lies a point of a shortest edit, and the boxes before and after it
// are solved in the same way.
class Search {
 public:
  Search(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, uint64_t max_steps)
      : a_(a), b_(b), steps_left_(max_steps), a_changed_(a.size()), b_changed_(b.size()) {}

  void Run() { Solve({{0, 0}, {std::ssize(a_), std::ssize(b_)}}); }
  const std::vector<uint8_t>& a_changed() const { return a_changed_; }
  const std::vector<uint8_t>& b_changed() const { return b_changed_; }

 private:
  // Edits that a search from one corner may use. Beyond it the result is merely good, and memory
  // and recursion stay small.
  static constexpr int64_t kMaxDepth = 256;

  // Recurses into the box before the split only, which holds at most 2 * kMaxDepth edits and halves
  // with each level.
  void Solve(Box box) {
    while (true) {
      Trim(box);
      if (box.low.x == box.high.x || box.low.y == box.high.y) return Replace(box);
      const std::optional<Point> split = Split(box);
      if (!split) return Replace(box);
      Solve({box.low, *split});
      box.low = *split;
    }
  }

  void Trim(Box& box) const {
    box.low = SlideForward(box.low, box.high);
    box.high = SlideBackward(box.high, box.low);
  }

  void Replace(const Box& box) {
    std::fill(a_changed_.begin() + box.low.x, a_changed_.begin() + box.high.x, 1);
    std::fill(b_changed_.begin() + box.low.y, b_changed_.begin() + box.high.y, 1);
  }

  Point SlideForward(Point at, Point limit) const {
    while (at.x < limit.x && at.y < limit.y && a_[at.x] == b_[at.y]) ++at.x, ++at.y;
    return at;
  }
  Point SlideBackward(Point at, Point limit) const {
    while (at.x > limit.x && at.y > limit.y && a_[at.x - 1] == b_[at.y - 1]) --at.x, --at.y;
    return at;
  }

  // A point strictly between the corners, or nothing when the steps are used up. The box is trimmed
  // and has lines on both sides, so at least two edits lie between its corners.
  std::optional<Point> Split(const Box& box) {
    forward_.Restart(box.low.x - box.low.y, box.low.x);
    backward_.Restart(box.high.x - box.high.y, box.high.x);
    for (int64_t depth = 1; depth <= kMaxDepth; ++depth) {
      if (steps_left_ == 0) return std::nullopt;
      if (std::optional<Point> met = AdvanceForward(box)) return met;
      if (std::optional<Point> met = AdvanceBackward(box)) return met;
    }
    return FurthestForward();
  }

  std::optional<Point> AdvanceForward(const Box& box) {
    forward_.Deepen();
    for (int64_t d = forward_.lowest(); d <= forward_.highest(); d += 2) {
      const Point from = BestOf(box, d, forward_.At(d - 1) + 1, forward_.At(d + 1));
      forward_.At(d) = from.x;
      if (from.x == kUnreachable) continue;
      const Point to = SlideForward(from, box.high);
      Spend(to.x - from.x);
      forward_.At(d) = to.x;
      if (Meets(backward_, d) && backward_.At(d) <= to.x) return to;
    }
    return std::nullopt;
  }

  std::optional<Point> AdvanceBackward(const Box& box) {
    backward_.Deepen();
    for (int64_t d = backward_.lowest(); d <= backward_.highest(); d += 2) {
      const Point from = LeastOf(box, d, backward_.At(d + 1) - 1, backward_.At(d - 1));
      backward_.At(d) = from.x;
      if (from.x == kUnreachable) continue;
      const Point to = SlideBackward(from, box.low);
      Spend(from.x - to.x);
      backward_.At(d) = to.x;
      if (Meets(forward_, d) && forward_.At(d) >= to.x) return to;
    }
    return std::nullopt;
  }

  // A frontier holds fresh values on every second diagonal only; those in between are one edit
  // older.
  static bool Meets(const Frontier& other, int64_t diagonal) {
    return other.Covers(diagonal) && (diagonal - other.lowest()) % 2 == 0;
  }

  // The better of the two ways onto a diagonal: one line of `a` more, or one of `b`.
  static Point BestOf(const Box& box, int64_t diagonal, int64_t over_a, int64_t over_b) {
    const bool a_ok = over_a > box.low.x && over_a <= box.high.x;
    const bool b_ok = over_b >= box.low.x && over_b - diagonal <= box.high.y;
    const int64_t x = std::max(a_ok ? over_a : kUnreachable, b_ok ? over_b : kUnreachable);
    return {x, x - diagonal};
  }
  static Point LeastOf(const Box& box, int64_t diagonal, int64_t over_a, int64_t over_b) {
    const bool a_ok = over_a >= box.low.x && over_a < box.high.x;
    const bool b_ok = over_b >= box.low.x && over_b <= box.high.x && over_b - diagonal >= box.low.y;
    if (!a_ok && !b_ok) return {kUnreachable, kUnreachable};
    const int64_t x = std::min(a_ok ? over_a : INT64_MAX, b_ok ? over_b : INT64_MAX);
    return {x, x - diagonal};
  }

  // Too many edits for an exact answer: go on from where the search has got furthest.
  Point FurthestForward() const {
    Point best{kUnreachable, kUnreachable};
    for (int64_t d = forward_.lowest(); d <= forward_.highest(); d += 2) {
      const int64_t x = forward_.At(d);
      if (x != kUnreachable && 2 * x - d > best.x + best.y) best = {x, x - d};
    }
    return best;
  }

  void Spend(int64_t compared) {
    const auto cost = static_cast<uint64_t>(compared) + 1;
    steps_left_ -= std::min(steps_left_, cost);
  }

  const std::vector<uint32_t>& a_;
  const std::vector<uint32_t>& b_;
  uint64_t steps_left_;
  std::vector<uint8_t> a_changed_;
  std::vector<uint8_t> b_changed_;
  Frontier forward_{kMaxDepth};
  Frontier backward_{kMaxDepth};
};

// ---- From texts to edits ----

struct HashedLine {
  size_t hash;
  std::string_view text;
  uint32_t* id;
};

void HashLines(std::string_view text, Side& side, std::vector<HashedLine>& out) {
  const size_t count = CountLines(text);
  side.ids.resize(count);
  side.changed.resize(count);
  LineCursor lines(text);
  for (uint32_t& id : side.ids) {
    const std::string_view line = lines.Next();
    out.push_back({std::hash<std::string_view>{}(line), line, &id});
  }
}

// Gives equal lines of both sides the same number; returns how many numbers there are. By sorting,
// not with a hash table: a hostile file can be full of lines that collide, and here they cost no
// more than a comparison of their text.
uint32_t NumberLines(std::string_view before, std::string_view after, Side& before_side,
                     Side& after_side) {
  std::vector<HashedLine> lines;
  lines.reserve(CountLines(before) + CountLines(after));
  HashLines(before, before_side, lines);
  HashLines(after, after_side, lines);
  std::ranges::sort(lines, [](const HashedLine& a, const HashedLine& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.text < b.text;
  });
  uint32_t id = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && lines[i].text != lines[i - 1].text) ++id;
    *lines[i].id = id;
  }
  return id + 1;
}

// Lines that the other side does not have anywhere are changed for certain. Taking them out first
// makes the common case, new text inside old, nearly free.
std::vector<size_t> SharedLines(Side& side, const Side& other, size_t id_count) {
  std::vector<uint8_t> in_other(id_count);
  for (uint32_t id : other.ids) in_other[id] = 1;
  std::vector<size_t> shared;
  for (size_t i = 0; i < side.ids.size(); ++i) {
    side.changed[i] = in_other[side.ids[i]] == 0 ? 1 : 0;
    if (side.changed[i] == 0) shared.push_back(i);
  }
  return shared;
}

std::vector<uint32_t> Pick(const std::vector<uint32_t>& ids, const std::vector<size_t>& places) {
  std::vector<uint32_t> picked;
  picked.reserve(places.size());
  for (size_t place : places) picked.push_back(ids[place]);
  return picked;
}

void MarkChanges(Side& before, Side& after, size_t id_count, uint64_t max_steps) {
  const std::vector<size_t> before_places = SharedLines(before, after, id_count);
  const std::vector<size_t> after_places = SharedLines(after, before, id_count);
  const std::vector<uint32_t> a = Pick(before.ids, before_places);
  const std::vector<uint32_t> b = Pick(after.ids, after_places);
  Search search(a, b, max_steps);
  search.Run();
  for (size_t i = 0; i < a.size(); ++i) before.changed[before_places[i]] = search.a_changed()[i];
  for (size_t i = 0; i < b.size(); ++i) after.changed[after_places[i]] = search.b_changed()[i];
}

size_t RunEnd(const Side& side, size_t start) {
  while (start < side.ids.size() && side.changed[start] != 0) ++start;
  return start;
}

// A place in both sides with the same number of unchanged lines above it.
struct Place {
  size_t here;
  size_t there;
};

// Moves the run of changed lines at `at` down as long as the line that leaves it at the top equals
// the one that joins at the bottom: an inserted function then shows from its own first line on.
// Stops where the other side has a change of its own.
Place SlideDown(Side& side, const Side& other, Place at) {
  size_t end = RunEnd(side, at.here);
  while (end < side.ids.size() && other.changed[at.there] == 0 &&
         side.ids[at.here] == side.ids[end]) {
    side.changed[at.here++] = 0;
    side.changed[end] = 1;
    ++at.there;
    end = RunEnd(side, end);
  }
  return at;
}

// Slides what was only inserted or only removed. A replacement stays, else its two halves would
// drift apart.
void SlideLoneRuns(Side& before, Side& after) {
  size_t i = 0;
  size_t j = 0;
  while (i < before.ids.size() || j < after.ids.size()) {
    const bool removes = RunEnd(before, i) > i;
    const bool inserts = RunEnd(after, j) > j;
    if (inserts && !removes) {
      const Place place = SlideDown(after, before, {.here = j, .there = i});
      i = place.there;
      j = place.here;
    } else if (removes && !inserts) {
      const Place place = SlideDown(before, after, {.here = i, .there = j});
      i = place.here;
      j = place.there;
    }
    i = RunEnd(before, i) + 1;
    j = RunEnd(after, j) + 1;
  }
}

std::vector<Edit> CollectEdits(const Side& before, const Side& after, size_t first_line) {
  std::vector<Edit> edits;
  size_t i = 0;
  size_t j = 0;
  while (i < before.ids.size() || j < after.ids.size()) {
    const size_t i_end = RunEnd(before, i);
    const size_t j_end = RunEnd(after, j);
    if (i_end > i || j_end > j) {
      edits.push_back({first_line + i, i_end - i, first_line + j, j_end - j});
    }
    i = i_end + 1;
    j = j_end + 1;
  }
  return edits;
}

// Bytes of the common tail that stay in, for a run of changed lines to slide down into.
size_t SlideRoom(std::string_view tail) {
  constexpr size_t kLines = 64;
  LineCursor lines(tail);
  size_t size = 0;
  for (size_t i = 0; i < kLines && !lines.done(); ++i) size += lines.Next().size();
  return size;
}

std::vector<Edit> FindEdits(std::string_view before, std::string_view after,
                            const DiffOptions& options) {
  const size_t prefix = CommonPrefix(before, after);
  const size_t first_line = CountLines(before.substr(0, prefix));
  before.remove_prefix(prefix);
  after.remove_prefix(prefix);
  const size_t suffix = CommonSuffix(before, after);
  const size_t before_lines = CountLines(before.substr(0, before.size() - suffix));
  const size_t after_lines = CountLines(after.substr(0, after.size() - suffix));
  if (before_lines + after_lines == 0) return {};
  if (before_lines + after_lines > options.max_lines) {
    return {{first_line, before_lines, first_line, after_lines}};
  }
  const size_t unneeded = suffix - SlideRoom(before.substr(before.size() - suffix));
  before.remove_suffix(unneeded);
  after.remove_suffix(unneeded);
  Side before_side;
  Side after_side;
  const uint32_t id_count = NumberLines(before, after, before_side, after_side);
  MarkChanges(before_side, after_side, id_count, options.max_steps);
  SlideLoneRuns(before_side, after_side);
  return CollectEdits(before_side, after_side, first_line);
}

// ---- Writing ----

// Writes hunks in order, in one pass over both texts.
class HunkWriter {
 public:
  HunkWriter(std::string_view before, std::string_view after, size_t context, std::string& out)
      : before_(before),
        after_(after),
        before_lines_(CountLines(before)),
        context_(context),
        out_(out) {}

  void Write(const std::vector<Edit>& edits) {
    for (size_t first = 0; first < edits.size();) {
      const size_t last = LastOfHunk(edits, first);
      WriteHunk(edits.data() + first, edits.data() + last + 1);
      first = last + 1;
    }
  }

 private:
  static size_t BeforeEnd(const Edit& edit) { return edit.before_start + edit.before_count; }

  // Edits whose contexts touch share a hunk.
  size_t LastOfHunk(const std::vector<Edit>& edits, size_t index) const {
    for (; index + 1 < edits.size(); ++index) {
      const size_t gap = edits[index + 1].before_start - BeforeEnd(edits[index]);
      if (gap / 2 + gap % 2 > context_) break;
    }
    return index;
  }

  void WriteHunk(const Edit* first, const Edit* end) {
    const Edit& last = *(end - 1);
    const size_t lead = std::min(context_, first->before_start);
    const size_t tail = std::min(context_, before_lines_ - BeforeEnd(last));
    const size_t before_start = first->before_start - lead;
    const size_t after_start = first->after_start - lead;
    const size_t before_count = BeforeEnd(last) + tail - before_start;
    const size_t after_count = last.after_start + last.after_count + tail - after_start;
    out_ += fmt::format("@@ -{} +{} @@\n", Range(before_start, before_count),
                        Range(after_start, after_count));
    SkipTo(before_start);
    for (const Edit* edit = first; edit != end; ++edit) WriteEdit(*edit);
    WriteContext(BeforeEnd(last) + tail);
  }

  // An empty range names the line before it.
  static std::string Range(size_t start, size_t count) {
    if (count == 1) return fmt::format("{}", start + 1);
    return fmt::format("{},{}", count == 0 ? start : start + 1, count);
  }

  void WriteEdit(const Edit& edit) {
    WriteContext(edit.before_start);
    for (size_t i = 0; i < edit.before_count; ++i) WriteLine('-', before_.Next());
    for (size_t i = 0; i < edit.after_count; ++i) WriteLine('+', after_.Next());
    before_pos_ += edit.before_count;
  }

  void WriteContext(size_t before_end) {
    for (; before_pos_ < before_end; ++before_pos_) {
      WriteLine(' ', before_.Next());
      after_.Skip(1);
    }
  }

  void SkipTo(size_t before_end) {
    before_.Skip(before_end - before_pos_);
    after_.Skip(before_end - before_pos_);
    before_pos_ = before_end;
  }

  void WriteLine(char mark, std::string_view line) {
    out_ += mark;
    out_ += line;
    if (!line.ends_with('\n')) out_ += "\n\\ No newline at end of file\n";
  }

  LineCursor before_;
  LineCursor after_;
  size_t before_lines_;
  size_t context_;
  std::string& out_;
  size_t before_pos_ = 0;
};

bool IsBinary(std::string_view content) {
  constexpr size_t kLookedAt = 8000;
  return content.substr(0, kLookedAt).find('\0') != std::string_view::npos;
}

bool IsPresent(const DiffInput& input) { return input.presence == FilePresence::kPresent; }

// git knows no other modes; others would make `git apply` complain.
uint32_t GitMode(const DiffInput& input) {
  const uint32_t mode = input.mode.value_or(S_IFREG | 0644);
  const uint32_t type = mode & S_IFMT;
  if (type != 0 && type != S_IFREG) return type;
  return S_IFREG | ((mode & S_IXUSR) != 0 ? 0755 : 0644);
}

bool BothHaveModes(const DiffInput& before, const DiffInput& after) {
  return before.mode.has_value() && after.mode.has_value();
}

char EscapeLetter(uint8_t byte) {
  switch (byte) {
    case '\a':
      return 'a';
    case '\b':
      return 'b';
    case '\t':
      return 't';
    case '\n':
      return 'n';
    case '\v':
      return 'v';
    case '\f':
      return 'f';
    case '\r':
      return 'r';
    case '"':
      return '"';
    case '\\':
      return '\\';
    default:
      return '\0';
  }
}

std::string Quoted(std::string_view path) {
  std::string quoted = "\"";
  for (char c : path) {
    const auto byte = static_cast<uint8_t>(c);
    if (const char letter = EscapeLetter(byte); letter != '\0') {
      quoted += '\\';
      quoted += letter;
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string Label(const DiffInput& input, std::string_view prefix) {
  if (!IsPresent(input)) return "/dev/null";
  return QuotePath(fmt::format("{}{}", prefix, input.path));
}

// Without content lines the header alone names the file, and there `patch` ends a bare name at a
// space.
std::string HeaderLabel(const DiffInput& input, std::string_view prefix, std::string_view content) {
  if (!content.empty() || input.path.find(' ') == std::string_view::npos) {
    return Label(input, prefix);
  }
  return Quoted(fmt::format("{}{}", prefix, input.path));
}

// A tab ends a name with spaces, else `patch` would take the rest for a time stamp.
void AppendNameLine(std::string_view mark, const std::string& label, std::string& out) {
  out += fmt::format("{} {}{}\n", mark, label, label.find(' ') == std::string::npos ? "" : "\t");
}

// The lines that tell of anything but content; empty when there is nothing of the kind.
std::string MetadataLines(const DiffInput& before, const DiffInput& after) {
  if (!IsPresent(before)) return fmt::format("new file mode {:06o}\n", GitMode(after));
  if (!IsPresent(after)) return fmt::format("deleted file mode {:06o}\n", GitMode(before));
  std::string out;
  if (BothHaveModes(before, after) && GitMode(before) != GitMode(after)) {
    out += fmt::format("old mode {:06o}\nnew mode {:06o}\n", GitMode(before), GitMode(after));
  }
  if (before.path != after.path) {
    out += fmt::format("rename from {}\nrename to {}\n", QuotePath(before.path),
                       QuotePath(after.path));
  }
  return out;
}

std::string ContentLines(const DiffInput& before, const DiffInput& after,
                         const DiffOptions& options) {
  if (before.content == after.content) return {};
  const std::string old_label = Label(before, "a/");
  const std::string new_label = Label(after, "b/");
  if (IsBinary(before.content) || IsBinary(after.content)) {
    return fmt::format("Binary files {} and {} differ\n", old_label, new_label);
  }
  std::string out;
  AppendNameLine("---", old_label, out);
  AppendNameLine("+++", new_label, out);
  HunkWriter(before.content, after.content, options.context_lines, out)
      .Write(FindEdits(before.content, after.content, options));
  return out;
}

// A file that turned into a link or back is removed and made anew: git has no other way to say it.
bool ChangesType(const DiffInput& before, const DiffInput& after) {
  return IsPresent(before) && IsPresent(after) && BothHaveModes(before, after) &&
         (GitMode(before) & S_IFMT) != (GitMode(after) & S_IFMT);
}

std::string OneFileDiff(const DiffInput& before, const DiffInput& after,
                        const DiffOptions& options) {
  if (!IsPresent(before) && !IsPresent(after)) return {};
  const std::string metadata = MetadataLines(before, after);
  const std::string content = ContentLines(before, after, options);
  if (metadata.empty() && content.empty()) return {};
  const DiffInput& old_name = IsPresent(before) ? before : after;
  const DiffInput& new_name = IsPresent(after) ? after : before;
  return fmt::format("diff --git {} {}\n{}{}", HeaderLabel(old_name, "a/", content),
                     HeaderLabel(new_name, "b/", content), metadata, content);
}

DiffInput Nothing() { return {.path = {}, .content = {}, .presence = FilePresence::kAbsent}; }

// The content of an absent side does not count, whatever the caller left in it.
DiffInput Normalized(const DiffInput& input) { return IsPresent(input) ? input : Nothing(); }

}  // namespace

std::string QuotePath(std::string_view path) {
  std::string quoted = Quoted(path);
  const bool is_plain = quoted.size() == path.size() + 2 && !path.ends_with(' ');
  return is_plain ? std::string(path) : quoted;
}

std::string UnifiedDiff(const DiffInput& before, const DiffInput& after,
                        const DiffOptions& options) {
  const DiffInput old_side = Normalized(before);
  const DiffInput new_side = Normalized(after);
  if (!ChangesType(old_side, new_side)) return OneFileDiff(old_side, new_side, options);
  return OneFileDiff(old_side, Nothing(), options) + OneFileDiff(Nothing(), new_side, options);
}

}  // namespace sandglass::undo

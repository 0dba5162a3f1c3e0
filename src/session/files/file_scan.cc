#include "session/files/file_scan.h"

#include <algorithm>
#include <utility>

namespace sandglass::session::files {
namespace {

constexpr auto kNowhere = std::string_view::npos;

std::string_view WithoutReturn(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

bool IsContinuation(char c) { return (c & 0xC0) == 0x80; }

// At most `size` bytes from `begin` on, cut where characters begin.
std::string_view Window(std::string_view line, size_t begin, size_t size) {
  while (begin > 0 && IsContinuation(line[begin])) --begin;
  size_t end = std::min(begin + size, line.size());
  while (end > begin && end < line.size() && IsContinuation(line[end])) --end;
  return line.substr(begin, end - begin);
}

}  // namespace

void FileScan::Feed(std::string_view text) {
  counted_ = shown_ = 0;
  for (size_t at = 0; at < text.size() && !done_;) {
    const auto found = matcher_.Find(text, at);
    if (!found) break;
    // Behind the last line break there is no line.
    if (*found == text.size() && text.back() == '\n') break;
    const size_t brk = *found == 0 ? kNowhere : text.rfind('\n', *found - 1);
    const size_t begin = brk == kNowhere ? 0 : brk + 1;
    const size_t end = std::min(text.find('\n', *found), text.size());
    OnMatch(text, begin, end, *found);
    at = end + 1;
  }
  if (done_ || !NeedsNumbers()) return;
  AddAfter(text, text.size());
  KeepTail(text);
  line_ = NumberAt(text, text.size());
}

void FileScan::OnMatch(std::string_view text, size_t begin, size_t end, size_t at) {
  if (options_.after_line > 0 && NumberAt(text, begin) <= options_.after_line) return;
  if (options_.mode == GrepMode::kContent) AddLines(text, begin, end, at);
  if (!done_) ++matches_;
  if (options_.mode == GrepMode::kFilesWithMatches) done_ = true;
}

void FileScan::AddLines(std::string_view text, size_t begin, size_t end, size_t at) {
  AddAfter(text, begin);
  if (matches_ == options_.max_matches) {
    done_ = true;
    return;
  }
  AddBefore(text, begin);
  const std::string_view line = WithoutReturn(text.substr(begin, end - begin));
  GrepLine shown{.number = NumberAt(text, begin), .column = at - begin + 1, .match = matches_};
  shown.cut = line.size() > options_.max_line_bytes;
  const size_t lead = shown.cut ? options_.max_line_bytes / 4 : 0;
  const size_t from = shown.cut && at - begin > lead ? at - begin - lead : 0;
  shown.text = Window(line, std::min(from, line.size()), options_.max_line_bytes);
  lines_.push_back(std::move(shown));
  shown_ = std::min(end + 1, text.size());
  after_left_ = options_.after;
}

GrepLine FileScan::ContextLine(std::string_view line, uint64_t number) const {
  line = WithoutReturn(line);
  return {.number = number,
          .kind = LineKind::kContext,
          .text = std::string(Window(line, 0, options_.max_line_bytes)),
          .cut = line.size() > options_.max_line_bytes,
          .match = matches_};
}

void FileScan::AddBefore(std::string_view text, size_t begin) {
  std::vector<GrepLine> found;  // the last one first
  uint64_t number = NumberAt(text, begin);
  size_t end = begin;
  while (found.size() < options_.before && end > shown_) {
    const size_t brk = end < 2 ? kNowhere : text.rfind('\n', end - 2);
    const size_t line = brk == kNowhere ? 0 : brk + 1;
    found.push_back(ContextLine(text.substr(line, end - 1 - line), --number));
    end = line;
  }
  if (shown_ == 0) {
    for (size_t i = tail_.size(); i > 0 && found.size() < options_.before; --i)
      found.push_back(ContextLine(tail_[i - 1], --number));
  }
  std::move(found.rbegin(), found.rend(), std::back_inserter(lines_));
}

void FileScan::AddAfter(std::string_view text, size_t until) {
  while (after_left_ > 0 && shown_ < until) {
    const size_t end = std::min(text.find('\n', shown_), text.size());
    // It follows what was shown last.
    GrepLine line = ContextLine(text.substr(shown_, end - shown_), lines_.back().number + 1);
    line.match = matches_ - 1;
    lines_.push_back(std::move(line));
    shown_ = std::min(end + 1, text.size());
    --after_left_;
  }
}

// For the context of a match in the next piece.
void FileScan::KeepTail(std::string_view text) {
  if (options_.before == 0) return;
  if (shown_ > 0) tail_.clear();
  std::vector<std::string_view> last;  // the last one first
  for (size_t end = text.size(); end > shown_ && last.size() < options_.before;) {
    const size_t brk = end < 2 ? kNowhere : text.rfind('\n', end - 2);
    const size_t line = brk == kNowhere ? 0 : brk + 1;
    last.push_back(text.substr(line, end - 1 - line));
    end = line;
  }
  // Longer lines are cut anyway; one byte more says so.
  for (size_t i = last.size(); i > 0; --i)
    tail_.emplace_back(last[i - 1].substr(0, options_.max_line_bytes + 1));
  while (tail_.size() > options_.before) tail_.pop_front();
}

uint64_t FileScan::NumberAt(std::string_view text, size_t begin) {
  if (begin > counted_) {
    line_ += static_cast<uint64_t>(std::count(text.begin() + static_cast<ptrdiff_t>(counted_),
                                              text.begin() + static_cast<ptrdiff_t>(begin), '\n'));
    counted_ = begin;
  }
  return line_;
}

}  // namespace sandglass::session::files

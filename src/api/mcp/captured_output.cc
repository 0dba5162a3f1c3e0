#include "api/mcp/captured_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace sandglass::api::mcp {
namespace {

constexpr size_t kLongestLine = 200;

}  // namespace

void CapturedOutput::Append(std::string_view bytes) {
  const size_t room = kKeptOfEachEnd - head_.size();
  head_ += bytes.substr(0, room);
  bytes.remove_prefix(std::min(room, bytes.size()));
  behind_head_ += bytes.size();
  tail_ += bytes;
  // Not at every piece, so that the cost of a byte stays the same.
  if (tail_.size() > 4 * kKeptOfEachEnd) tail_.erase(0, tail_.size() - kKeptOfEachEnd);
}

std::string_view CapturedOutput::tail() const {
  const std::string_view all = tail_;
  return all.substr(all.size() - std::min(all.size(), kKeptOfEachEnd));
}

uint64_t CapturedOutput::left_out() const { return missed_ + behind_head_ - tail().size(); }

std::string CapturedOutput::Text() const {
  if (left_out() == 0) return head_ + std::string(tail());
  return fmt::format("{}\n[{} bytes left out]\n{}", head_, left_out(), tail());
}

std::string CapturedOutput::LastLine() const {
  std::string_view text = tail_.empty() ? std::string_view(head_) : tail();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t line_end = text.rfind('\n');
  if (line_end != text.npos) text.remove_prefix(line_end + 1);
  return std::string(text.substr(0, kLongestLine));
}

}  // namespace sandglass::api::mcp

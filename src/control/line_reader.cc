#include "control/line_reader.h"

#include <fmt/format.h>

namespace sandglass::control {

Error LineReader::StartSkipping() {
  skipping_ = true;
  // Given back: one long line should not cost its memory for ever.
  std::string().swap(partial_);
  return Error(Code::kLimit, fmt::format("line is longer than {} bytes", max_line_bytes_));
}

std::optional<Result<std::string_view>> LineReader::Next(std::string_view& bytes) {
  if (partial_is_line_) {
    partial_.clear();
    partial_is_line_ = false;
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find(end_);
    const bool complete = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(complete ? end + 1 : bytes.size());
    if (skipping_) {
      skipping_ = !complete;
      continue;
    }
    if (piece.size() > max_line_bytes_ - partial_.size()) {
      Error refused = StartSkipping();
      skipping_ = !complete;
      return refused;
    }
    if (complete && partial_.empty()) {
      if (piece.empty()) continue;
      return piece;
    }
    // A line that came in two reads and fills a page or a megabyte grows by doubling, up to what a line may have.
    partial_ += piece;
    if (!complete) continue;
    partial_is_line_ = true;
    return std::string_view(partial_);
  }
  return std::nullopt;
}

}  // namespace sandglass::control

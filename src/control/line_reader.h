// LineReader: cuts a stream of bytes into lines. It does no I/O: whoever reads hands it what came, in whatever pieces.
//
// A line that is too long is refused as soon as that is known and skipped up to its end; the next line is read as usual. It never
// holds more than twice the greatest length of a line, and nothing of a line that came whole. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/messages.h"

namespace sandglass::control {

class LineReader {
 public:
  // `end` is the byte that ends a line.
  explicit LineReader(size_t max_line_bytes = kMaxLineBytes, char end = '\n')
      : max_line_bytes_(max_line_bytes), end_(end) {}

  // Takes bytes from the front of `bytes` until a line is complete, and returns it without its newline; empty lines are skipped.
  // Nothing: all bytes are taken and no line is complete. kLimit: a line is too long. Call it until it returns nothing. The line
  // lives until the next call, and no longer than what `bytes` points to.
  std::optional<Result<std::string_view>> Next(std::string_view& bytes);

  // At the end of the stream: was the last line cut off?
  bool inside_line() const { return skipping_ || (!partial_is_line_ && !partial_.empty()); }
  size_t held_bytes() const { return partial_.capacity(); }

 private:
  Error StartSkipping();

  size_t max_line_bytes_;
  char end_;
  std::string partial_;           // of a line that is not complete yet
  bool partial_is_line_ = false;  // it was returned, and goes at the next call
  bool skipping_ = false;         // a line that was too long
};

}  // namespace sandglass::control

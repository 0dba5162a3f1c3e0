// WriterQueue: lines that wait until the channel takes them. It does no I/O: its owner writes Front() when the channel can take
// bytes, and says with Consume() how many it took.
//
// Its memory is bounded, and pressure goes back to where bytes come from: from `high` on it is paused and takes no more bulk
// (output, input); whoever produces bulk stops reading from the command or the terminal until the queue has shrunk to `low`.
// Everything else (a command has ended, Ctrl-C) is still taken, up to `capacity`. Lines keep their order. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/messages.h"

namespace sandglass::control {

struct Watermarks {
  size_t low = size_t{64} << 10;
  size_t high = size_t{256} << 10;
  size_t capacity = 4 * kMaxLineBytes;
};

enum class LineKind : uint8_t { kBulk, kUrgent };

class WriterQueue {
 public:
  explicit WriterQueue(Watermarks marks = {});

  // Adds a line; the newline is added here. kBusy: bulk while paused; nothing is lost if the producer asked paused() first.
  // kLimit: it does not fit; the other end has stopped reading.
  Status Push(std::string_view line, LineKind kind);

  bool paused() const { return paused_; }
  bool empty() const { return size() == 0; }
  size_t size() const { return bytes_.size() - taken_; }
  size_t held_bytes() const { return bytes_.capacity(); }

  // What to write next; valid until Push or Consume.
  std::string_view Front() const { return std::string_view(bytes_).substr(taken_); }
  // The channel took the first `count` bytes of Front().
  void Consume(size_t count);

 private:
  Watermarks marks_;
  std::string bytes_;
  size_t taken_ = 0;  // bytes at the front that are written already
  bool paused_ = false;
};

}  // namespace sandglass::control

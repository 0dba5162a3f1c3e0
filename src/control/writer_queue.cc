#include "control/writer_queue.h"

#include <fmt/format.h>

namespace sandglass::control {

WriterQueue::WriterQueue(Watermarks marks) : marks_(marks) {
  CHECK(marks.low < marks.high && marks.high <= marks.capacity);
}

Status WriterQueue::Push(std::string_view line, LineKind kind) {
  CHECK(line.find('\n') == std::string_view::npos);
  if (kind == LineKind::kBulk && paused_) {
    return Error(Code::kBusy, "the control channel is behind; wait until it has caught up");
  }
  if (line.size() >= marks_.capacity - size()) {
    return Error(Code::kLimit, fmt::format("the control channel is {} bytes behind", size()));
  }
  // What is written already goes first, so that the memory follows what waits; moving the rest costs no more than the bytes
  // that were written since the last time.
  if (taken_ >= size()) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  bytes_ += line;
  bytes_ += '\n';
  paused_ = paused_ || size() >= marks_.high;
  return Ok();
}

void WriterQueue::Consume(size_t count) {
  CHECK(count <= size());
  taken_ += count;
  if (empty()) {
    bytes_.clear();
    taken_ = 0;
  }
  if (size() <= marks_.low) paused_ = false;
}

}  // namespace sandglass::control

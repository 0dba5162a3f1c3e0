// Channel: the shim's end of the control channel, as commands see it: a place to send messages to. One thread.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "control/messages.h"
#include "control/writer_queue.h"

namespace sandglass::shim {

class Channel {
 public:
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // Never waits. If the host has stopped reading for good, the channel counts as broken.
  void Send(const control::ShimMessage& message);
  // Whoever has output waits.
  bool paused() const { return queue_.paused(); }
  bool has_more() const { return !queue_.empty(); }
  bool broken() const { return broken_; }
  // Writes what the other end takes now.
  void Flush();

 private:
  Fd fd_;
  control::WriterQueue queue_;
  bool broken_ = false;
};

}  // namespace sandglass::shim

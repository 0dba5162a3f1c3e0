// HostStreams: the standard streams of whoever runs a command, as descriptors, for the loop that carries bytes between them and the
// world.
//
// If input and output are terminals, the command gets a terminal of its own: ours is raw meanwhile, so that Ctrl-C and the like
// reach the command as bytes, and it is put back whatever happens. Otherwise pipes stay pipes, and signals that we get are passed
// on. Nothing here blocks: writing takes what the descriptor takes at once. One at a time per process: it takes signals over, and
// must do so before there are other threads, which would get them instead. One thread.
#pragma once

#include <termios.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "control/messages.h"

namespace sandglass::session {

class HostStreams {
 public:
  struct Descriptors {
    int in = 0, out = 1, err = 2;
  };
  static Result<HostStreams> Open(Descriptors descriptors);
  HostStreams(HostStreams&& other) noexcept;
  HostStreams& operator=(HostStreams&&) = delete;
  ~HostStreams();

  int in() const { return fds_.in; }
  int OutputFd(control::Stream stream) const {
    return stream == control::Stream::kStdout ? fds_.out : fds_.err;
  }
  // Readable when TakeSignal has one.
  int signal_fd() const { return signals_.get(); }
  std::optional<int> TakeSignal();

  // None: the command gets pipes.
  std::optional<control::TerminalSize> terminal() const;

  // Puts the terminal back.
  class RawMode {
   public:
    RawMode(int fd, const termios& before) : fd_(fd), before_(before) {}
    RawMode(const RawMode&) = delete;
    RawMode& operator=(const RawMode&) = delete;
    ~RawMode() { ::tcsetattr(fd_, TCSADRAIN, &before_); }

   private:
    const int fd_;
    const termios before_;
  };
  // Null where there is no terminal.
  Result<std::unique_ptr<RawMode>> BecomeRaw() const;

  // What was written there last was no whole line.
  bool ends_inside_line(control::Stream stream) const {
    return stream == control::Stream::kStdout ? inside_line_[0] : inside_line_[1];
  }
  // How much was taken; kCancelled: nobody reads any more.
  Result<size_t> Write(control::Stream stream, std::string_view bytes);

 private:
  explicit HostStreams(Descriptors fds) : fds_(fds) {}

  Descriptors fds_;
  Fd signals_;
  sigset_t mask_before_{};
  bool masked_ = false;
  bool has_terminal_ = false;
  bool inside_line_[2] = {false, false};  // output, error
};

}  // namespace sandglass::session

// HostStreams: the standard streams of whoever runs a command, as descriptors, for the loop that carries bytes between them and the
// world.
//
// If input and output are terminals, the command gets a terminal of its own: ours is raw while this lives, so that Ctrl-C and the
// like reach the command as bytes, and it is put back whatever happens. Otherwise pipes stay pipes, and signals that we get are
// passed on. Nothing here blocks: writing takes what the descriptor takes at once. One thread, and one at a time per process: it
// takes signals over.
#pragma once

#include <termios.h>

#include <cstddef>
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

  // How much was taken; kCancelled: nobody reads any more.
  Result<size_t> Write(control::Stream stream, std::string_view bytes);

 private:
  explicit HostStreams(Descriptors fds) : fds_(fds) {}
  Status BecomeRaw();

  Descriptors fds_;
  Fd signals_;
  sigset_t mask_before_{};
  bool masked_ = false;
  std::optional<termios> terminal_before_;
};

}  // namespace sandglass::session

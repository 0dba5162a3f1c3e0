// CommandStreams: where the streams of a command come from and go to, for the loop that carries bytes between them and the world. The
// program's own standard streams are host_streams.h; an interface that turns output into messages has its own. One thread; nothing here
// blocks.
#pragma once

#include <termios.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "control/messages.h"

namespace sandglass::session {

class CommandStreams {
 public:
  virtual ~CommandStreams() = default;

  // Where the command's input is read.
  virtual int in() const = 0;
  // Ready to be written to when Write() takes more; -1: whoever shares the loop wakes it then.
  virtual int OutputFd(control::Stream stream) const = 0;
  // Readable when TakeSignal has one; -1: there are none.
  virtual int signal_fd() const = 0;
  virtual std::optional<int> TakeSignal() = 0;
  // None: the command gets pipes.
  virtual std::optional<control::TerminalSize> terminal() const = 0;
  // How much was taken; kCancelled: nobody reads any more.
  virtual Result<size_t> Write(control::Stream stream, std::string_view bytes) = 0;

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
  // Null where there is no terminal of ours.
  virtual Result<std::unique_ptr<RawMode>> BecomeRaw() const = 0;
};

}  // namespace sandglass::session

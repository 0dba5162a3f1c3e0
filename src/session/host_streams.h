// HostStreams: the standard streams of whoever runs a command, as descriptors, for the loop that carries bytes between them and the
// world.
//
// If input and output are terminals, the command gets a terminal of its own: ours is raw meanwhile, so that Ctrl-C and the like
// reach the command as bytes, and it is put back whatever happens. Otherwise pipes stay pipes, and signals that we get are passed
// on. Nothing here blocks: writing takes what the descriptor takes at once. One at a time per process: it takes signals over, and
// must do so before there are other threads, which would get them instead. One thread.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/shared_output.h"
#include "control/messages.h"
#include "session/command_streams.h"

namespace sandglass::session {

class HostStreams final : public CommandStreams {
 public:
  struct Descriptors {
    int in = 0, out = 1, err = 2;
  };
  static Result<HostStreams> Open(Descriptors descriptors);
  HostStreams(HostStreams&& other) noexcept;
  HostStreams& operator=(HostStreams&&) = delete;
  ~HostStreams() override;

  int in() const override { return fds_.in; }
  int OutputFd(control::Stream stream) const override { return outputs_[IndexOf(stream)].fd(); }
  // Readable when TakeSignal has one.
  int signal_fd() const override { return signals_.get(); }
  std::optional<int> TakeSignal() override;

  // None: the command gets pipes.
  std::optional<control::TerminalSize> terminal() const override;

  // Null where there is no terminal.
  Result<std::unique_ptr<RawMode>> BecomeRaw() const override;

  // What was written there last was no whole line.
  bool ends_inside_line(control::Stream stream) const { return inside_line_[IndexOf(stream)]; }
  // How much was taken; kCancelled: nobody reads any more.
  Result<size_t> Write(control::Stream stream, std::string_view bytes) override;

 private:
  explicit HostStreams(Descriptors fds)
      : fds_(fds), outputs_{SharedOutput(fds.out), SharedOutput(fds.err)} {}
  static size_t IndexOf(control::Stream stream) {
    return stream == control::Stream::kStdout ? 0 : 1;
  }

  Descriptors fds_;
  std::array<SharedOutput, 2> outputs_;  // output, error
  Fd signals_;
  sigset_t mask_before_{};
  bool masked_ = false;
  bool has_terminal_ = false;
  bool inside_line_[2] = {false, false};
};

}  // namespace sandglass::session

// CommandOutput: the streams of a command that a client runs: what it writes becomes events, what the client sends is its input. One
// thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/host.h"
#include "base/fd.h"
#include "session/command_streams.h"

namespace sandglass::api {

// What of these bytes can be told now as whole characters, and how. The rest, at most three bytes of a character that is not complete,
// waits for what follows. Pure.
struct OutputPiece {
  size_t bytes = 0;
  std::string data;
  bool is_base64 = false;
};
OutputPiece NextPiece(std::string_view bytes);

class CommandOutput final : public session::CommandStreams {
 public:
  enum class TakesInput : uint8_t { kNo, kYes };
  static Result<std::unique_ptr<CommandOutput>> Make(Host& host, TakesInput takes_input,
                                                     std::optional<control::TerminalSize> terminal);

  int in() const override { return in_.get(); }
  int OutputFd(control::Stream) const override { return -1; }
  int signal_fd() const override { return -1; }
  std::optional<int> TakeSignal() override { return std::nullopt; }
  std::optional<control::TerminalSize> terminal() const override { return terminal_; }
  Result<size_t> Write(control::Stream stream, std::string_view bytes) override;
  Result<std::unique_ptr<RawMode>> BecomeRaw() const override { return std::unique_ptr<RawMode>(); }

  // kInvalid: the command takes no input, or it was ended. kBusy: it has not taken what it got before; nothing was given.
  Status Give(std::string_view bytes);
  Status EndInput();
  // What was held back is told; nothing follows.
  void Finish();

 private:
  explicit CommandOutput(Host& host) : host_(host) {}
  void Tell(control::Stream stream, OutputPiece piece);

  Host& host_;
  Fd in_, input_;
  std::optional<control::TerminalSize> terminal_;
  std::array<std::string, 2> held_;  // of a character that is not complete
  uint64_t dropped_ = 0;
};

}  // namespace sandglass::api

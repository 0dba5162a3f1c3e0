#include "api/command_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandglass::api {
namespace {

using control::Stream;

// Of one event. With JSON's escapes, or as base64, it stays well below the limit of a line.
constexpr size_t kMaxPiece = size_t{64} << 10;
// What a client may give before the command takes it.
constexpr int kInputBytes = 1 << 20;
constexpr size_t kMaxCharacter = 4;

std::string_view NameOf(Stream stream) { return stream == Stream::kStdout ? "stdout" : "stderr"; }

// How many bytes at the end may be the beginning of a character.
size_t IncompleteTail(std::string_view bytes) {
  for (size_t back = 1; back < kMaxCharacter && back <= bytes.size(); ++back) {
    const auto byte = static_cast<uint8_t>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return size > back ? back : 0;
  }
  return 0;
}

}  // namespace

OutputPiece NextPiece(std::string_view bytes) {
  bytes = bytes.substr(0, kMaxPiece);
  const std::string_view whole = bytes.substr(0, bytes.size() - IncompleteTail(bytes));
  if (IsValidUtf8(whole)) return {.bytes = whole.size(), .data = std::string(whole)};
  return {.bytes = bytes.size(), .data = Base64Encode(bytes), .is_base64 = true};
}

Result<std::unique_ptr<CommandOutput>> CommandOutput::Make(
    Host& host, TakesInput takes_input, std::optional<control::TerminalSize> terminal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error::FromErrno(errno, "pipe");
  std::unique_ptr<CommandOutput> output(new CommandOutput(host));
  output->in_ = Fd(ends[0]);
  Fd input(ends[1]);
  output->terminal_ = terminal;
  if (takes_input == TakesInput::kNo) return output;  // its end is closed, so the input is empty
  (void)::fcntl(input.get(), F_SETPIPE_SZ, kInputBytes);  // else it holds less, and says so sooner
  output->input_ = std::move(input);
  return output;
}

Status CommandOutput::Give(std::string_view bytes) {
  if (!input_) return Error(Code::kInvalid, "the command takes no input, or its input was ended");
  int held = 0;
  const int size = ::fcntl(input_.get(), F_GETPIPE_SZ);
  if (::ioctl(in_.get(), FIONREAD, &held) != 0 || size < 0) return Error::FromErrno(errno, "pipe");
  // A pipe holds pages, and a small write may take one of its own: whole or not at all, so that nothing is given twice.
  if (!bytes.empty() && static_cast<int64_t>(bytes.size()) > int64_t{size} - held)
    return Error(Code::kBusy,
                 "the command has not taken what it was given before; try again later");
  while (!bytes.empty()) {
    const ssize_t written = ::write(input_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::FromErrno(errno, "give input to the command");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Ok();
}

Status CommandOutput::EndInput() {
  if (!input_) return Error(Code::kInvalid, "the command takes no input, or its input was ended");
  input_.Reset();
  return Ok();
}

Result<size_t> CommandOutput::Write(Stream stream, std::string_view bytes) {
  if (host_.outlet_.OutputRoom() == 0) {
    if (!host_.outlet_.stalled()) return size_t{0};
    dropped_ += bytes.size();
    return bytes.size();
  }
  std::string& held = held_[stream == Stream::kStdout ? 0 : 1];
  const size_t taken = std::min(bytes.size(), kMaxPiece - held.size());
  bytes = bytes.substr(0, taken);
  if (!held.empty()) bytes = held += bytes;
  OutputPiece piece = NextPiece(bytes);
  const size_t told = piece.bytes;
  if (told > 0) Tell(stream, std::move(piece));
  held = std::string(bytes.substr(told));
  return taken;
}

void CommandOutput::Tell(Stream stream, OutputPiece piece) {
  Json payload = Json::Object({{"stream", NameOf(stream)}});
  payload.Set("data", std::move(piece.data));
  if (piece.is_base64) payload.Set("encoding", "base64");
  if (const auto step = host_.session_->running_step()) payload.Set("step_id", step->value);
  if (host_.running_) payload.Set("request_id", host_.running_->request_id);
  if (dropped_ > 0) payload.Set("dropped_bytes", std::exchange(dropped_, 0));
  host_.outlet_.Tell(host_.running_ ? host_.running_->output_event : "event.terminal_output",
                     std::move(payload));
}

void CommandOutput::Finish() {
  for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
    std::string rest = std::exchange(held_[stream == Stream::kStdout ? 0 : 1], {});
    if (rest.empty() && (dropped_ == 0 || stream == Stream::kStderr)) continue;
    Tell(stream, {.bytes = rest.size(), .data = Base64Encode(rest), .is_base64 = true});
  }
}

}  // namespace sandglass::api

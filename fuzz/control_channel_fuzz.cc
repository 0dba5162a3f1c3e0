// Fuzzes what reads the control channel: the messages of both ends, the line reader, and what a host makes of a shim that says
// anything. control_channel_input.h says how an input is laid out.
//
// Whatever the bytes: no crash, errors of the promised codes only, what was understood survives being written and read again,
// reads may be cut anywhere, and a shim can end only what was started.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/command_tracker.h"
#include "control/line_reader.h"
#include "control/messages.h"
#include "fuzz/control_channel_input.h"

namespace sandglass::fuzz {
namespace {

using control::LineReader;

template <class Message>
void CheckLine(std::string_view line, Result<Message> (*decode)(std::string_view)) {
  const auto message = decode(line);
  if (!message.ok()) {
    const Code code = message.error().code();
    CHECK(code == Code::kInvalid || code == Code::kLimit || code == Code::kUnsupported);
    CHECK(message.error().message().size() < 512);
    return;
  }
  const std::string again = Encode(*message);
  CHECK(again.find('\n') == std::string::npos);
  // Written anew it may be longer, where the line had a shorter escape than ours.
  if (again.size() > control::kMaxLineBytes) return;
  const auto back = decode(again);
  CHECK(back.ok() && *back == *message);
}

// Hands `bytes` to the reader in pieces of 1 to 256 bytes, and each line to `take`.
template <class Take>
void Read(LineReader& reader, std::string_view bytes, uint8_t cut, const Take& take) {
  while (!bytes.empty()) {
    // A copy, so that reading beyond a piece is found.
    const std::string piece(bytes.substr(0, size_t{1} + cut));
    bytes.remove_prefix(piece.size());
    std::string_view rest = piece;
    while (const auto line = reader.Next(rest)) take(*line);
    CHECK(rest.empty());
    cut = static_cast<uint8_t>(cut * 5 + 3);
  }
}

std::vector<std::string> ByHand(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    const bool complete = end != std::string_view::npos;
    if (line.size() > kStreamLineBytes) {
      lines.emplace_back("too long");
    } else if (complete && !line.empty()) {
      lines.emplace_back(line);
    }
    bytes.remove_prefix(complete ? end + 1 : bytes.size());
  }
  return lines;
}

void CheckStream(std::string_view bytes, uint8_t cut) {
  LineReader reader(kStreamLineBytes);
  std::vector<std::string> lines;
  Read(reader, bytes, cut, [&](const Result<std::string_view>& line) {
    CHECK(line.ok() || line.error().code() == Code::kLimit);
    lines.emplace_back(line.ok() ? *line : "too long");
  });
  CHECK(lines == ByHand(bytes));
  CHECK(reader.inside_line() == (!bytes.empty() && bytes.back() != '\n'));
  CHECK(reader.held_bytes() <= 2 * kStreamLineBytes);
}

// Looks at the host's actions: steps open and close in turn, commands end once, output stays within the window.
class Witness {
 public:
  void See(const std::vector<control::Action>& actions) {
    for (const control::Action& action : actions) {
      if (const auto* change = std::get_if<control::StepChange>(&action)) See(*change);
      if (const auto* ended = std::get_if<control::Ended>(&action)) {
        CHECK(running_.erase(ended->outcome.id) == 1);
      }
      if (const auto* show = std::get_if<control::Show>(&action)) {
        CHECK(running_.contains(show->output.id));
        running_[show->output.id] += show->output.data.size();
        CHECK(running_[show->output.id] <= control::kWindowBytes);
      }
      CHECK(!std::holds_alternative<control::Send>(action) || sending_);
    }
  }
  void Sent(StepId id) { running_[id] = 0; }
  void DoneSending() { sending_ = false; }
  size_t running() const { return running_.size(); }

 private:
  void See(const control::StepChange& change) {
    const bool opened = change.edge == control::StepEdge::kOpened;
    CHECK(opened != open_);
    open_ = opened;
  }

  std::map<StepId, size_t> running_;
  bool open_ = false;
  bool sending_ = true;
};

void CheckSession(std::string_view bytes, uint8_t cut) {
  FakeClock clock;
  control::CommandTracker host(clock, {});
  Witness witness;
  for (const StepId id : {StepId{1}, StepId{2}}) {
    witness.Sent(id);
    CHECK(host.Start({.id = id, .command = "x", .takes_input = true}).ok());
    CHECK(host.SendInput(id, "some input").ok());
  }
  witness.See(host.TakeActions());
  witness.DoneSending();
  LineReader reader;
  Read(reader, bytes, cut, [&](const Result<std::string_view>& line) {
    host.Receive(line);
    host.OperationEnds(host.OperationBegins());
    clock.Advance(std::chrono::milliseconds(30));
    host.Tick();
    witness.See(host.TakeActions());
    CHECK(host.running() == witness.running());
  });
  host.ChannelDied();
  witness.See(host.TakeActions());
  CHECK(witness.running() == 0);
}

void Check(ByteView input) {
  if (input.size() < 2 || input.size() > kMaxControlInputBytes) return;
  const std::string_view rest = AsText(input.subspan(1));
  switch (static_cast<ControlInput>(input.front() % kControlInputs)) {
    case ControlInput::kHostLine:
      return CheckLine(rest, &control::DecodeHostMessage);
    case ControlInput::kShimLine:
      return CheckLine(rest, &control::DecodeShimMessage);
    case ControlInput::kStream:
      return CheckStream(rest.substr(1), input[1]);
    case ControlInput::kSession:
      return CheckSession(rest.substr(1), input[1]);
  }
}

}  // namespace
}  // namespace sandglass::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sandglass::fuzz::Check({data, size});
  return 0;
}

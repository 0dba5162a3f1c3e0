// The messages between the session on the host and the shim, the first program inside a world: one JSON object per line, told
// apart by "type". docs/formats/control.md describes them for someone who writes the other end.
//
// Encoding and decoding are pure functions. Each end decodes only what the other one sends, so that a shim cannot make the host
// execute anything by sending it a host's message. Neither end trusts the other: what a decoder returns is within all limits
// below. Value types; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace sandglass::control {

inline constexpr int64_t kProtocolVersion = 1;

// A line without its newline.
inline constexpr size_t kMaxLineBytes = size_t{1} << 20;
// Bytes of output or input in one message. JSON makes at most six of each (\u001b), so any such message fits into a line.
inline constexpr size_t kMaxDataBytes = size_t{128} << 10;
// The kernel takes no longer argument (MAX_ARG_STRLEN, with its terminator).
inline constexpr size_t kMaxArgumentBytes = (size_t{128} << 10) - 1;
inline constexpr size_t kMaxArguments = 4096;
inline constexpr size_t kMaxEnvEntries = 4096;
inline constexpr size_t kMaxPathBytes = 4095;
inline constexpr size_t kMaxReasonBytes = 4096;
inline constexpr int kMaxSignal = 64;
inline constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);
inline constexpr std::chrono::milliseconds kMaxGrace = std::chrono::minutes(10);
inline constexpr std::chrono::milliseconds kDefaultGrace = std::chrono::seconds(5);
// How many bytes of a command's output, and of its input, may be under way without an `ack`.
inline constexpr size_t kWindowBytes = size_t{256} << 10;

struct TerminalSize {
  uint16_t rows = 24;
  uint16_t columns = 80;
  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

struct EnvEntry {
  std::string name;   // UTF-8
  std::string value;  // bytes
  friend bool operator==(const EnvEntry&, const EnvEntry&) = default;
};

// --- From the host ---

struct Exec {
  StepId id;
  // Exactly one of the two is there: a line for the shell, or a program with its arguments.
  std::optional<std::string> command;
  std::vector<std::string> argv;
  std::vector<EnvEntry> env;       // added to the environment of the shim
  std::optional<std::string> cwd;  // absolute; none: where the shim is
  std::optional<TerminalSize> pty;
  bool takes_input = false;                          // else its standard input is empty
  std::optional<std::chrono::milliseconds> timeout;  // then it is cancelled
  std::chrono::milliseconds grace = kDefaultGrace;   // from SIGTERM to SIGKILL
  bool more_come = false;                            // so the next one may be prepared meanwhile
  bool output_given = false;  // its output streams come with its release: control/shim_start.h
  friend bool operator==(const Exec&, const Exec&) = default;
};
// SIGTERM to all processes of the command, then SIGKILL.
struct Cancel {
  StepId id;
  friend bool operator==(const Cancel&, const Cancel&) = default;
};
struct RollbackNotify {
  StepId step_id;
  friend bool operator==(const RollbackNotify&, const RollbackNotify&) = default;
};
struct Input {
  StepId id;
  std::string data;
  bool eof = false;  // nothing follows
  friend bool operator==(const Input&, const Input&) = default;
};
struct Resize {
  StepId id;
  TerminalSize size;
  friend bool operator==(const Resize&, const Resize&) = default;
};
// To the foreground processes of a terminal, else to all processes of the command.
struct Signal {
  StepId id;
  int number = 0;
  friend bool operator==(const Signal&, const Signal&) = default;
};

// --- From both ---

// From the host: so much output was taken. From the shim: so much input was.
struct Ack {
  StepId id;
  uint64_t bytes = 0;
  friend bool operator==(const Ack&, const Ack&) = default;
};

// --- From the shim ---

// The first message.
struct Ready {
  int64_t version = kProtocolVersion;
  friend bool operator==(const Ready&, const Ready&) = default;
};
struct StepStarted {
  StepId id;
  friend bool operator==(const StepStarted&, const StepStarted&) = default;
};
enum class Stream : uint8_t { kStdout, kStderr };
struct Output {
  StepId id;
  Stream stream = Stream::kStdout;
  std::string data;
  friend bool operator==(const Output&, const Output&) = default;
};
struct StepCompleted {
  StepId id;
  int exit_code = 0;  // as a shell says it: 128+n for signal n, 126 and 127 if it could not start
  std::optional<int> signal;         // what ended it
  bool timed_out = false;            // it was ended because of its timeout
  std::optional<std::string> error;  // why it could not be started
  friend bool operator==(const StepCompleted&, const StepCompleted&) = default;
};
// What the shim could not do or understand; nothing follows from it.
struct Problem {
  std::optional<StepId> id;
  std::string message;
  friend bool operator==(const Problem&, const Problem&) = default;
};

using HostMessage = std::variant<Exec, Cancel, RollbackNotify, Input, Resize, Signal, Ack>;
using ShimMessage = std::variant<Ready, StepStarted, Output, StepCompleted, Ack, Problem>;

// One line, without the newline. The other end takes it only if Validate() does.
std::string Encode(const HostMessage& message);
std::string Encode(const ShimMessage& message);

// The message of a line, without its newline. Members that are not known are ignored.
// kLimit: the line, or a value in it, is too long or too large. kUnsupported: the type is not known. kInvalid: not JSON, not an
// object, a member is missing or of another type or makes no sense. The error names type and member, and never repeats more of
// the line than the start of its type.
Result<HostMessage> DecodeHostMessage(std::string_view line);
Result<ShimMessage> DecodeShimMessage(std::string_view line);

// Would the other end understand exactly this message? Errors as of the decoder.
Status Validate(const HostMessage& message);
Status Validate(const ShimMessage& message);

}  // namespace sandglass::control

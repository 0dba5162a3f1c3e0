// Participant: somebody who takes part in the one loop of a server (server_loop.h): an interface with its clients, or what several of
// them share. Everything happens in the loop's thread, and nothing here blocks.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace sandglass::api {

// What a client that does not read can cause is bounded: while more than kAnswerQueue bytes wait for it, no further request of it is
// taken; while more than kOutputQueue do, a command's output is left with the command, which waits as it would for any pipe. If nothing
// was read for the stall timeout, output is dropped and counted instead, so that the world goes on; the next event says how much.
inline constexpr size_t kOutputQueue = size_t{256} << 10;
inline constexpr size_t kAnswerQueue = size_t{1} << 20;
inline constexpr std::chrono::milliseconds kStallTimeout{30'000};

// Whether the program has a reason to go on.
enum class Stay : uint8_t {
  kOn,
  kUntilDone,  // nothing more will be asked; what is under way comes to its end
  kNo,         // nobody is there to be answered; what is under way is ended
};

class Participant {
 public:
  virtual ~Participant() = default;

  // As those of session::LoopGuest.
  virtual void AddTo(std::vector<pollfd>& /*fds*/) const {}
  virtual std::optional<Instant> Deadline() const { return std::nullopt; }
  virtual void Work() {}

  virtual Stay stay() const { return Stay::kOn; }
  virtual bool has_unsent() const { return false; }
  // Sends what there is room for, and takes nothing: the program ends.
  virtual void Flush() {}

  // As those of Outlet.
  virtual void Tell(std::string_view /*event*/, const Json& /*payload*/) {}
  virtual size_t OutputRoom() const { return kOutputQueue; }
  virtual bool stalled() const { return false; }
};

}  // namespace sandglass::api

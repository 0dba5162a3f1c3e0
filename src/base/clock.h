// Clock: time enters through a constructor, so that tests decide what time it is. Implementations
// are thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sandglass {

// Nanoseconds since the Unix epoch.
struct Instant {
  int64_t ns = 0;
  friend auto operator<=>(Instant, Instant) = default;
};
inline Instant operator+(Instant at, std::chrono::nanoseconds by) { return {at.ns + by.count()}; }
inline std::chrono::nanoseconds operator-(Instant a, Instant b) {
  return std::chrono::nanoseconds(a.ns - b.ns);
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override;
};

// Never jumps, and counts from some point in the past: for waiting, not for people.
class SteadyClock final : public Clock {
 public:
  Instant Now() const override;
};

// So much later than now. Somebody who wants to wait for ever says milliseconds::max(), and that is the end of all time.
inline std::chrono::steady_clock::time_point SteadyDeadline(std::chrono::milliseconds time) {
  const auto now = std::chrono::steady_clock::now();
  constexpr auto kEnd = std::chrono::steady_clock::time_point::max();
  return time >= std::chrono::floor<std::chrono::milliseconds>(kEnd - now) ? kEnd : now + time;
}

// Nanoseconds by the coarse clock of the kernel, which stamps files on most file systems: to be compared with time stamps only.
int64_t StampingNow();

class FakeClock final : public Clock {
 public:
  explicit FakeClock(Instant start = {1'700'000'000'000'000'000}) : ns_(start.ns) {}
  Instant Now() const override { return {ns_.load()}; }
  void Advance(std::chrono::nanoseconds by) { ns_ += by.count(); }
  void Set(Instant at) { ns_ = at.ns; }

 private:
  std::atomic<int64_t> ns_;
};

}  // namespace sandglass

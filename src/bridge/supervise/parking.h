// Parking: while somebody is asked whether an operation may happen, calls that come meanwhile are parked: they wait for the answer
// without a thread of ours, and nothing changes. So many that their number stays bounded whatever commands do. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

namespace sandglass::bridge {

inline constexpr size_t kMaxParkedCalls = 10'000;

class Parking {
 public:
  explicit Parking(size_t most) : most_(most) {}
  // As often as Begin() was called, End() is.
  void Begin() { ++holds_; }
  // True: that was the last.
  bool End() { return --holds_ == 0; }
  bool is_on() const { return holds_ > 0; }

  // False: there is no room for one more.
  bool Take() {
    if (parked_.fetch_add(1) < most_) return true;
    --parked_;
    return false;
  }
  void Leave(size_t calls) { parked_ -= calls; }
  size_t parked() const { return parked_; }

 private:
  const size_t most_;
  std::atomic<size_t> holds_{0}, parked_{0};
};

}  // namespace sandglass::bridge

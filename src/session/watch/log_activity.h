// LogActivity: whether a log is at something that changes the store as a whole. Whoever announces or closes a step or takes one back
// holds a Busy meanwhile, several of them at once if need be; a verdict of the watcher that falls into that time is not final.
// Lock-free; any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace sandglass::session {

class LogActivity {
 public:
  class Busy {
   public:
    explicit Busy(LogActivity& activity) : activity_(activity) { ++activity_.begun_; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() { ++activity_.ended_; }

   private:
    LogActivity& activity_;
  };
  // The same number twice, and not a busy one: nothing happened in between. The ends are read first: if they are as many as what has
  // begun by a later look, nothing was under way at the earlier one.
  uint64_t count() const {
    const uint64_t ended = ended_;
    const uint64_t begun = begun_;
    return 2 * begun + (begun == ended ? 0 : 1);
  }
  static bool IsBusy(uint64_t count) { return count % 2 != 0; }

 private:
  std::atomic<uint64_t> begun_{0}, ended_{0};
};

}  // namespace sandglass::session

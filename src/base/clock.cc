#include "base/clock.h"

#include <ctime>

namespace sandglass {

Instant SystemClock::Now() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {now.tv_sec * 1'000'000'000LL + now.tv_nsec};
}

Instant SteadyClock::Now() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {now.tv_sec * 1'000'000'000LL + now.tv_nsec};
}

int64_t StampingNow() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace sandglass

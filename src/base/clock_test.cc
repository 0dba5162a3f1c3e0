#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sandglass {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ns;

TEST(Instant, DifferencesAndSumsAreDurations) {
  const Instant at{1000};
  EXPECT_EQ((at + 5ns).ns, 1005);
  EXPECT_EQ((at + 1s) - at, 1s);
  EXPECT_LT(at, at + 1ns);
}

TEST(FakeClock, MovesOnlyWhenTold) {
  FakeClock clock(Instant{50});
  EXPECT_EQ(clock.Now(), Instant{50});
  EXPECT_EQ(clock.Now(), Instant{50});
  clock.Advance(1s);
  EXPECT_EQ(clock.Now(), Instant{1'000'000'050});
  clock.Set(Instant{7});  // backwards, as a real clock may
  EXPECT_EQ(clock.Now(), Instant{7});
}

TEST(SystemClock, AgreesWithTheStandardLibrary) {
  const auto now_ns = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = now_ns();
  const Instant now = SystemClock().Now();
  EXPECT_GE(now.ns, before);
  EXPECT_LE(now.ns, now_ns());
}

}  // namespace
}  // namespace sandglass

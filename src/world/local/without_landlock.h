// The token of a world that may do without Landlock. Its own header, so that a search for it lists every place that weakens a world.
#pragma once

#include <string>
#include <string_view>

namespace sandglass::world {

// Where Landlock is to be had it is used all the same.
struct WithoutLandlock {
  // Who accepted it: "--without-landlock".
  explicit WithoutLandlock(std::string_view why) : reason(why) {}
  std::string reason;
};

// The option by which a person accepts it, for messages.
inline constexpr std::string_view kWithoutLandlockFlag = "--without-landlock";

}  // namespace sandglass::world

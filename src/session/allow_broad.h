// The token of a session whose project may be a whole home folder, or a folder of the system. Its own header, so that a search for it
// lists every place that allows that.
#pragma once

#include <string>
#include <string_view>

namespace sandglass::session {

// Never for /: all that a world hides or keeps lies inside it.
struct AllowBroadProject {
  // Who accepted it: "--allow-broad".
  explicit AllowBroadProject(std::string_view why) : reason(why) {}
  std::string reason;
};

// The option by which a person accepts it, for messages.
inline constexpr std::string_view kAllowBroadFlag = "--allow-broad";

}  // namespace sandglass::session

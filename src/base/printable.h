// Text for a terminal. Names and labels may hold any bytes, and bytes can steer a terminal: what is
// not plain UTF-8 text is shown as an escape. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace sandglass {

// One line, whatever the bytes: control characters (also those beyond ASCII) and invalid UTF-8 as
// \n, \t or \xff, a backslash as \\ only where something else was escaped, so that ordinary text
// stays as it is.
std::string PrintableName(std::string_view bytes);
// The same for text of many lines: line ends and tabs stay, and a backslash is no special case.
std::string PrintableText(std::string_view bytes);

// "17 B", "4.0 KiB", "1.3 GiB".
std::string PrintableSize(uint64_t bytes);
// Local time, "2024-05-01 12:00:01".
std::string PrintableTime(Instant at);

}  // namespace sandglass

// A name that nobody can guess, for tokens, sessions and suspended requests.
#pragma once

#include <string>

namespace sandglass::api::mcp {

// 128 random bits, in hexadecimal digits.
std::string RandomName();

}  // namespace sandglass::api::mcp

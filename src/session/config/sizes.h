// Values of settings as numbers. Pure; for this module.
#pragma once

#include <cstdint>
#include <optional>

#include "session/config/toml.h"

namespace sandglass::session::config {

// Bytes: a whole number above 0, or a text such as "512M" (K, M, G, T are powers of 1024). nullopt: neither.
std::optional<uint64_t> SizeOfValue(const TomlValue& value);
// Whole or not, finite and above 0.
std::optional<double> NumberOfValue(const TomlValue& value);

}  // namespace sandglass::session::config

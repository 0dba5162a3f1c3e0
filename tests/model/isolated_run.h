// Runs a check in a child process, so that a crash or a hang is a failure like any other: reported, and shrunk.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace sandglass::model {

// The failure in words, or nothing. The caller must have one thread only. A check that is not done in `patience` has failed.
std::optional<std::string> RunIsolated(const std::function<std::optional<std::string>()>& check,
                                       std::chrono::seconds patience);

}  // namespace sandglass::model

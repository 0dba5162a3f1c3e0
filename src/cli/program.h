// The program from its words to its exit code.
#pragma once

#include <span>
#include <string_view>

#include "cli/console.h"
#include "cli/exit_code.h"

namespace sandglass::cli {

// `words` without the program's own name.
ExitCode RunProgram(std::span<const std::string_view> words, StandardStreams streams);

}  // namespace sandglass::cli

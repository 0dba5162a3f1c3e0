// sandglass version.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "undo/journal_format.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kJsonOption, kHelpOption};

Status Run(const Arguments& /*arguments*/, Console& console) {
  if (console.wants_json()) {
    console.PrintJson(
        Json::Object({{"version", SANDGLASS_VERSION}, {"store_format", undo::kFormatVersion}}));
  } else {
    console.Print(fmt::format("sandglass {} (undo store format {})\n", SANDGLASS_VERSION,
                              undo::kFormatVersion));
  }
  return Ok();
}

}  // namespace

constinit const Command kVersionCommand{
    .name = "version",
    .summary = "print the version of the program and of its store format",
    .description =
        "Prints the version of the program and the format version of the undo stores that it reads "
        "and writes.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

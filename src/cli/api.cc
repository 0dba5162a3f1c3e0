// sandglass api: what programs can ask for, from the one table that all interfaces read.
#include <fmt/format.h>

#include "api/describe.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kJsonOption, kHelpOption};
constexpr Operand kOperands[] = {{"describe", ValueKind::kText, Arity::kOne,
                                  "the word `describe`: print operations, events and error codes"}};

Status Run(const Arguments& arguments, Console& console) {
  const std::string& word = arguments.operands().front();
  if (word != "describe")
    return Error(Code::kInvalid, fmt::format("api: '{}' should be 'describe'", word));
  if (console.wants_json())
    console.PrintJson(api::Description());
  else
    console.Print(api::DescriptionText());
  return Ok();
}

}  // namespace

constinit const Command kApiCommand{
    .name = "api",
    .summary = "describe what programs can ask for",
    .description =
        "Prints every operation, event and error code of the interface for programs (see serve). "
        "With --json each comes with its JSON Schema. What is listed but does not work yet is "
        "marked so, and is answered with the error `unsupported`.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

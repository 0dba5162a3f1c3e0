// sandglass help.
#include <fmt/format.h>

#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help_text.h"

namespace sandglass::cli {
namespace {

constexpr Option kManOption{
    .name = "man", .help = "print a manual page as roff", .visibility = Visibility::kHidden};
constexpr Option kOptions[] = {kHelpOption, kManOption};
constexpr Operand kOperands[] = {
    {"COMMAND", ValueKind::kCommand, Arity::kOptional, "the command to explain"}};

Status Run(const Arguments& arguments, Console& console) {
  const bool as_page = arguments.Has(kManOption.name);
  if (arguments.operands().empty()) {
    console.Print(as_page ? ManualPage() : GeneralHelp());
    return Ok();
  }
  const std::string& name = arguments.operands().front();
  const Command* command = FindCommand(name);
  if (command == nullptr)
    return Error(Code::kInvalid,
                 fmt::format("there is no command '{}'; see `sandglass help`", name));
  console.Print(as_page ? ManualPage(*command) : CommandHelp(*command));
  return Ok();
}

}  // namespace

constinit const Command kHelpCommand{
    .name = "help",
    .summary = "explain the program or one of its commands",
    .description =
        "Without COMMAND it lists all commands; with one it explains that command, its arguments "
        "and its options.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

// sandglass diff: what a step changed in text files, as a unified diff.
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/printable.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kProjectOption, kStoreOption, kUndoDirOption, kHelpOption};
constexpr Operand kOperands[] = {
    {"STEP", ValueKind::kStep, Arity::kOne, "the step's number, as history shows it"}};

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(auto reader, OpenReader(arguments));
  TRY_ASSIGN(const undo::StepDiff diff, reader.Diff(arguments.Step(0)));
  // A file's bytes must not steer the terminal; a program gets them as they are, so that patch can
  // use them.
  console.Print(console.out_is_terminal() ? PrintableText(diff.text) : diff.text);
  if (diff.missing.empty()) return Ok();
  console.KeepOutput();
  return undo::Refusal("the diff is not complete", diff.missing);
}

}  // namespace

constinit const Command kDiffCommand{
    .name = "diff",
    .summary = "print what one step changed as a unified diff",
    .description =
        "Compares the project before and after the step. Binary files are only named. On a "
        "terminal, control characters "
        "in files are shown as escapes; into a pipe or a file they go unchanged, so that patch "
        "understands the "
        "output. A path whose content cannot be told any more, because what was kept of it is "
        "damaged or missing, is named in a "
        "message, and the exit code is 1.\n\n"
        "Works while another process uses the store.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

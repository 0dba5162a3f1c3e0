// sandglass diff: what a step changed in text files, as a unified diff, or in short.
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <ranges>
#include <string>

#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/diff_stat.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kStatOption{
    .name = "stat",
    .help =
        "print one line for each path instead, with how many lines were added and removed, and of "
        "binary files the sizes, and a total"};
constexpr Option kOptions[] = {kStatOption, kProjectOption, kStoreOption, kUndoDirOption,
                               kHelpOption};
constexpr Operand kOperands[] = {
    {"STEP", ValueKind::kStep, Arity::kOptional,
     "the step's number, as history shows it; default: the newest step that changed something"}};

Result<StepId> NewestWithChanges(const undo::StoreReader& reader) {
  TRY_ASSIGN(const auto history, reader.History());
  for (const undo::HistoryEntry& entry : history | std::views::reverse) {
    if (entry.step && (entry.step->counts.total() != 0 || entry.step->damaged))
      return entry.step->id;
  }
  return Error(Code::kNotFound, "no step of the history has changed anything");
}

// The person at a terminal has not said which step is meant; a program gets nothing but the diff.
Result<StepId> ChosenStep(const Arguments& arguments, const undo::StoreReader& reader,
                          Console& console) {
  if (!arguments.operands().empty()) return arguments.Step(0);
  TRY_ASSIGN(const StepId newest, NewestWithChanges(reader));
  TRY_ASSIGN(const undo::StepInfo step, FindStep(reader, newest));
  if (console.out_is_terminal())
    console.Print(fmt::format("step {}: {}\n", step.id.value, PrintableName(step.label)));
  return newest;
}

size_t ColumnsOf(const Console& console) {
  constexpr size_t kUsual = 80;
  winsize size{};
  const bool known = ::ioctl(console.streams().out, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return known ? size.ws_col : kUsual;
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(auto reader, OpenReader(arguments));
  TRY_ASSIGN(const StepId step, ChosenStep(arguments, reader, console));
  TRY_ASSIGN(const undo::StepDiff diff, reader.Diff(step));
  if (arguments.Has(kStatOption.name)) {
    TRY_ASSIGN(const auto changes, reader.Changes(step));
    console.Print(DiffStat(changes, diff.text, ColumnsOf(console)));
  } else {
    // A file's bytes must not steer the terminal; a program gets them as they are, so that patch can
    // use them.
    console.Print(console.out_is_terminal() ? PrintableText(diff.text) : diff.text);
  }
  if (diff.missing.empty()) return Ok();
  console.KeepOutput();
  return undo::Refusal("the diff is not complete", diff.missing);
}

}  // namespace

constinit const Command kDiffCommand{
    .name = "diff",
    .summary = "print what one step changed as a unified diff",
    .description =
        "Compares the project before and after the step. Without STEP it takes the newest one that "
        "changed something, and on a terminal the first line says which. Binary files are only "
        "named. "
        "On a "
        "terminal, control characters "
        "in files are shown as escapes; into a pipe or a file they go unchanged, so that patch "
        "understands the "
        "output. A path whose content cannot be told any more, because what was kept of it is "
        "damaged or missing, or because "
        "someone else changed it after the step, is named in a message; the exit code is 1 then, "
        "and 3 "
        "if nothing but such changes is to blame.\n\n"
        "Works while another process uses the store.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

// sandglass show: one step, as a summary or as the full manifest.
#include <fmt/format.h>

#include <string>

#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/reports.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kProjectOption, kStoreOption, kUndoDirOption, kJsonOption,
                               kHelpOption};
constexpr Operand kOperands[] = {
    {"STEP", ValueKind::kStep, Arity::kOne, "the step's number, as history shows it"}};

std::string Heading(const undo::StepInfo& step) {
  std::string out = fmt::format("step {} ({}): {}\n", step.id.value, undo::KindName(step.kind),
                                PrintableName(step.label));
  if (step.damaged) return out + "damaged: its journal cannot be read to the end\n";
  out += fmt::format("from {} to {}\n", PrintableTime(step.opened), PrintableTime(step.closed));
  out += fmt::format("{}; the store copied {} and retains {}\n", CountsText(step.counts),
                     PrintableSize(step.copied_bytes), PrintableSize(step.retained_bytes));
  if (step.protection != undo::Protection::kFull)
    out +=
        "UNPROTECTED: it was not recorded in full; it cannot be undone exactly, and only with "
        "--force\n";
  return out;
}

std::string Line(const undo::Change& change) {
  const auto flag = FlagOf(change);
  return fmt::format("  {}{}{}\n", ChangeText(change), flag ? "  ! " : "", flag.value_or(""));
}

Status PrintManifest(const undo::StoreReader& reader, StepId id, Console& console) {
  TRY_ASSIGN(std::string text, reader.Show(id));
  TRY_ASSIGN(auto changes, reader.Changes(id));
  TRY_ASSIGN(Json manifest, ParseJson(text, text.size()));
  console.Print(WriteJson(manifest.Set("flagged", FlagsToJson(changes))) + '\n');
  return Ok();
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(auto reader, OpenReader(arguments));
  const StepId id = arguments.Step(0);
  if (console.wants_json()) {
    return PrintManifest(reader, id, console);
  }
  TRY_ASSIGN(auto step, FindStep(reader, id));
  TRY_ASSIGN(auto changes, reader.Changes(id));
  console.Print(Heading(step));
  for (const undo::Change& change : changes) console.Print(Line(change));
  return Ok();
}

}  // namespace

constinit const Command kShowCommand{
    .name = "show",
    .summary = "show what one step changed",
    .description =
        "Shows each path that the step created, modified, deleted or renamed, with its size before "
        "and after. Files that programs outside run or obey (hooks of git, settings of editors and "
        "agents) have a mark. "
        "With --json it prints the whole manifest: also every record of the step's journal and how "
        "content was kept.\n\n"
        "Works while another process uses the store.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

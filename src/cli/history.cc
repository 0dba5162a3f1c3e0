// sandglass history: the steps that can be undone, and edits in between that no step made.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/open_step.h"
#include "cli/reports.h"
#include "cli/store_access.h"
#include "undo/report_json.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kProjectOption, kStoreOption, kUndoDirOption, kJsonOption,
                               kHelpOption};

Json EntryToJson(const undo::HistoryEntry& entry) {
  if (entry.step) return Json::Object({{"step", ToJson(*entry.step)}});
  return Json::Object({{"barrier", ToJson(*entry.barrier)}});
}

std::string EmptyText(uint32_t redo_depth) {
  if (redo_depth == 0) return "the history is empty";
  return fmt::format("the history is empty; {} can be redone",
                     redo_depth == 1 ? "1 step" : fmt::format("{} steps", redo_depth));
}

bool Has(const std::vector<undo::HistoryEntry>& history, StepId id) {
  return std::ranges::any_of(
      history, [&](const undo::HistoryEntry& entry) { return entry.step && entry.step->id == id; });
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const undo::UndoPaths paths, FindExistingStore(arguments));
  // First, so that a step which ends meanwhile is not missing from both.
  const auto open = FindOpenStep(paths.store);
  TRY_ASSIGN(auto reader, undo::StoreReader::Open(paths));
  TRY_ASSIGN(auto history, reader.History());
  if (console.wants_json()) {
    Json entries = Json::Array();
    for (const undo::HistoryEntry& entry : history) entries.Append(EntryToJson(entry));
    Json json =
        Json::Object({{"history", std::move(entries)}, {"redo_steps", reader.redo_depth()}});
    console.PrintJson(json.Set("open", open ? ToJson(*open) : Json()));
    return Ok();
  }
  console.Print(HistoryText(history));
  if (open && !Has(history, open->header.id)) console.Print(OpenStepText(*open));
  if (history.empty() && !open) console.Note(EmptyText(reader.redo_depth()));
  return Ok();
}

}  // namespace

constinit const Command kHistoryCommand{
    .name = "history",
    .summary = "list the recorded steps, oldest first",
    .description =
        "Lists every step that the store holds: its number, when it ended, its kind, what it "
        "changed and the command "
        "that it stands for. A line with a dash is an edit that no step made: without "
        "--force, undo does not take back the step before it if that step touched an edited path. "
        "A step marked damaged cannot be read any more. "
        "Steps marked UNPROTECTED were not recorded in full: they cannot be undone exactly, and "
        "only with --force.\n\n"
        "A step that is under way is the last line, with the process that records it; one that was "
        "interrupted is there too, until the next command on the project puts it right.\n\n"
        "Works while another process uses the store.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

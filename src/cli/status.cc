// sandglass status: where the store is, what it holds, and how this place lets it keep content.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/held_text.h"
#include "cli/open_step.h"
#include "cli/reports.h"
#include "cli/store_access.h"
#include "session/former_world.h"
#include "session/request_server.h"
#include "undo/report_json.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kProjectOption, kStoreOption, kUndoDirOption, kJsonOption,
                               kHelpOption};

struct AbilityRow {
  std::string_view name;
  bool undo::StoreAbilities::* has;
  std::string_view meaning;
};
constexpr AbilityRow kAbilities[] = {
    {"handles", &undo::StoreAbilities::handles, "objects keep their identity through renames"},
    {"links", &undo::StoreAbilities::links, "deleting keeps the file itself instead of a copy"},
    {"reflinks", &undo::StoreAbilities::reflinks, "copies share their blocks with the original"},
    {"leases", &undo::StoreAbilities::leases, "open writers can be seen"},
    {"exchange", &undo::StoreAbilities::exchange, "large files can be emptied without a copy"},
    {"fine_timestamps", &undo::StoreAbilities::fine_timestamps,
     "every change moves the change time"},
};

struct Totals {
  size_t steps = 0, external_edits = 0, unprotected = 0;
  uint64_t copied_bytes = 0, retained_bytes = 0;
};

Totals Sum(const std::vector<undo::HistoryEntry>& history) {
  Totals totals;
  for (const undo::HistoryEntry& entry : history) {
    if (entry.barrier) ++totals.external_edits;
    if (!entry.step) continue;
    ++totals.steps;
    if (entry.step->protection != undo::Protection::kFull) ++totals.unprotected;
    totals.copied_bytes += entry.step->copied_bytes;
    totals.retained_bytes += entry.step->retained_bytes;
  }
  return totals;
}

// Everything that is known; what only an owner of the store learns is missing while another process
// owns it.
struct StoreStatus {
  undo::UndoPaths paths;
  bool store_exists = false;
  std::string hint;  // where there is no store, where one may be
  bool in_use = false;
  std::optional<pid_t> session;                   // that uses it
  std::optional<OpenStep> open_step = {};         // that is under way there
  std::vector<session::HeldOperation> held = {};  // that wait for somebody's answer
  Totals totals;
  std::optional<undo::StoreAbilities> abilities;
  std::optional<undo::RecoveryReport> recovery;
  uint32_t redo_depth = 0;
};

Result<StoreStatus> LookAsOwner(const undo::UndoPaths& paths, const Console& console) {
  TRY_ASSIGN(auto log, OpenLogSilently(paths, console));
  TRY_ASSIGN(auto history, log->History());
  return StoreStatus{.paths = paths,
                     .store_exists = true,
                     .totals = Sum(history),
                     .abilities = log->abilities(),
                     .recovery = log->recovery(),
                     .redo_depth = log->redo_depth()};
}

// One that does not answer says nothing about it.
std::vector<session::HeldOperation> HeldThere(const std::string& store) {
  auto answer = session::AskSession(store, session::HeldRequest{});
  return answer.ok() ? std::move(answer->held) : std::vector<session::HeldOperation>();
}

Result<StoreStatus> LookBesideOwner(const undo::UndoPaths& paths) {
  TRY_ASSIGN(auto reader, undo::StoreReader::Open(paths));
  TRY_ASSIGN(auto history, reader.History());
  return StoreStatus{.paths = paths,
                     .store_exists = true,
                     .in_use = true,
                     .session = session::LivingSession(paths.store),
                     .open_step = FindOpenStep(paths.store),
                     .held = HeldThere(paths.store),
                     .totals = Sum(history),
                     .redo_depth = reader.redo_depth()};
}

Result<StoreStatus> Look(const Arguments& arguments, const Console& console) {
  TRY_ASSIGN(auto paths, FindPaths(arguments));
  if (!StoreExists(paths)) return StoreStatus{.paths = paths, .hint = WhereElse(paths)};
  auto status = LookAsOwner(paths, console);
  if (status.ok() || status.error().code() != Code::kLocked) return status;
  return LookBesideOwner(paths);
}

Json AbilitiesToJson(const undo::StoreAbilities& abilities) {
  Json json = Json::Object({{"file_system", abilities.file_system}});
  for (const AbilityRow& row : kAbilities) json.Set(row.name, abilities.*row.has);
  return json;
}

// Who has the store: "session 1234, in step 3: make". A step that has changed nothing yet is not told.
std::string UserText(const StoreStatus& status) {
  if (!status.session) return "another process, which alone knows the rest";
  if (!status.open_step) return fmt::format("session {}", *status.session);
  return fmt::format("session {}, in step {}: {}", *status.session,
                     status.open_step->header.id.value,
                     PrintableName(status.open_step->header.label));
}

Json SessionToJson(const StoreStatus& status) {
  if (!status.session) return {};
  Json json = Json::Object({{"pid", *status.session}});
  json.Set("open_step", status.open_step ? ToJson(*status.open_step) : Json());
  return json.Set("held", HeldToJson(status.held));
}

Json StatusToJson(const StoreStatus& status) {
  Json json = Json::Object({{"project", BytesToJson(status.paths.project)},
                            {"store", BytesToJson(status.paths.store)},
                            {"store_exists", status.store_exists},
                            {"in_use", status.in_use},
                            {"steps", status.totals.steps},
                            {"redo_steps", status.redo_depth},
                            {"external_edits", status.totals.external_edits},
                            {"unprotected_steps", status.totals.unprotected},
                            {"copied_bytes", status.totals.copied_bytes},
                            {"retained_bytes", status.totals.retained_bytes}});
  json.Set("session", SessionToJson(status));
  json.Set("abilities", status.abilities ? AbilitiesToJson(*status.abilities) : Json());
  return json.Set("recovery", status.recovery ? ToJson(*status.recovery) : Json());
}

std::string AbilitiesText(const undo::StoreAbilities& abilities) {
  std::string out = fmt::format("file system  {}\n", abilities.file_system);
  for (const AbilityRow& row : kAbilities) {
    out += fmt::format("  {:<15} {:<3} {}\n", row.name, abilities.*row.has ? "yes" : "no",
                       row.meaning);
  }
  return out;
}

std::string StatusText(const StoreStatus& status) {
  std::string out = fmt::format("project      {}\n", PrintableName(status.paths.project));
  out += fmt::format("store        {}\n", PrintableName(status.paths.store));
  if (!status.store_exists) {
    out += "             not made yet: nothing has been recorded\n";
    return status.hint.empty() ? out : out + fmt::format("hint         {}\n", status.hint);
  }
  const Totals& totals = status.totals;
  out +=
      fmt::format("steps        {} ({} not recorded in full)\n", totals.steps, totals.unprotected);
  out += fmt::format("can redo     {}\n", status.redo_depth);
  out += fmt::format("edits        {} by someone else in between\n", totals.external_edits);
  out += fmt::format("copied       {}\n", PrintableSize(totals.copied_bytes));
  out += fmt::format("retained     {}\n", PrintableSize(totals.retained_bytes));
  if (status.in_use) out += fmt::format("in use       by {}\n", UserText(status));
  for (const session::HeldOperation& one : status.held)
    out += fmt::format("held         {}: {}; `sandglass approve {}` lets it happen\n",
                       PrintableName(one.id), HeldSentence(one.question), PrintableName(one.id));
  if (status.abilities) out += AbilitiesText(*status.abilities);
  return out;
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(StoreStatus status, Look(arguments, console));
  if (console.wants_json()) {
    console.PrintJson(StatusToJson(status));
    return Ok();
  }
  console.Print(StatusText(status));
  const std::string recovered = status.recovery ? RecoveryText(*status.recovery) : "";
  if (!recovered.empty()) console.Print(fmt::format("recovery:\n{}", recovered));
  return Ok();
}

}  // namespace

constinit const Command kStatusCommand{
    .name = "status",
    .summary = "show the store, its size and what this place allows",
    .description =
        "Shows where the undo store is, how many steps it holds and what they cost, and which ways "
        "of keeping content the "
        "file system offers. Copied bytes are copies in the store; retained bytes are deleted "
        "files that stay on disk "
        "until their step is forgotten.\n\n"
        "If a step, an undo or a redo was interrupted, this command puts it right first, like "
        "every command that uses "
        "the store alone, and says what it did. While a session uses the store, its process and "
        "the "
        "step that is under way are shown instead of what only it knows, and what safeguards hold "
        "until somebody answers: see approve.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

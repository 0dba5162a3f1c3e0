// crash_scenario: plays the scenarios of the crash harness, one mode per process:
//
//   crash_scenario list                        the scenarios, a JSON object per line
//   crash_scenario setup NAME PROJECT STORE    builds the tree and the history that the scenario presupposes
//   crash_scenario run NAME PROJECT STORE      plays it [--traced] [--on-refusal=abort|close]
//   crash_scenario reopen PROJECT STORE        opens the log twice and prints what that found
//   crash_scenario verify PROJECT STORE        opens the log, takes everything back, redoes it
//
// Exit code 0: the scenario ended in order, which includes that an operation was refused.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tests/crash/scenarios.h"

namespace sandglass::crash {
namespace {

using undo::UndoLog;
using undo::UndoPaths;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Arguments {
  std::string mode, name;
  UndoPaths paths;
  bool traced = false;
  OnRefusal on_refusal = OnRefusal::kAbort;
};

std::optional<Arguments> ParseArguments(int argc, char** argv) {
  std::vector<std::string> words;
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--traced")
      arguments.traced = true;
    else if (word == "--on-refusal=close")
      arguments.on_refusal = OnRefusal::kClose;
    else if (word != "--on-refusal=abort")
      words.push_back(word);
  }
  if (words.empty()) return std::nullopt;
  arguments.mode = words[0];
  if (arguments.mode == "list") return arguments;
  const bool named = arguments.mode == "setup" || arguments.mode == "run";
  if (words.size() != (named ? 4 : 3)) return std::nullopt;
  if (named) arguments.name = words[1];
  arguments.paths = {words[words.size() - 2], words.back()};
  return arguments;
}

int Fail(const Error& error) {
  fmt::print("{}\n", WriteJson(Json::Object({{"error", error.ToString()}})));
  return kFailed;
}

int List() {
  for (const Scenario& scenario : AllScenarios()) {
    Json edits = Json::Array();
    for (const std::string& path : scenario.edits) edits.Append(path);
    const Json row = Json::Object({{"name", scenario.name},
                                   {"about", scenario.about},
                                   {"evicts", scenario.eviction == Eviction::kOldest},
                                   {"after_crash_of", scenario.after_crash_of},
                                   {"crash_percent", scenario.crash_percent},
                                   {"pause_ms", scenario.pause_ms},
                                   {"edits", std::move(edits)}});
    fmt::print("{}\n", WriteJson(row));
  }
  return 0;
}

Result<Scenario> FindScenario(const std::string& name) {
  std::vector<Scenario> all = AllScenarios();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Scenario& scenario) { return scenario.name == name; });
  if (found == all.end()) return Error{Code::kNotFound, "no scenario " + name};
  return std::move(*found);
}

Stage MakeStage(const Scenario& scenario, const Arguments& arguments) {
  undo::UndoOptions options = CalmOptions();
  if (scenario.configure) scenario.configure(options);
  return Stage(arguments.paths, options, arguments.on_refusal);
}

Status SetUp(const Scenario& scenario, const Arguments& arguments) {
  TRY(BuildFixture(arguments.paths.project));
  Stage stage = MakeStage(scenario, arguments);
  stage.Say("state ");
  if (scenario.store == StoreBefore::kMissing) return Ok();
  TRY(stage.Open());
  return scenario.setup ? scenario.setup(stage) : Ok();
}

// A refusal has been reported on the way and is no failure of the program.
int Run(const Scenario& scenario, const Arguments& arguments) {
  Stage stage = MakeStage(scenario, arguments);
  if (arguments.traced) MarkerPort::BeginTrace();
  Status done = stage.Open();
  if (done.ok() && scenario.run) done = scenario.run(stage);
  if (!done.ok()) fmt::print("{}\n", done.error().ToString());
  return 0;
}

Json HistoryJson(const History& history) {
  Json ids = Json::Array();
  for (const int64_t id : history) ids.Append(id);
  return ids;
}

Json ConflictsJson(const undo::RewindReport& report) {
  Json list = Json::Array();
  for (const undo::Conflict& conflict : report.conflicts) {
    list.Append(
        fmt::format("{} {} {}", undo::ConflictName(conflict.kind), conflict.path, conflict.detail));
  }
  for (const std::string& path : report.kept) list.Append("kept " + path);
  return list;
}

bool FoundWork(const undo::RecoveryReport& report) {
  return report.recovered || report.interrupted_rewind;
}

Result<Json> DescribeOpened(const UndoLog& log) {
  const undo::RecoveryReport& report = log.recovery();
  TRY_ASSIGN(const History history, HistoryOf(log));
  Json answer = Json::Object({{"history", HistoryJson(history)},
                              {"recovered", report.recovered},
                              {"interrupted_rewind", report.interrupted_rewind},
                              {"redo_depth", log.redo_depth()},
                              {"conflicts", ConflictsJson(report.rewind)}});
  answer.Set("step", report.step ? Json(report.step->value) : Json());
  return answer;
}

Result<Json> Reopen(const UndoPaths& paths) {
  const MarkerPort port;
  TRY_ASSIGN(std::unique_ptr<UndoLog> log, UndoLog::Open(paths, CalmOptions()));
  port.Say("opened");
  TRY_ASSIGN(Json answer, DescribeOpened(*log));
  TRY_ASSIGN(const History first, HistoryOf(*log));
  log.reset();
  TRY_ASSIGN(log, UndoLog::Open(paths, CalmOptions()));
  TRY_ASSIGN(const History second, HistoryOf(*log));
  answer.Set("second_open_clean", !FoundWork(log->recovery()) && first == second);
  return answer;
}

// The steps that count for a rollback.
Result<uint32_t> StepsWithChanges(const UndoLog& log) {
  TRY_ASSIGN(const std::vector<undo::HistoryEntry> entries, log.History());
  const auto changed = [](const undo::HistoryEntry& entry) {
    return entry.step && entry.step->counts.total() > 0;
  };
  return static_cast<uint32_t>(std::count_if(entries.begin(), entries.end(), changed));
}

Result<Json> Verify(const UndoPaths& paths) {
  const MarkerPort port;
  TRY_ASSIGN(const std::unique_ptr<UndoLog> log, UndoLog::Open(paths, CalmOptions()));
  port.Say("opened");
  TRY_ASSIGN(const History history, HistoryOf(*log));
  Json answer =
      Json::Object({{"history", HistoryJson(history)}, {"recovered", FoundWork(log->recovery())}});
  TRY_ASSIGN(const uint32_t count, StepsWithChanges(*log));
  if (count == 0) return answer;
  TRY(log->Rollback(count));
  port.Say("unwound");
  TRY(log->Redo(count));
  port.Say("redone");
  return answer;
}

int Print(const Result<Json>& answer) {
  if (!answer.ok()) return Fail(answer.error());
  fmt::print("{}\n", WriteJson(*answer));
  return 0;
}

int Main(int argc, char** argv) {
  const std::optional<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments) {
    fmt::print(stderr,
               "usage: crash_scenario list | setup|run NAME PROJECT STORE | reopen|verify PROJECT "
               "STORE\n");
    return kUsage;
  }
  if (arguments->mode == "list") return List();
  if (arguments->mode == "reopen") return Print(Reopen(arguments->paths));
  if (arguments->mode == "verify") return Print(Verify(arguments->paths));
  const Result<Scenario> scenario = FindScenario(arguments->name);
  if (!scenario.ok()) return Fail(scenario.error());
  if (arguments->mode == "run") return Run(*scenario, *arguments);
  const Status done = SetUp(*scenario, *arguments);
  return done.ok() ? 0 : Fail(done.error());
}

}  // namespace
}  // namespace sandglass::crash

// The leak checker of a sanitizer build cannot work in a traced process.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main(int argc, char** argv) { return sandglass::crash::Main(argc, argv); }

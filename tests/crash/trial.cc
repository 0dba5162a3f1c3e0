#include "tests/crash/trial.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "base/json.h"

namespace sandglass::crash {
namespace {

constexpr size_t kMaxDetails = 6;  // of one comparison

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0) return Error::FromErrno(errno, "mkdir " + path);
  return Ok();
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Result<History> HistoryIn(const Json& answer) {
  const Json* ids = answer.Find("history");
  if (ids == nullptr || ids->AsArray() == nullptr)
    return Error{Code::kInvalid, "no history in the answer"};
  History history;
  for (const Json& id : *ids->AsArray()) history.push_back(id.AsInt().value_or(0));
  return history;
}

std::string EditOf(const std::string& path) { return "by a person: " + path; }

bool IsTrue(const Json& answer, std::string_view key) {
  const Json* value = answer.Find(key);
  return value != nullptr && value->AsBool().value_or(false);
}

std::vector<std::string> StringsIn(const Json& answer, std::string_view key) {
  std::vector<std::string> texts;
  const Json* list = answer.Find(key);
  if (list == nullptr || list->AsArray() == nullptr) return texts;
  for (const Json& item : *list->AsArray()) texts.push_back(WriteJson(item));
  return texts;
}

}  // namespace

Trial::Trial(std::string program, const ScenarioInfo& scenario, const Knowledge& knowledge,
             std::string folder)
    : program_(std::move(program)),
      scenario_(scenario),
      knowledge_(knowledge),
      folder_(std::move(folder)) {}

Result<Verdict> Trial::Run(const Deal& deal) {
  TRY(MakeFolders());
  TRY(SetUp());
  Verdict verdict;
  if (problems_.empty()) {
    TRY_ASSIGN(verdict.trace, RunTraced(scenario_.name, deal));
    TRY(JudgeEnd(verdict.trace, deal));
    TRY_ASSIGN(const TreePtr at_end, ReadTree());
    Pause();
    TRY(EditAsPerson());
    TRY(edited_.empty() ? JudgeReopening(at_end) : JudgeEdits());
  }
  verdict.problems = std::move(problems_);
  verdict.states = ledger_.states();
  verdict.refused = ledger_.refused();
  return verdict;
}

// The files under test lie apart from what the children print.
Status Trial::MakeFolders() const {
  TRY(MakeFolder(folder_));
  TRY(MakeFolder(folder_ + "/w"));
  return MakeFolder(folder_ + "/w/project");
}

Status Trial::SetUp() {
  TRY_ASSIGN(const Answer setup, RunPlainly("setup", {scenario_.base()}, LedgerSink()));
  if (!setup.end.ok() || ledger_.refused()) {
    Report("set-up failed", {setup.end.Describe(), ledger_.refusal(), setup.line});
    return Ok();
  }
  ledger_.BeginRun();
  if (scenario_.after_crash_of.empty()) return Ok();
  TRY_ASSIGN(const Trace crash,
             RunTraced(scenario_.after_crash_of,
                       {.deed = Deed::kKillAfter, .point = knowledge_.crash_point}));
  if (!crash.reached) Report("set-up failed", {"the scenario to be killed ended by itself"});
  Pause();
  return Ok();
}

void Trial::Pause() const {
  std::this_thread::sleep_for(std::chrono::milliseconds(scenario_.pause_ms));
}

std::vector<std::string> Trial::Arguments(const std::string& mode, const std::string& name) const {
  std::vector<std::string> arguments = {program_, mode};
  if (!name.empty()) arguments.push_back(name);
  arguments.push_back(folder_ + "/w/project");
  arguments.push_back(folder_ + "/w/store");
  return arguments;
}

Result<Trace> Trial::RunTraced(const std::string& name, const Deal& deal) {
  std::vector<std::string> arguments = Arguments("run", name);
  arguments.emplace_back("--traced");
  arguments.emplace_back(deal.on_refusal == OnRefusal::kAbort ? "--on-refusal=abort"
                                                              : "--on-refusal=close");
  TRY_ASSIGN(Child child, Child::Start(arguments, folder_ + "/run." + name + ".log", Traced::kYes));
  const TracePlan plan = {deal.selection, folder_ + "/w/", deal.point, deal.deed};
  const MarkerSink sink = LedgerSink();
  return Tracer(child, plan, sink).Run();
}

Result<Trial::Answer> Trial::RunPlainly(const std::string& mode,
                                        const std::vector<std::string>& more,
                                        const MarkerSink& sink) {
  const std::string log = folder_ + "/" + mode + ".log";
  TRY_ASSIGN(Child child,
             Child::Start(Arguments(mode, more.empty() ? "" : more.front()), log, Traced::kNo));
  TRY_ASSIGN(const ChildEnd end, child.Follow(sink));
  return Answer{end, LastLine(log)};
}

Result<TreePtr> Trial::ReadTree() const {
  TRY_ASSIGN(PlainTree tree, ReadPlainTree(folder_ + "/w/project"));
  return std::make_shared<const PlainTree>(std::move(tree));
}

MarkerSink Trial::LedgerSink() {
  return [this](std::string_view marker) -> Status {
    TRY_ASSIGN(TreePtr tree, ReadTree());
    TRY_ASSIGN(const std::vector<std::string> contradictions,
               ledger_.Take(marker, std::move(tree)));
    if (!contradictions.empty()) Report(fmt::format("at marker '{}'", marker), contradictions);
    return Ok();
  };
}

// A run that was not killed has to end by itself and in order; without a refusal it must have come to the same end as ever.
Status Trial::JudgeEnd(const Trace& trace, const Deal& deal) {
  if (trace.end.killed_by_us) return Ok();
  const std::string log = LastLine(folder_ + "/run." + scenario_.name + ".log");
  if (!trace.end.ok()) Report("run ended badly", {trace.end.Describe(), log});
  if (ledger_.refused()) {
    if (deal.deed == Deed::kNothing || deal.deed == Deed::kShorten) {
      Report("refused without a reason", {ledger_.refusal()});
    }
    return Ok();
  }
  if (!scenario_.after_crash_of.empty() || knowledge_.reference.empty()) return Ok();
  const Reference& states = ledger_.states();
  if (states.size() != knowledge_.reference.size()) {
    Report("run incomplete",
           {fmt::format("{} states of {}", states.size(), knowledge_.reference.size())});
    return Ok();
  }
  CompareWith("end of the run", knowledge_.reference.back().expected, states.back().expected.tree);
  return Ok();
}

// Where nothing of that name is left, a file is made, unless its folder is gone, too.
Status Trial::EditAsPerson() {
  for (const std::string& path : scenario_.edits) {
    std::ofstream file(folder_ + "/w/project/" + path, std::ios::trunc);
    file << EditOf(path) << std::flush;
    if (file.good()) edited_.push_back(path);
  }
  return Ok();
}

// What the rest of the tree becomes around the edits is a matter of the report. That they are there, or told of, is not.
Status Trial::JudgeEdits() {
  TreePtr tree;
  const auto look = [&](std::string_view) -> Status {
    TRY_ASSIGN(tree, ReadTree());
    return Ok();
  };
  TRY_ASSIGN(const Answer answer, RunPlainly("reopen", {}, look));
  const Result<Json> parsed = ParseJson(answer.line);
  if (!answer.end.ok() || !parsed.ok() || tree == nullptr) {
    Report("reopening failed", {answer.end.Describe(), answer.line});
    return Ok();
  }
  const std::vector<std::string> told = StringsIn(*parsed, "conflicts");
  for (const std::string& path : edited_) {
    const bool there = std::any_of(tree->begin(), tree->end(), [&](const auto& entry) {
      return entry.second.body == EditOf(path);
    });
    const bool is_told = std::any_of(told.begin(), told.end(), [&](const std::string& line) {
      return line.find(path) != std::string::npos;
    });
    if (!there && !is_told) Report("an edit is gone without a word", {path, answer.line});
  }
  if (!IsTrue(*parsed, "second_open_clean")) Report("the second opening found work", {answer.line});
  return Ok();
}

Status Trial::JudgeReopening(const TreePtr& at_end) {
  Reopened first;
  const auto look = [&](std::string_view) -> Status {
    TRY_ASSIGN(first.tree, ReadTree());
    return Ok();
  };
  TRY_ASSIGN(const Answer answer, RunPlainly("reopen", {}, look));
  Result<Json> parsed = ParseJson(answer.line);
  if (!answer.end.ok() || !parsed.ok() || first.tree == nullptr) {
    Report("reopening failed", {answer.end.Describe(), answer.line});
    return Ok();
  }
  TRY_ASSIGN(first.history, HistoryIn(*parsed));
  first.recovered = IsTrue(*parsed, "recovered") || IsTrue(*parsed, "interrupted_rewind");
  CompareWith(fmt::format("after reopening with history [{}]", HistoryText(first.history)),
              ledger_.After(first.history, at_end, knowledge_.reference, scenario_.eviction),
              first.tree);
  const bool changed = !PlainDifferences(*at_end, *first.tree).empty();
  if (changed && !first.recovered)
    Report("reopening changed the tree without saying so", {answer.line});
  if (!StringsIn(*parsed, "conflicts").empty()) {
    Report("conflicts where nobody edited", StringsIn(*parsed, "conflicts"));
  }
  if (!IsTrue(*parsed, "second_open_clean")) Report("the second opening found work", {answer.line});
  return JudgeSecondOpening(first);
}

// Another process: it must find nothing to recover, be able to take everything back, and to redo it.
Status Trial::JudgeSecondOpening(const Reopened& first) {
  std::map<std::string, TreePtr, std::less<>> trees;
  const auto look = [&](std::string_view marker) -> Status {
    TRY_ASSIGN(trees[std::string(marker)], ReadTree());
    return Ok();
  };
  TRY_ASSIGN(const Answer answer, RunPlainly("verify", {}, look));
  Result<Json> parsed = ParseJson(answer.line);
  if (!answer.end.ok() || !parsed.ok()) {
    Report("verification failed", {answer.end.Describe(), answer.line});
    return Ok();
  }
  TRY_ASSIGN(const History history, HistoryIn(*parsed));
  if (IsTrue(*parsed, "recovered") || history != first.history) {
    Report("the next process found another log", {answer.line});
  }
  const ExpectedTree unchanged{first.tree, {}};
  if (trees.contains("opened"))
    CompareWith("after the next process opened", unchanged, trees["opened"]);
  if (trees.contains("unwound")) {
    CompareWith(fmt::format("after taking back [{}]", HistoryText(history)),
                ledger_.Before(history, knowledge_.reference), trees["unwound"]);
  }
  if (trees.contains("redone")) CompareWith("after redoing all of it", unchanged, trees["redone"]);
  return Ok();
}

void Trial::CompareWith(const std::string& what, const Result<ExpectedTree>& expected,
                        const TreePtr& got) {
  if (!expected.ok()) {
    Report(what, {expected.error().message()});
    return;
  }
  const std::vector<std::string> differences = expected->Differences(*got);
  if (!differences.empty()) Report(what, differences);
}

void Trial::Report(const std::string& what, const std::vector<std::string>& details) {
  for (size_t i = 0; i < std::min(details.size(), kMaxDetails); ++i) {
    if (!details[i].empty()) problems_.push_back(what + ": " + details[i]);
  }
  if (details.size() > kMaxDetails) {
    problems_.push_back(fmt::format("{}: and {} more", what, details.size() - kMaxDetails));
  }
}

}  // namespace sandglass::crash

#include "tests/crash/sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "base/json.h"

namespace sandglass::crash {
namespace {

constexpr uint64_t kMaxKept = 20;  // folders of failed trials that stay, and failures told in full
constexpr size_t kProgressEvery = 1000;

Result<ScenarioInfo> ParseScenario(const std::string& line) {
  TRY_ASSIGN(const Json row, ParseJson(line));
  ScenarioInfo info;
  TRY_ASSIGN(info.name, row.GetString("name"));
  TRY_ASSIGN(info.about, row.GetString("about"));
  TRY_ASSIGN(const bool evicts, row.GetBool("evicts"));
  info.eviction = evicts ? Eviction::kOldest : Eviction::kNone;
  TRY_ASSIGN(info.after_crash_of, row.GetString("after_crash_of"));
  TRY_ASSIGN(const uint64_t percent, row.GetUint("crash_percent"));
  info.crash_percent = static_cast<uint32_t>(percent);
  TRY_ASSIGN(const uint64_t pause, row.GetUint("pause_ms"));
  info.pause_ms = static_cast<uint32_t>(pause);
  const Json* edits = row.Find("edits");
  if (edits == nullptr || edits->AsArray() == nullptr) return info;
  for (const Json& path : *edits->AsArray()) {
    if (path.AsString() != nullptr) info.edits.push_back(*path.AsString());
  }
  return info;
}

Result<std::vector<ScenarioInfo>> ListScenarios(const std::string& program,
                                                const std::string& output) {
  TRY_ASSIGN(Child child, Child::Start({program, "list"}, output, Traced::kNo));
  TRY_ASSIGN(const ChildEnd end, child.Follow([](std::string_view) { return Ok(); }));
  if (!end.ok()) return Error{Code::kIo, fmt::format("{} list: {}", program, end.Describe())};
  std::vector<ScenarioInfo> scenarios;
  std::ifstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    TRY_ASSIGN(ScenarioInfo info, ParseScenario(line));
    scenarios.push_back(std::move(info));
  }
  return scenarios;
}

std::string_view DeedName(Deed deed) {
  switch (deed) {
    case Deed::kNothing:
      return "undisturbed";
    case Deed::kKillBefore:
      return "killed before";
    case Deed::kKillAfter:
      return "killed after";
    case Deed::kFailNoSpace:
      return "ENOSPC from";
    case Deed::kFailIo:
      return "EIO from";
    case Deed::kShorten:
      return "short";
  }
  CHECK(false);
}

std::string_view FaultName(Fault fault) {
  switch (fault) {
    case Fault::kKill:
      return "kill";
    case Fault::kNoSpace:
      return "enospc";
    case Fault::kIo:
      return "eio";
    case Fault::kShort:
      return "short";
  }
  CHECK(false);
}

std::string_view SelectionName(CallSelection selection) {
  switch (selection) {
    case CallSelection::kDistinct:
      return "distinct";
    case CallSelection::kChanging:
      return "changing";
    case CallSelection::kTouching:
      return "touching";
    case CallSelection::kSpace:
    case CallSelection::kShortable:
      return "";  // what --inject chooses
  }
  CHECK(false);
}

}  // namespace

Result<SweepSummary> Sweep::Run() {
  TRY_ASSIGN(std::vector<ScenarioInfo> scenarios, Scenarios());
  for (ScenarioInfo& info : scenarios) tallies_.push_back({.info = std::move(info)});
  TRY(LearnAll());
  if (options_.list_calls) {
    PrintCalls();
  } else {
    const std::vector<Job> jobs = Jobs();
    TRY(Spread(jobs.size(), [&](size_t i) {
      if (i > 0 && i % kProgressEvery == 0) {
        MutexLock lock(mutex_);
        fmt::print("  {} of {} points\n", i, jobs.size());
        std::fflush(stdout);
      }
      return RunJob(jobs[i]);
    }));
    TRY(WriteResults());
  }
  rmdir(folder_.c_str());  // stays when a trial's folder was kept
  return Summary();
}

Status Sweep::MakeFolder() {
  if (!folder_.empty()) return Ok();
  // Resolved, because the tracer compares with what /proc says.
  std::array<char, PATH_MAX> resolved;
  if (realpath(options_.folder.c_str(), resolved.data()) == nullptr) {
    return Error::FromErrno(errno, options_.folder);
  }
  std::string pattern = std::string(resolved.data()) + "/crash-sweep-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return Error::FromErrno(errno, "mkdtemp " + pattern);
  folder_ = pattern;
  return Ok();
}

Result<std::vector<ScenarioInfo>> Sweep::Scenarios() {
  TRY(MakeFolder());
  const std::string output = folder_ + "/list";
  TRY_ASSIGN(std::vector<ScenarioInfo> all, ListScenarios(options_.program, output));
  unlink(output.c_str());
  if (options_.list) rmdir(folder_.c_str());
  std::erase_if(all, [&](const ScenarioInfo& info) {
    return fnmatch(options_.scenario.c_str(), info.name.c_str(), 0) != 0;
  });
  if (all.empty()) return Error{Code::kNotFound, "no scenario matches " + options_.scenario};
  return all;
}

Status Sweep::LearnAll() {
  return Spread(tallies_.size(), [&](size_t i) { return Learn(tallies_[i], options_.calls); });
}

// A scenario that begins with the crash of another one learns that one first; the few that do are not worth sharing it. Where that
// one is killed must not depend on what this sweep counts.
Status Sweep::Learn(ScenarioTally& tally, CallSelection selection) {
  const bool stands_alone = tally.info.after_crash_of.empty();
  if (!stands_alone) {
    ScenarioTally base{.info = {.name = tally.info.after_crash_of}};
    TRY(Learn(base, CallSelection::kChanging));
    tally.knowledge.reference = base.knowledge.reference;
    tally.knowledge.crash_point = base.knowledge.calls.size() * tally.info.crash_percent / 100;
  }
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 2; ++i) {
    std::string folder;
    TRY_ASSIGN(Verdict verdict, RunTrial(tally, {.selection = selection}, folder));
    CountUndisturbed(tally, verdict.problems, folder);
    TRY(CleanUp(verdict, folder));
    verdicts.push_back(std::move(verdict));
  }
  tally.knowledge.calls = verdicts[0].trace.calls;
  if (!stands_alone) return Ok();
  Result<Reference> merged = MergeReferences(verdicts[0].states, verdicts[1].states);
  if (merged.ok()) {
    tally.knowledge.reference = std::move(merged).value();
  } else {
    CountUndisturbed(tally, {merged.error().message()}, "none");
  }
  return Ok();
}

void Sweep::CountUndisturbed(ScenarioTally& tally, const std::vector<std::string>& problems,
                             const std::string& folder) {
  if (problems.empty()) return;
  MutexLock lock(mutex_);
  tally.mismatches++;
  if (tally.first_problem.empty()) tally.first_problem = problems.front();
  fmt::print("{} undisturbed (folder {})\n", tally.info.name, folder);
  for (const std::string& problem : problems) fmt::print("    {}\n", problem);
  std::fflush(stdout);
}

void Sweep::PrintCalls() const {
  for (const ScenarioTally& tally : tallies_) {
    for (size_t i = 0; i < tally.knowledge.calls.size(); ++i) {
      fmt::print("{} {} {}\n", tally.info.name, i, tally.knowledge.calls[i].row->name);
    }
  }
}

std::vector<Deed> Sweep::DeedsAt(const SeenCall& call) const {
  switch (options_.fault) {
    case Fault::kKill:
      if (options_.when) return {*options_.when};
      // Looking changes nothing: after it the files are as before it.
      if (options_.calls == CallSelection::kDistinct && call.effect == Effect::kNone) {
        return {Deed::kKillBefore};
      }
      return {Deed::kKillBefore, Deed::kKillAfter};
    case Fault::kNoSpace:
      return {Deed::kFailNoSpace};
    case Fault::kIo:
      return {Deed::kFailIo};
    case Fault::kShort:
      return {Deed::kShorten};
  }
  CHECK(false);
}

std::vector<Sweep::Job> Sweep::Jobs() const {
  std::vector<Job> jobs;
  uint64_t number = 0;
  for (size_t s = 0; s < tallies_.size(); ++s) {
    const std::vector<SeenCall>& calls = tallies_[s].knowledge.calls;
    for (size_t point = 0; point < calls.size(); ++point) {
      if (options_.point && *options_.point != point) continue;
      for (const Deed deed : DeedsAt(calls[point])) {
        if (number++ % options_.sample != 0) continue;
        const auto on_refusal = point % 2 == 0 ? OnRefusal::kAbort : OnRefusal::kClose;
        jobs.push_back({s, {options_.calls, deed, point, on_refusal}});
      }
    }
  }
  return jobs;
}

Result<Verdict> Sweep::RunTrial(const ScenarioTally& tally, const Deal& deal, std::string& folder) {
  folder = fmt::format("{}/{}", folder_, next_folder_++);
  return Trial(options_.program, tally.info, tally.knowledge, folder).Run(deal);
}

Status Sweep::RunJob(const Job& job) {
  std::string folder;
  TRY_ASSIGN(const Verdict verdict, RunTrial(tallies_[job.scenario], job.deal, folder));
  Count(job, verdict, folder);
  return CleanUp(verdict, folder);
}

void Sweep::Count(const Job& job, const Verdict& verdict, const std::string& folder) {
  MutexLock lock(mutex_);
  ScenarioTally& tally = tallies_[job.scenario];
  const auto& calls = verdict.trace.calls;
  const bool reached = verdict.trace.reached;
  (reached ? tally.points : tally.unreached)++;
  if (reached && calls[job.deal.point].row != tally.knowledge.calls[job.deal.point].row)
    tally.moved++;
  if (verdict.refused) tally.refusals++;
  if (verdict.problems.empty()) return;
  tally.mismatches++;
  if (tally.first_problem.empty()) tally.first_problem = verdict.problems.front();
  if (kept_ >= kMaxKept) return;
  const char* call =
      job.deal.point < calls.size() ? calls[job.deal.point].row->name : "(not reached)";
  fmt::print("{} {} call {} {}\n", tally.info.name, DeedName(job.deal.deed), job.deal.point, call);
  for (const std::string& problem : verdict.problems) fmt::print("    {}\n", problem);
  fmt::print("    folder: {}\n    replay: {}\n", folder, ReplayCommand(tally.info, job.deal));
  std::fflush(stdout);
}

Status Sweep::CleanUp(const Verdict& verdict, const std::string& folder) {
  if (options_.keep) {
    fmt::print("kept {}\n", folder);
    return Ok();
  }
  if (!verdict.problems.empty()) {
    MutexLock lock(mutex_);
    if (kept_++ < kMaxKept) return Ok();
  }
  const Fd parent(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return Error::FromErrno(errno, "open " + folder_);
  return RemoveTreeAt(parent.get(), folder.substr(folder_.size() + 1).c_str());
}

std::string Sweep::ReplayCommand(const ScenarioInfo& scenario, const Deal& deal) const {
  std::string command =
      fmt::format("crash_sweep --scenario '{}' --point {}", scenario.name, deal.point);
  if (options_.fault != Fault::kKill)
    command += fmt::format(" --inject {}", FaultName(options_.fault));
  if (const std::string_view name = SelectionName(options_.calls); !name.empty()) {
    command += fmt::format(" --calls {}", name);
  }
  if (deal.deed == Deed::kKillBefore) command += " --when before";
  if (deal.deed == Deed::kKillAfter) command += " --when after";
  return command;
}

Status Sweep::Spread(size_t count, const std::function<Status(size_t)>& work) const {
  std::atomic<size_t> next{0};
  std::vector<std::optional<Error>> failures(options_.workers);
  std::vector<std::thread> workers;
  workers.reserve(options_.workers);
  for (uint32_t w = 0; w < options_.workers; ++w) {
    workers.emplace_back([&, w] {
      for (size_t i = next++; i < count; i = next++) {
        if (Status done = work(i); !done.ok()) {
          failures[w] = done.error();
          next = count;  // the others stop as well
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const std::optional<Error>& failure : failures) {
    if (failure) return *failure;
  }
  return Ok();
}

Status Sweep::WriteResults() const {
  if (options_.results.empty()) return Ok();
  const std::string suite = options_.fault == Fault::kKill
                                ? "crash-sweep"
                                : fmt::format("crash-sweep-{}", FaultName(options_.fault));
  std::ofstream file(options_.results, std::ios::app);
  for (const ScenarioTally& tally : tallies_) {
    const Json line = Json::Object({{"suite", suite},
                                    {"fs", options_.file_system},
                                    {"test", tally.info.name},
                                    {"status", tally.mismatches == 0 ? "passed" : "failed"},
                                    {"reason", tally.first_problem}});
    file << WriteJson(line) << "\n";
  }
  file.flush();
  if (!file) return Error{Code::kIo, "cannot write " + options_.results};
  return Ok();
}

SweepSummary Sweep::Summary() const {
  SweepSummary summary{.scenarios = tallies_};
  for (const ScenarioTally& tally : tallies_) {
    summary.points += tally.points;
    summary.mismatches += tally.mismatches;
  }
  return summary;
}

}  // namespace sandglass::crash

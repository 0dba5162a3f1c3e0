// sandglass doctor: tries every protection and says which ones hold here.
#include "session/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/run_options.h"
#include "session/probe.h"

namespace sandglass::cli {
namespace {

using session::Finding;
using session::Verdict;

// What the program runs in the world that it examines.
constexpr Option kProbeOption{.name = "probe",
                              .value = ValueKind::kText,
                              .value_name = "TARGETS",
                              .help = "try to reach these targets, and tell",
                              .visibility = Visibility::kHidden};
constexpr Option kOptions[] = {kJsonOption, kProbeOption, kHelpOption};

std::string_view Mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::kProtects:
      return "✓";
    case Verdict::kAbsent:
      return "–";
    case Verdict::kFails:
      return "✗";
    case Verdict::kUnchecked:
      return "?";
  }
  return "";
}

std::string FindingText(const Finding& finding) {
  std::string text =
      fmt::format("{} {:<16}  {}\n", Mark(finding.verdict), finding.name, finding.text);
  if (!finding.remedy.empty()) text += fmt::format("  {:<16}  → {}\n", "", finding.remedy);
  return text;
}

Json ToJson(const std::vector<Finding>& findings) {
  Json list = Json::Array();
  for (const Finding& finding : findings) {
    list.Append(Json::Object({{"name", finding.name},
                              {"verdict", session::VerdictName(finding.verdict)},
                              {"text", finding.text},
                              {"remedy", finding.remedy}}));
  }
  return Json::Object({{"findings", std::move(list)}});
}

Result<std::vector<Finding>> Examine() {
  std::error_code error;
  const std::string program = std::filesystem::canonical("/proc/self/exe", error).native();
  if (error) return Error::FromErrno(error.value(), "find this program");
  TRY_ASSIGN(const std::string shim, FindShim());
  std::vector<Finding> findings = session::ExamineMachine();
  std::ranges::move(session::ExamineWorld({program, "doctor", "--probe"},
                                          session::RunInLocalWorld(program, shim)),
                    std::back_inserter(findings));
  return findings;
}

Status RunTheProbe(const std::string& text, Console& console) {
  TRY_ASSIGN(const session::ProbeTargets targets, session::ParseTargets(text));
  console.Print(session::RunProbe(targets));
  return Ok();
}

Status Run(const Arguments& arguments, Console& console) {
  if (arguments.Has(kProbeOption.name))
    return RunTheProbe(arguments.Value(kProbeOption.name), console);
  TRY_ASSIGN(const std::vector<Finding> findings, Examine());
  if (console.wants_json()) {
    console.PrintJson(ToJson(findings));
  } else {
    for (const Finding& finding : findings) console.Print(FindingText(finding));
  }
  const auto bad = std::ranges::count_if(findings, [](const Finding& finding) {
    return finding.verdict == Verdict::kFails || finding.verdict == Verdict::kUnchecked;
  });
  if (bad == 0) return Ok();
  console.KeepOutput();
  return Error(Code::kUnsupported,
               fmt::format("{} of {} protections do not hold here", bad, findings.size()));
}

}  // namespace

constinit const Command kDoctorCommand{
    .name = "doctor",
    .summary = "try every protection of a world and say which ones hold on this machine",
    .description =
        "Builds a world around a scratch project in your home folder, tries to break out of it in "
        "all the ways that it is meant to stop, and undoes the one change that is allowed. What is "
        "marked with – is not there and is refused when it is asked for; what is marked with ✗ "
        "does not hold. Where there is something to do about it, the line below says what.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

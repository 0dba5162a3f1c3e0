#include "tests/crash/sweep_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string_view>

namespace sandglass::crash {
namespace {

using Setter = Status (*)(SweepOptions& options, const std::string& value);

// One option: parsing and help read the same row.
struct OptionRow {
  std::string_view name;
  std::string_view value;  // what the help calls it; "": the option takes none
  std::string_view help;
  Setter set;
};

Error BadValue(const std::string& value) {
  return Error{Code::kInvalid, fmt::format("'{}' is no value for this option", value)};
}

template <class T>
Status SetNumber(T& target, const std::string& value) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), target);
  if (error != std::errc{} || end != value.data() + value.size()) return BadValue(value);
  return Ok();
}

Status SetFault(SweepOptions& options, const std::string& value) {
  if (value == "enospc")
    options.fault = Fault::kNoSpace;
  else if (value == "eio")
    options.fault = Fault::kIo;
  else if (value == "short")
    options.fault = Fault::kShort;
  else
    return BadValue(value);
  options.calls = value == "short" ? CallSelection::kShortable : CallSelection::kSpace;
  return Ok();
}

Status SetCalls(SweepOptions& options, const std::string& value) {
  if (value == "distinct")
    options.calls = CallSelection::kDistinct;
  else if (value == "changing")
    options.calls = CallSelection::kChanging;
  else if (value == "touching")
    options.calls = CallSelection::kTouching;
  else
    return BadValue(value);
  return Ok();
}

Status SetWhen(SweepOptions& options, const std::string& value) {
  if (value == "before")
    options.when = Deed::kKillBefore;
  else if (value == "after")
    options.when = Deed::kKillAfter;
  else
    return BadValue(value);
  return Ok();
}

// clang-format off
constexpr OptionRow kOptions[] = {
    {"--scenario", "PATTERN", "only scenarios that match (* and ?)",
     [](SweepOptions& o, const std::string& v) -> Status { o.scenario = v; return Ok(); }},
    {"--point", "K", "only the call of this number",
     [](SweepOptions& o, const std::string& v) -> Status { return SetNumber(o.point.emplace(), v); }},
    {"--when", "before|after", "kill only before or only after the call", SetWhen},
    {"--inject", "enospc|eio|short", "make the call fail instead of killing", SetFault},
    {"--calls", "distinct|changing|touching", "points: where files can differ (default), at changes only, at all calls", SetCalls},
    {"--sample", "N", "every Nth point only",
     [](SweepOptions& o, const std::string& v) -> Status { return SetNumber(o.sample, v); }},
    {"--min-points", "N", "fail when there are fewer points",
     [](SweepOptions& o, const std::string& v) -> Status { return SetNumber(o.min_points, v); }},
    {"--min-scenarios", "N", "fail when there are fewer scenarios",
     [](SweepOptions& o, const std::string& v) -> Status { return SetNumber(o.min_scenarios, v); }},
    {"--workers", "N", "trials at a time (default: two per CPU)",
     [](SweepOptions& o, const std::string& v) -> Status { return SetNumber(o.workers, v); }},
    {"--program", "FILE", "the scenario program (default: crash_scenario beside this one)",
     [](SweepOptions& o, const std::string& v) -> Status { o.program = v; return Ok(); }},
    {"--folder", "DIR", "where trials happen (default: $SANDGLASS_TEST_DIR, $TMPDIR, /tmp)",
     [](SweepOptions& o, const std::string& v) -> Status { o.folder = v; return Ok(); }},
    {"--list", "", "print the scenarios and end",
     [](SweepOptions& o, const std::string&) -> Status { o.list = true; return Ok(); }},
    {"--list-calls", "", "print the points of the scenarios and end",
     [](SweepOptions& o, const std::string&) -> Status { o.list_calls = true; return Ok(); }},
    {"--keep", "", "keep the folder of every trial",
     [](SweepOptions& o, const std::string&) -> Status { o.keep = true; return Ok(); }},
    {"--help", "", "print this", 
     [](SweepOptions& o, const std::string&) -> Status { o.help = true; return Ok(); }},
};
// clang-format on

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultFolder() {
  for (const char* name : {"SANDGLASS_TEST_DIR", "TMPDIR"}) {
    if (std::string folder = FromEnvironment(name); !folder.empty()) return folder;
  }
  return "/tmp";
}

std::string ScenarioProgramBesideUs() {
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view self(path.data(), length < 0 ? 0 : static_cast<size_t>(length));
  return std::string(self.substr(0, self.rfind('/') + 1)) + "crash_scenario";
}

// Handles argv[i] and returns how many arguments it took.
Result<int> ParseOne(SweepOptions& options, int argc, char** argv, int i) {
  const std::string_view argument = argv[i];
  const auto* row =
      std::find_if(std::begin(kOptions), std::end(kOptions),
                   [&](const OptionRow& candidate) { return candidate.name == argument; });
  if (row == std::end(kOptions))
    return Error{Code::kInvalid, fmt::format("no option {}", argument)};
  if (row->value.empty()) {
    TRY(row->set(options, ""));
    return 1;
  }
  if (i + 1 >= argc) return Error{Code::kInvalid, fmt::format("{} needs {}", argument, row->value)};
  if (Status set = row->set(options, argv[i + 1]); !set.ok())
    return set.error().WithContext(argument);
  return 2;
}

}  // namespace

Result<SweepOptions> ParseSweepOptions(int argc, char** argv) {
  SweepOptions options;
  options.program = ScenarioProgramBesideUs();
  options.folder = DefaultFolder();
  options.results = FromEnvironment("SANDGLASS_EXTRA_RESULTS");
  if (std::string name = FromEnvironment("SANDGLASS_TEST_FS"); !name.empty())
    options.file_system = name;
  for (int i = 1; i < argc;) {
    TRY_ASSIGN(const int taken, ParseOne(options, argc, argv, i));
    i += taken;
  }
  if (options.sample == 0 || options.workers == 0) {
    return Error{Code::kInvalid, "--sample and --workers must be at least 1"};
  }
  return options;
}

std::string SweepUsage() {
  std::string text = "usage: crash_sweep [OPTION...]\n";
  for (const OptionRow& row : kOptions) {
    text += fmt::format("  {:32} {}\n", fmt::format("{} {}", row.name, row.value), row.help);
  }
  return text;
}

}  // namespace sandglass::crash

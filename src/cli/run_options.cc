#include "cli/run_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/rel_path.h"
#include "cli/project_choice.h"
#include "cli/store_access.h"
#include "session/project_checks.h"

namespace sandglass::cli {
namespace {

namespace fs = std::filesystem;

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};
constexpr Unit kSizes[] = {
    {"", 1}, {"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}};
constexpr Unit kTimes[] = {{"", 1'000}, {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};

Result<uint64_t> ParseWithUnit(const Option& option, std::string_view text,
                               std::span<const Unit> units, std::string_view example) {
  const Error wrong(Code::kInvalid,
                    fmt::format("--{}: '{}' should look like {}", option.name, text, example));
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(stop, static_cast<size_t>(text.data() + text.size() - stop));
  const auto unit = std::ranges::find(units, suffix, &Unit::suffix);
  uint64_t value = 0;
  if (error != std::errc() || number == 0 || unit == units.end() ||
      __builtin_mul_overflow(number, unit->factor, &value))
    return wrong;
  return value;
}

Result<double> ParseCpus(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(value) || value <= 0)
    return Error(Code::kInvalid, fmt::format("--cpus: '{}' should look like 1.5", text));
  return value;
}

// What the command line says over what files say.
Result<world::Limits> LimitsFor(const Arguments& arguments,
                                const session::config::SandboxConfig& config) {
  world::Limits limits{.memory_bytes = config.memory_bytes,
                       .cpus = config.cpus,
                       .pids = config.pids,
                       .file_bytes = config.file_bytes};
  if (arguments.Has(kMemoryOption.name)) {
    TRY_ASSIGN(limits.memory_bytes, SizeOf(arguments, kMemoryOption));
  }
  if (arguments.Has(kCpusOption.name)) {
    TRY_ASSIGN(limits.cpus, ParseCpus(arguments.Value(kCpusOption.name)));
  }
  if (arguments.Has(kPidsOption.name))
    limits.pids = std::strtoull(arguments.Value(kPidsOption.name).c_str(), nullptr, 10);
  if (arguments.Has(kFileSizeOption.name)) {
    TRY_ASSIGN(limits.file_bytes, SizeOf(arguments, kFileSizeOption));
  }
  return limits;
}

Result<std::string> StateFolder() {
  TRY_ASSIGN(const std::string registry, undo::RegistryLocation());
  const std::string state = fs::path(registry).parent_path().native();
  std::error_code error;
  fs::create_directories(state, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("make the state folder {}", state));
  return state;
}

// Where the world of a project keeps its own files from one session to the next.
Result<std::string> LayerFor(const std::string& state, const std::string& project) {
  const std::string layer = fmt::format("{}/worlds/{}", state, FolderNameFor(project));
  std::error_code error;
  fs::create_directories(layer, error);
  if (!error) fs::permissions(layer, fs::perms::owner_all, error);
  if (error)
    return Error::FromErrno(error.value(), fmt::format("make the world's folder {}", layer));
  return layer;
}

Result<std::vector<std::string>> RealPaths(const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    std::error_code error;
    paths.push_back(fs::canonical(path, error).native());
    if (error) return Error::FromErrno(error.value(), fmt::format("find {}", path));
  }
  return paths;
}

void Append(std::vector<std::string>& list, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(list));
}

// What the files say of undo and of edits by others.
void Configure(session::SessionOptions& options, const session::config::Config& config) {
  undo::UndoOptions& undo = options.undo;
  undo.limits = config.undo_limits;
  undo.on_oversize = config.on_oversize;
  undo.symlinks = config.symlinks;
  undo.gitignore = config.gitignore;
  undo.unrecorded = config.unrecorded;
  options.watch = config.watch;
  if (config.external == undo::ExternalPolicy::kWarn)
    options.watch.policy = session::WatchPolicy::kWarn;
}

Result<std::vector<std::string>> UnrecordedFor(const Arguments& arguments) {
  std::vector<std::string> globs = arguments.Values(kNoUndoForOption.name);
  for (const std::string& glob : globs) {
    if (glob.empty() || glob.find('\n') != glob.npos)
      return Error(Code::kInvalid, "--no-undo-for: a pattern is one line that is not empty");
  }
  return globs;
}

// Of a name that is given twice the last one counts.
Result<std::vector<control::EnvEntry>> EnvironmentFor(const Arguments& arguments) {
  std::vector<control::EnvEntry> entries;
  for (const std::string& text : arguments.Values(kEnvOption.name)) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error(Code::kInvalid, fmt::format("--env: '{}' should look like NAME=VALUE", text));
    const std::string name = text.substr(0, equals);
    std::erase_if(entries, [&](const control::EnvEntry& said) { return said.name == name; });
    entries.push_back({name, text.substr(equals + 1)});
  }
  return entries;
}

Result<std::string> StartFolder(const Arguments& arguments, const std::string& project) {
  std::error_code error;
  if (arguments.Has(kCwdOption.name)) {
    const std::string given = arguments.Value(kCwdOption.name);
    const fs::path folder = fs::canonical(given, error);
    if (error) return Error::FromErrno(error.value(), fmt::format("start in {}", given));
    return folder.native();
  }
  const fs::path here = fs::current_path(error);
  return !error && LiesIn(here.native(), project) ? here.native() : project;
}

}  // namespace

Result<uint64_t> SizeOf(const Arguments& arguments, const Option& option) {
  return ParseWithUnit(option, arguments.Value(option.name), kSizes, "512M");
}

Result<std::chrono::milliseconds> TimeOf(const Arguments& arguments, const Option& option) {
  const std::string text = arguments.Value(option.name);
  TRY_ASSIGN(const uint64_t ms, ParseWithUnit(option, text, kTimes, "30s, 5m or 1h"));
  if (ms > static_cast<uint64_t>(control::kMaxTimeout.count()))
    return Error(Code::kInvalid, fmt::format("--{}: '{}' is more than a year", option.name, text));
  return std::chrono::milliseconds(ms);
}

std::string QuotedForShell(const std::vector<std::string>& argv) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=,@%^";
  std::string text;
  for (const std::string& word : argv) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

// Beside the program, or where `make install` puts it.
Result<std::string> FindShim() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  for (const fs::path& place :
       {folder / "sandglass-shim", folder / ".." / "libexec" / "sandglass" / "sandglass-shim"}) {
    if (::access(place.c_str(), X_OK) == 0) return place.native();
  }
  return Error(Code::kNotFound,
               fmt::format("the program sandglass-shim is not beside {}; build or install it",
                           program.native()));
}

Result<session::config::LoadedConfig> LoadConfigFor(const std::string& project) {
  const auto user_file = session::config::UserConfigFile();
  return session::config::LoadConfig(user_file.ok() ? *user_file : "", project);
}

namespace {

// The user's own file, unless commands have the last word in it.
std::string TrustedUserFile(const std::vector<session::SessionProject>& projects) {
  const auto file = session::config::UserConfigFile();
  const auto can_change_it = [&](const session::SessionProject& project) {
    return project.access != world::Access::kReadOnly &&
           session::LeadsInto(*file, project.paths.project);
  };
  return !file.ok() || std::ranges::any_of(projects, can_change_it) ? "" : *file;
}

}  // namespace

Result<ConfiguredSession> SessionOn(std::vector<session::SessionProject> projects,
                                    const Arguments& arguments, const SessionUse& use,
                                    const Console& console) {
  session::SessionOptions options;
  options.log = console.log().With("session");
  options.undo.log = console.log().With("undo");
  options.projects = std::move(projects);
  TRY_ASSIGN(const session::config::LoadedConfig loaded,
             session::config::LoadConfig(TrustedUserFile(options.projects),
                                         options.projects.front().paths.project));
  const session::config::SandboxConfig& sandbox = loaded.config.sandbox;
  Configure(options, loaded.config);
  TRY_ASSIGN(const std::string state, StateFolder());
  options.scratch_place = state + "/worlds";
  const bool keeps =
      use.layer == LayerUse::kKept || (use.layer == LayerUse::kAsConfigured && !sandbox.ephemeral);
  if (keeps) {
    TRY_ASSIGN(options.layer, LayerFor(state, options.projects.front().paths.project));
  }
  options.hidden_paths.push_back(state);
  options.own_paths.push_back(state);
  if (const auto file = session::config::UserConfigFile(); file.ok())
    options.own_paths.push_back(*file);
  for (const session::SessionProject& project : options.projects) {
    // Those that the command may write to are hidden by the session, which makes them first.
    if (project.access == world::Access::kReadOnly && StoreExists(project.paths))
      options.hidden_paths.push_back(project.paths.store);
  }
  TRY_ASSIGN(options.extra_read_only, RealPaths(sandbox.read_only));
  TRY_ASSIGN(options.extra_read_write, RealPaths(sandbox.read_write));
  TRY_ASSIGN(std::vector<std::string> read_only, RealPaths(arguments.Values(kReadOnlyOption.name)));
  TRY_ASSIGN(std::vector<std::string> read_write,
             RealPaths(arguments.Values(kReadWriteOption.name)));
  TRY_ASSIGN(std::vector<std::string> unrecorded, UnrecordedFor(arguments));
  Append(options.extra_read_only, std::move(read_only));
  Append(options.extra_read_write, std::move(read_write));
  Append(options.undo.unrecorded, std::move(unrecorded));
  TRY_ASSIGN(options.limits, LimitsFor(arguments, sandbox));
  TRY(TakeSafeguards(arguments, loaded.config.safeguards, use.answerer, options));
  if (arguments.Has(kWithoutLandlockOption.name))
    options.without_landlock.emplace(world::kWithoutLandlockFlag);
  options.watch.watching = arguments.Has(kWatchOption.name)
                               ? session::Watching::kOn
                               : loaded.config.watching.value_or(use.watching);
  if (arguments.Has(kAllowBroadOption.name)) options.allow_broad.emplace(session::kAllowBroadFlag);
  TRY_ASSIGN(options.shim_path, FindShim());
  return ConfiguredSession{std::move(options), loaded.config};
}

Result<session::SessionOptions> SessionFor(const Arguments& arguments, const Console& console) {
  TRY_ASSIGN(auto projects, ChooseProjects(arguments));
  const bool ephemeral = arguments.Has(kEphemeralOption.name);
  TRY_ASSIGN(ConfiguredSession session,
             SessionOn(std::move(projects), arguments,
                       {.layer = ephemeral ? LayerUse::kNone : LayerUse::kAsConfigured,
                        .answerer = console.can_ask() ? Answerer::kPerson : Answerer::kSomeone},
                       console));
  return std::move(session.options);
}

Result<std::unique_ptr<session::Session>> StartSession(const session::SessionOptions& options,
                                                       const Console& console) {
  auto session = session::Session::Start(options);
  if (!session.ok()) {
    Error error = session.error();
    for (const session::SessionProject& project : options.projects)
      error = NamingTheSession(error, project.paths.store);
    return error;
  }
  for (const undo::RecoveryReport& recovery : (*session)->recoveries())
    TellRecovery(recovery, console);
  return session;
}

Result<session::CommandSpec> CommandFor(const Arguments& arguments, const std::string& project) {
  session::CommandSpec spec{.argv = arguments.operands()};
  TRY_ASSIGN(spec.cwd, StartFolder(arguments, project));
  TRY_ASSIGN(spec.env, EnvironmentFor(arguments));
  const bool has_term =
      std::ranges::find(spec.env, "TERM", &control::EnvEntry::name) != spec.env.end();
  if (const char* term = std::getenv("TERM"); term != nullptr && !has_term)
    spec.env.insert(spec.env.begin(), {"TERM", term});
  if (arguments.Has(kTimeoutOption.name)) {
    TRY_ASSIGN(spec.timeout, TimeOf(arguments, kTimeoutOption));
  }
  spec.label = QuotedForShell(spec.argv);
  return spec;
}

}  // namespace sandglass::cli

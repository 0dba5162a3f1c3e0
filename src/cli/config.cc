// sandglass config: what sandglass.toml says, whether it is right, and an editor for it.
#include "session/config/config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/run_options.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

using session::config::AllKeys;
using session::config::KeySpec;
using session::config::LoadedConfig;
using session::config::Origin;
using session::config::Setting;
using session::config::Support;

constexpr Option kUserOption{.name = "user", .help = "the user's file only, without a project's"};
constexpr Option kOptions[] = {kProjectOption, kUserOption, kJsonOption, kHelpOption};
constexpr Operand kOperands[] = {
    {"ACTION", ValueKind::kConfigAction, Arity::kOne, "show, validate or edit"}};

struct Shown {
  const KeySpec* key;
  Origin origin;
  std::string value;
};

std::vector<Shown> ShownSettings(const LoadedConfig& loaded) {
  std::vector<Shown> shown;
  for (const KeySpec& key : AllKeys()) {
    if (key.support == Support::kNotYet) continue;
    const auto said = std::ranges::find(loaded.settings, &key, &Setting::key);
    if (said == loaded.settings.end())
      shown.push_back({&key, Origin::kDefault, std::string(key.fallback)});
    else
      shown.push_back({&key, said->origin, session::config::TomlText(said->value)});
  }
  return shown;
}

std::string ShownText(const LoadedConfig& loaded) {
  std::string out;
  std::string_view section;
  for (const Shown& shown : ShownSettings(loaded)) {
    if (shown.key->section != section) {
      section = shown.key->section;
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    const std::string left = fmt::format("{} = {}", shown.key->key, PrintableName(shown.value));
    // What is not said has no value that a file could have: "no limit".
    const std::string_view mark = shown.origin == Origin::kDefault ? "# " : "";
    out += fmt::format("{:<44} # {}: {}\n", fmt::format("{}{}", mark, left),
                       session::config::OriginName(shown.origin), shown.key->help);
  }
  return out;
}

Json FilesToJson(const LoadedConfig& loaded) {
  Json files = Json::Array();
  for (const std::string& file : loaded.files) files.Append(BytesToJson(file));
  return files;
}

Json ShownJson(const LoadedConfig& loaded) {
  Json settings = Json::Array();
  for (const Shown& shown : ShownSettings(loaded)) {
    settings.Append(Json::Object({{"section", shown.key->section},
                                  {"key", shown.key->key},
                                  {"value", shown.value},
                                  {"origin", session::config::OriginName(shown.origin)}}));
  }
  return Json::Object({{"files", FilesToJson(loaded)}, {"settings", std::move(settings)}});
}

Result<LoadedConfig> Load(const Arguments& arguments) {
  if (arguments.Has(kUserOption.name)) return LoadConfigFor("");
  TRY_ASSIGN(const undo::UndoPaths paths, FindPaths(arguments));
  return LoadConfigFor(paths.project);
}

Status Show(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const LoadedConfig loaded, Load(arguments));
  if (console.wants_json())
    console.PrintJson(ShownJson(loaded));
  else
    console.Print(ShownText(loaded));
  return Ok();
}

Status Validate(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const LoadedConfig loaded, Load(arguments));
  if (console.wants_json()) {
    console.PrintJson(Json::Object({{"valid", true}, {"files", FilesToJson(loaded)}}));
    return Ok();
  }
  for (const std::string& file : loaded.files)
    console.Print(fmt::format("{}: ok\n", PrintableName(file)));
  if (loaded.files.empty()) console.Note("there is no sandglass.toml: everything is as built in");
  return Ok();
}

// --- Editing

Status WaitForEditor(const std::string& editor, const std::string& file) {
  // As git does: the variable may hold options.
  const std::string line = editor + " \"$@\"";
  const pid_t child = ::fork();
  if (child < 0) return Error::FromErrno(errno, "start the editor");
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", line.c_str(), editor.c_str(), file.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error::FromErrno(errno, "wait for the editor");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok();
  return Error(Code::kInvalid, fmt::format("the editor '{}' failed", editor));
}

std::string Editor() {
  for (const char* variable : {"VISUAL", "EDITOR"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  }
  return "vi";
}

// The user's, for a project's is written by whoever works on the project.
Status Edit(const Arguments& arguments, Console& console) {
  if (!console.can_ask())
    return Error(Code::kInvalid, "an editor needs a terminal; write the file instead");
  TRY_ASSIGN(const std::string file, session::config::UserConfigFile());
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  if (error) return Error::FromErrno(error.value(), fmt::format("make the folder of {}", file));
  TRY(WaitForEditor(Editor(), file));
  return Validate(arguments, console);
}

Status Run(const Arguments& arguments, Console& console) {
  struct Action {
    std::string_view name;
    Status (*run)(const Arguments&, Console&);
  };
  constexpr Action kActions[] = {{"show", Show}, {"validate", Validate}, {"edit", Edit}};
  const auto* action = std::ranges::find(kActions, arguments.operands().front(), &Action::name);
  CHECK(action != std::end(kActions));
  return action->run(arguments, console);
}

}  // namespace

constinit const Command kConfigCommand{
    .name = "config",
    .summary = "show, check or edit the settings in sandglass.toml",
    .description =
        "Settings come from the user's file, which is sandglass.toml in $SANDGLASS_HOME, else in "
        "the folder sandglass of $XDG_CONFIG_HOME or of ~/.config, and from the sandglass.toml in "
        "the root of the project. A later one wins: what is built in, the user's file, the "
        "project's file, options of the command line.\n\n"
        "What runs in a project can write to the project's file. So that file may not contain "
        "what could weaken protection, and a limit in it counts only if it is the stricter one.\n\n"
        "show prints every setting and where it is from; what no file says is commented out. "
        "validate only says whether the files are right: a key that nobody knows, or that has no "
        "effect yet, is an error, and so is a value of another kind. Commands do not run while a "
        "file is wrong. edit opens the user's file in $VISUAL or $EDITOR, and then validates.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

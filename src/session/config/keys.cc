// The table of keys.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "session/config/config.h"
#include "session/config/sizes.h"

namespace sandglass::session::config {
namespace {

using undo::ExternalPolicy;
using undo::GitignoreMode;
using undo::OversizePolicy;
using undo::SymlinkPolicy;

constexpr std::string_view kModes[] = {"persistent", "ephemeral"};
constexpr std::string_view kNetworks[] = {"disabled", "allowlist", "open"};
constexpr std::string_view kOversize[] = {"ask", "refuse", "unprotected"};
constexpr std::string_view kSymlinks[] = {"ignore", "read_only", "read_write"};
constexpr std::string_view kExternal[] = {"barrier", "warn"};

// Values have been checked, so each of these gets what its key's type says.
const std::string& Text(const TomlValue& value) { return std::get<std::string>(value); }
const std::vector<std::string>& Texts(const TomlValue& value) {
  return std::get<std::vector<std::string>>(value);
}
uint64_t Count(const TomlValue& value) { return static_cast<uint64_t>(std::get<int64_t>(value)); }
uint32_t Count32(const TomlValue& value) {
  return static_cast<uint32_t>(std::min<uint64_t>(Count(value), UINT32_MAX));
}
uint64_t Size(const TomlValue& value) { return *SizeOfValue(value); }
double Number(const TomlValue& value) { return *NumberOfValue(value); }

// The place of a word in its list of choices, which has the order of the enumeration.
template <class Enum, size_t Words>
Enum Chosen(const TomlValue& value, const std::string_view (&choices)[Words]) {
  for (size_t i = 0; i < Words; ++i) {
    if (choices[i] == Text(value)) return static_cast<Enum>(i);
  }
  return Enum{};
}

constexpr auto kAny = Trust::kAnyFile;
constexpr auto kStricter = Trust::kStricterWins;
constexpr auto kUser = Trust::kUserOnly;
constexpr auto kYes = Support::kYes;
constexpr auto kNotYet = Support::kNotYet;
using V = ValueType;

#define APPLY(statement) [](Config& c, const TomlValue& v) { statement; }

constexpr KeySpec kKeys[] = {
    {"sandbox", "mode", V::kChoice, kStricter, kYes, "\"persistent\"",
     "whether a world's own files stay until the next session", kModes,
     APPLY(c.sandbox.ephemeral = Text(v) == "ephemeral")},
    {"sandbox",
     "memory",
     V::kSize,
     kStricter,
     kYes,
     "no limit",
     "at most so much memory",
     {},
     APPLY(c.sandbox.memory_bytes = Size(v))},
    {"sandbox",
     "cpus",
     V::kNumber,
     kStricter,
     kYes,
     "no limit",
     "at most so many processors",
     {},
     APPLY(c.sandbox.cpus = Number(v))},
    {"sandbox",
     "pids",
     V::kCount,
     kStricter,
     kYes,
     "no limit",
     "at most so many processes and threads",
     {},
     APPLY(c.sandbox.pids = Count(v))},
    {"sandbox",
     "file_size",
     V::kSize,
     kStricter,
     kYes,
     "no limit",
     "no file may grow beyond this size",
     {},
     APPLY(c.sandbox.file_bytes = Size(v))},
    {"sandbox",
     "read_only",
     V::kTexts,
     kUser,
     kYes,
     "[]",
     "host paths that worlds see",
     {},
     APPLY(c.sandbox.read_only = Texts(v))},
    {"sandbox",
     "read_write",
     V::kTexts,
     kUser,
     kYes,
     "[]",
     "host paths that worlds may write to WITHOUT undo",
     {},
     APPLY(c.sandbox.read_write = Texts(v))},
    {"sandbox", "network", V::kChoice, kUser, kNotYet, "\"disabled\"", "what worlds may reach",
     kNetworks},

    {"agent",
     "command",
     V::kTexts,
     kUser,
     kYes,
     "[]",
     "the program that agent.prompt runs in the world, and its arguments; {prompt} in one of them "
     "stands for the prompt, else that is its input",
     {},
     APPLY(c.agent = Texts(v))},

    {"vm", "memory_mb", V::kCount, kStricter, kNotYet, "2048", "memory of a virtual machine"},
    {"vm", "cpus", V::kCount, kStricter, kNotYet, "2", "processors of a virtual machine"},
    {"vm", "qemu_binary", V::kText, kUser, kNotYet, "found in PATH", "the program that runs it"},
    {"vm", "kernel_path", V::kText, kUser, kNotYet, "that of the image", "its kernel"},
    {"vm", "initrd_path", V::kText, kUser, kNotYet, "that of the image", "its first file system"},
    {"vm", "rootfs_path", V::kText, kUser, kNotYet, "that of the image", "its root"},

    {"undo",
     "max_step_count",
     V::kCount,
     kUser,
     kYes,
     "100",
     "steps that are kept",
     {},
     APPLY(c.undo_limits.max_steps = Count32(v))},
    {"undo",
     "max_log_size_bytes",
     V::kSize,
     kUser,
     kYes,
     "\"1G\"",
     "bytes copied for all steps together",
     {},
     APPLY(c.undo_limits.max_copied_bytes = Size(v))},
    {"undo",
     "max_single_step_size_bytes",
     V::kSize,
     kUser,
     kYes,
     "\"200M\"",
     "bytes copied for one step",
     {},
     APPLY(c.undo_limits.max_step_copied_bytes = Size(v))},
    {"undo",
     "max_retained_bytes",
     V::kSize,
     kUser,
     kYes,
     "\"64G\"",
     "deleted files that stay on disk until their step is forgotten",
     {},
     APPLY(c.undo_limits.max_retained_bytes = Size(v))},
    {"undo", "on_oversize", V::kChoice, kUser, kYes, "\"ask\"",
     "what becomes of a step beyond its limit", kOversize,
     APPLY(c.on_oversize = Chosen<OversizePolicy>(v, kOversize))},
    {"undo",
     "no_undo_for",
     V::kTexts,
     kUser,
     kYes,
     "[]",
     "patterns as in a .gitignore of paths that are NOT undone",
     {},
     APPLY(c.unrecorded = Texts(v))},

    {"safeguards",
     "enabled",
     V::kSwitch,
     kUser,
     kYes,
     "true",
     "whether somebody is asked at all",
     {},
     APPLY(c.safeguards.enabled = std::get<bool>(v))},
    {"safeguards",
     "delete_threshold",
     V::kCount,
     kStricter,
     kYes,
     "50",
     "deletions of one step before somebody is asked; unsaid, only at a terminal",
     {},
     APPLY(c.safeguards.delete_count = Count32(v))},
    {"safeguards",
     "overwrite_file_size_threshold",
     V::kSize,
     kStricter,
     kYes,
     "off",
     "opening a file of this size for writing is asked",
     {},
     APPLY(c.safeguards.overwrite_bytes = Size(v))},
    {"safeguards",
     "truncate_file_size_threshold",
     V::kSize,
     kStricter,
     kYes,
     "\"1M\"",
     "emptying or shortening a file of this size is asked; unsaid, only at a terminal",
     {},
     APPLY(c.safeguards.truncate_bytes = Size(v))},
    {"safeguards",
     "rename_over_existing",
     V::kSwitch,
     kUser,
     kYes,
     "false",
     "a rename over something is asked",
     {},
     APPLY(c.safeguards.rename_over = std::get<bool>(v))},
    {"safeguards",
     "timeout_seconds",
     V::kCount,
     kStricter,
     kYes,
     "30",
     "how long an answer is waited for; then it is no",
     {},
     APPLY(c.safeguards.timeout = std::chrono::seconds(Count(v))),
     86'400},

    {"symlinks", "policy", V::kChoice, kUser, kYes, "\"read_write\"",
     "what undo does with symbolic links", kSymlinks,
     APPLY(c.symlinks = Chosen<SymlinkPolicy>(v, kSymlinks))},
    {"external_modifications", "policy", V::kChoice, kUser, kYes, "\"barrier\"",
     "what an edit by somebody else becomes", kExternal,
     APPLY(c.external = Chosen<ExternalPolicy>(v, kExternal))},
    {"gitignore",
     "enabled",
     V::kSwitch,
     kUser,
     kYes,
     "false",
     "whether what git ignores is left out of undo",
     {},
     APPLY(c.gitignore = std::get<bool>(v) ? GitignoreMode::kSkipIgnored : GitignoreMode::kOff)},

    {"claude_code", "enabled", V::kSwitch, kUser, kNotYet, "false",
     "whether Claude Code is set up to use sandglass"},
    {"claude_code", "server_name", V::kText, kUser, kNotYet, "\"sandglass\"",
     "the name it has there"},

#define CLASS_KEYS(member, prefix, suffix)                                                 \
  {"command_classifier",                                                                   \
   prefix "read_only_" suffix,                                                             \
   V::kTexts,                                                                              \
   kAny,                                                                                   \
   kYes,                                                                                   \
   "built in",                                                                             \
   "what only reads",                                                                      \
   {},                                                                                     \
   APPLY(c.classifier.member.read_only = Texts(v))},                                       \
      {"command_classifier",                                                               \
       prefix "write_" suffix,                                                             \
       V::kTexts,                                                                          \
       kAny,                                                                               \
       kYes,                                                                               \
       "built in",                                                                         \
       "what writes",                                                                      \
       {},                                                                                 \
       APPLY(c.classifier.member.write = Texts(v))},                                       \
  {                                                                                        \
    "command_classifier", prefix "destructive_" suffix, V::kTexts, kAny, kYes, "built in", \
        "what destroys", {}, APPLY(c.classifier.member.destructive = Texts(v))             \
  }
    CLASS_KEYS(commands, "", "commands"),
    CLASS_KEYS(git, "git_", "subcommands"),
    CLASS_KEYS(cargo, "cargo_", "subcommands"),
    CLASS_KEYS(npm, "npm_", "subcommands"),
#undef CLASS_KEYS

    {"file_watcher",
     "enabled",
     V::kSwitch,
     kUser,
     kYes,
     "with --watch, and in serve",
     "whether edits by others are seen at once",
     {},
     APPLY(c.watching = std::get<bool>(v) ? Watching::kOn : Watching::kOff)},
    {"file_watcher",
     "debounce_ms",
     V::kCount,
     kUser,
     kYes,
     "100",
     "how long edits are gathered",
     {},
     APPLY(c.watch.debounce = std::chrono::milliseconds(Count(v))),
     60'000},
    {"file_watcher", "recent_write_ttl_ms", V::kCount, kUser, kNotYet, "-",
     "nothing here: own writes are known by what was done, not by their age"},
    {"file_watcher",
     "exclude_patterns",
     V::kTexts,
     kUser,
     kYes,
     "[\".git/objects\", \".git/logs\", \".git/refs\", \"node_modules\"]",
     "paths that are not watched",
     {},
     APPLY(c.watch.exclude_patterns = Texts(v))},
    {"file_watcher",
     "use_gitignore",
     V::kSwitch,
     kUser,
     kYes,
     "false",
     "whether edits of what git ignores are told",
     {},
     APPLY(c.watch.gitignore =
               std::get<bool>(v) ? GitignoreMode::kSkipIgnored : GitignoreMode::kOff)},
};
#undef APPLY

}  // namespace

std::span<const KeySpec> AllKeys() { return kKeys; }

}  // namespace sandglass::session::config

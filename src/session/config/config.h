// Configuration: what `sandglass.toml` says, checked against one table of keys (docs/configuration.md is about the same table).
//
// Later ones win: built-in defaults, the user's file, the project's file, options of the command line. But a project is what a command
// may write to, so its file has less to say than its user: where a key could weaken protection it is refused there, and a limit
// counts only if it is the stricter one. A key that nobody knows is an error, with the one that was probably meant; a key that is
// known but does nothing yet is an error too, because silence would promise something. Value types and pure functions, but for
// LoadConfig, which reads files.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/classifier.h"
#include "session/config/toml.h"
#include "session/watch/watch_options.h"
#include "undo/types.h"

namespace sandglass::session::config {

struct SandboxConfig {
  bool ephemeral = false;
  std::optional<uint64_t> memory_bytes, pids, file_bytes;
  std::optional<double> cpus;
  std::vector<std::string> read_only, read_write;
};

// What somebody said; who runs a command knows what counts otherwise.
struct SafeguardsConfig {
  bool enabled = true;
  std::optional<uint32_t> delete_count;
  std::optional<uint64_t> overwrite_bytes, truncate_bytes;
  bool rename_over = false;
  std::optional<std::chrono::seconds> timeout;
};
// Deletions, bytes that are truncated and seconds, where somebody can answer and nothing else was said.
inline constexpr uint32_t kDefaultDeletions = 50;
inline constexpr uint64_t kDefaultTruncatedBytes = uint64_t{1} << 20;
inline constexpr std::chrono::seconds kDefaultAnswerTime{30};

struct Config {
  SandboxConfig sandbox;
  std::vector<std::string> agent;  // the words of its command
  undo::Limits undo_limits;
  undo::OversizePolicy on_oversize = undo::OversizePolicy::kAsk;
  std::vector<std::string> unrecorded;
  SafeguardsConfig safeguards;
  undo::SymlinkPolicy symlinks = undo::SymlinkPolicy::kReadWrite;
  undo::ExternalPolicy external = undo::ExternalPolicy::kBarrier;
  undo::GitignoreMode gitignore = undo::GitignoreMode::kOff;
  policy::ClassifierConfig classifier = policy::DefaultClassifierConfig();
  WatchOptions watch;  // but for its policy, and whether it watches
  std::optional<Watching> watching;
};

enum class ValueType : uint8_t {
  kSwitch,  // true or false
  kCount,   // a whole number from 1 on
  kSize,    // bytes, or a text such as "512M"
  kNumber,  // above 0
  kChoice,  // one of `choices`
  kText,
  kTexts,  // a list
};
enum class Trust : uint8_t {
  kAnyFile,
  kStricterWins,  // a project's counts if it is the smaller one, or the later one of the choices
  kUserOnly,
};
enum class Support : uint8_t { kYes, kNotYet };

struct KeySpec {
  std::string_view section, key;
  ValueType type;
  Trust trust;
  Support support;
  std::string_view
      fallback;  // what it is if no file says it, as text; a project's file cannot raise it where the stricter one wins
  std::string_view help;
  std::span<const std::string_view> choices = {};
  // Of a value that was checked. Null where it is not supported yet.
  void (*apply)(Config& config, const TomlValue& value) = nullptr;
  int64_t most = INT64_MAX;  // of kCount
};
std::span<const KeySpec> AllKeys();
std::string_view ValueTypeName(ValueType type);

enum class Origin : uint8_t { kDefault, kUserFile, kProjectFile };
std::string_view OriginName(Origin origin);

struct Setting {
  const KeySpec* key;
  Origin origin;
  TomlValue value;
};

// One file's text on top of what others said. Every mistake of the file is told, not only the first.
// kInvalid: "line 3: ..." for each of them.
Status ApplyText(std::string_view text, Origin origin, Config& config,
                 std::vector<Setting>& settings);

struct LoadedConfig {
  Config config;
  std::vector<Setting> settings;   // what files say and counts; the last of a key
  std::vector<std::string> files;  // that were read
};

// $SANDGLASS_HOME/sandglass.toml, else $XDG_CONFIG_HOME/sandglass/, else ~/.config/sandglass/. kNotFound: there is no home.
Result<std::string> UserConfigFile();
inline constexpr std::string_view kProjectConfigName = "sandglass.toml";

// `user_file` and `project` may be ""; a file that does not exist says nothing. A project's file is never read through a symbolic link.
// kInvalid names the file.
Result<LoadedConfig> LoadConfig(const std::string& user_file, const std::string& project);

}  // namespace sandglass::session::config

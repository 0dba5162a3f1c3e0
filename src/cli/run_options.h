// From the words of `run` to a session and its command. Pure but for looking at the file system.
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/safeguard_options.h"
#include "session/config/config.h"
#include "session/session.h"

namespace sandglass::cli {

inline constexpr Option kEphemeralOption{
    .name = "ephemeral",
    .help =
        "the world's home, /tmp and /run are empty and go with it, and so does what root changes "
        "in the system"};
inline constexpr Option kNoUndoForOption{
    .name = "no-undo-for",
    .value = ValueKind::kText,
    .value_name = "GLOB",
    .help =
        "paths that match, as in a .gitignore of the project's root, are not recorded and NOT "
        "undone; may be repeated. What is in a .git always is"};
inline constexpr Option kWatchOption{
    .name = "watch",
    .help =
        "tell after the command what others changed in the project meanwhile, and make a barrier "
        "of it that undo does not cross without --force; in files that the command itself has "
        "changed nobody is told apart. Without it, edits between steps are found when something "
        "is undone"};
inline constexpr Option kEnvOption{.name = "env",
                                   .letter = 'e',
                                   .value = ValueKind::kText,
                                   .value_name = "NAME=VALUE",
                                   .help =
                                       "set it for the command; may be repeated. Of the rest of "
                                       "the environment it gets PATH, LANG, TERM, SHELL, USER, "
                                       "LOGNAME and TZ"};
inline constexpr Option kCwdOption{.name = "directory",
                                   .letter = 'C',
                                   .value = ValueKind::kFolder,
                                   .value_name = "DIR",
                                   .help =
                                       "start there; default: the current folder if it is in the "
                                       "project, else the project"};
inline constexpr Option kReadOnlyOption{.name = "ro",
                                        .value = ValueKind::kPath,
                                        .value_name = "PATH",
                                        .help = "show this host path, read-only; may be repeated"};
inline constexpr Option kReadWriteOption{
    .name = "rw",
    .value = ValueKind::kPath,
    .value_name = "PATH",
    .help = "let the command write to this host path WITHOUT undo; may be repeated"};
inline constexpr Option kMemoryOption{.name = "memory",
                                      .value = ValueKind::kText,
                                      .value_name = "SIZE",
                                      .help = "at most so much memory, such as 512M or 4G"};
inline constexpr Option kCpusOption{.name = "cpus",
                                    .value = ValueKind::kText,
                                    .value_name = "N",
                                    .help = "at most so many processors, such as 1.5"};
inline constexpr Option kPidsOption{.name = "pids",
                                    .value = ValueKind::kCount,
                                    .value_name = "N",
                                    .help = "at most so many processes and threads"};
inline constexpr Option kFileSizeOption{
    .name = "file-size",
    .value = ValueKind::kText,
    .value_name = "SIZE",
    .help = "no file may grow beyond this size, such as 100M; whoever tries gets SIGXFSZ"};
inline constexpr Option kWithoutLandlockOption{
    .name = "without-landlock",
    .help =
        "run also where the kernel has no Landlock of Linux 6.2 or later: a command that races its "
        "own descriptors can then change files that it has open unrecorded"};
inline constexpr Option kTimeoutOption{
    .name = "timeout",
    .value = ValueKind::kText,
    .value_name = "TIME",
    .help = "end the command after this time, such as 30s, 5m or 1h; a number alone is seconds"};
inline constexpr Option kSummaryOption{
    .name = "summary",
    .help = "say at the end what changed, also where the error stream is no terminal"};

// The value of an option: 1024 or 512M. kInvalid.
Result<uint64_t> SizeOf(const Arguments& arguments, const Option& option);
// 30s, 5m, 1h, 250ms; 5 is 5s. kInvalid.
Result<std::chrono::milliseconds> TimeOf(const Arguments& arguments, const Option& option);
// As a shell would have to be given it.
std::string QuotedForShell(const std::vector<std::string>& argv);

// The program that is the first process of a world.
Result<std::string> FindShim();
// What the user's and the project's sandglass.toml say together. kInvalid names the file and each mistake in it.
Result<session::config::LoadedConfig> LoadConfigFor(const std::string& project);
// What the world keeps between two sessions.
enum class LayerUse : uint8_t { kKept, kNone, kAsConfigured };
// How a session is used, where neither files nor words say it.
struct SessionUse {
  LayerUse layer = LayerUse::kAsConfigured;
  Answerer answerer = Answerer::kSomeone;
  session::Watching watching = session::Watching::kOff;
};
// A session, and what files say beside it.
struct ConfiguredSession {
  session::SessionOptions options;
  session::config::Config config;
};
// A session on these projects, as the files say, and over them the words of the command line.
Result<ConfiguredSession> SessionOn(std::vector<session::SessionProject> projects,
                                    const Arguments& arguments, const SessionUse& use,
                                    const Console& console);
// On those that the words name.
Result<session::SessionOptions> SessionFor(const Arguments& arguments, const Console& console);
// Session::Start, with an error for people, and says what opening the stores did.
Result<std::unique_ptr<session::Session>> StartSession(const session::SessionOptions& options,
                                                       const Console& console);
Result<session::CommandSpec> CommandFor(const Arguments& arguments, const std::string& project);

}  // namespace sandglass::cli

// When a person is asked before a command destroys much: from options and settings to what a session is told. Pure.
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "session/config/config.h"
#include "session/session.h"

namespace sandglass::cli {

inline constexpr Option kDeleteThresholdOption{
    .name = "delete-threshold",
    .value = ValueKind::kCount,
    .value_name = "N",
    .help =
        "ask before the step deletes so many files and folders; default: 50 at a terminal, else "
        "nobody is asked"};
inline constexpr Option kOverwriteThresholdOption{
    .name = "overwrite-threshold",
    .value = ValueKind::kText,
    .value_name = "SIZE",
    .help =
        "ask before a file of this size is opened for writing, emptied or shortened; default: only "
        "before one of 1M is emptied or shortened, at a terminal"};
inline constexpr Option kRenameOverOption{
    .name = "ask-rename-over", .help = "ask before something is renamed over something else"};
inline constexpr Option kAnswerTimeOption{
    .name = "safeguard-timeout",
    .value = ValueKind::kText,
    .value_name = "TIME",
    .help = "no answer within this time is a denial; default: 30s"};
inline constexpr Option kNoSafeguardsOption{.name = "no-safeguards", .help = "ask nothing"};

// Who is there when a safeguard asks.
enum class Answerer : uint8_t {
  kPerson,   // at the terminal: safeguards are on unless they are switched off
  kSomeone,  // a client, or whoever calls `sandglass approve`: they are on if somebody said so
};

// Puts into `options` what words say over what files say. kInvalid.
Status TakeSafeguards(const Arguments& arguments, const session::config::SafeguardsConfig& config,
                      Answerer answerer, session::SessionOptions& options);

}  // namespace sandglass::cli

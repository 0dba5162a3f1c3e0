// What undo, redo and restore do and print: with a log of their own, or through the session that has the project.
#pragma once

#include <string_view>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "session/rewind_request.h"
#include "undo/types.h"

namespace sandglass::cli {

struct RewindWords {
  std::string_view done;     // "undone"
  std::string_view planned;  // "would be undone"
};
inline constexpr RewindWords kUndoWords{"undone", "would be undone"};
inline constexpr RewindWords kRedoWords{"redone", "would be redone"};
inline constexpr RewindWords kRestoreWords{"made by this restore", "would be made"};
const RewindWords& WordsFor(session::RewindKind kind);

inline constexpr Option kStopOption{
    .name = "stop",
    .help =
        "end the processes that still run in the project's world first: SIGTERM, and SIGKILL after "
        "5 seconds"};

// The options of all three commands, and what undo and redo are told besides.
inline constexpr Option kRewindOptions[] = {kForceOption,   kStopOption,  kDryRunOption,
                                            kProjectOption, kStoreOption, kUndoDirOption,
                                            kJsonOption,    kHelpOption};
inline constexpr Operand kCountOperand[] = {
    {"N", ValueKind::kCount, Arity::kOptional, "how many steps; default: 1"}};

// Completes the request by the options, has it carried out and prints the answer.
Status RunRewind(const Arguments& arguments, session::RewindRequest request, Console& console);

// The options of the request that all three commands have.
void TakeRewindOptions(const Arguments& arguments, session::RewindRequest& request);
// For a person: "step 3: undone" and what changed; of a failure, what went wrong.
std::string AnswerText(const session::RewindRequest& request, const session::RewindAnswer& answer);

}  // namespace sandglass::cli

// Doctor: whether this machine lets a world protect anything, found by trying. First what the kernel offers, then a world with the
// probe in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sandglass::session {

enum class Verdict : uint8_t {
  kProtects,
  kAbsent,     // not there, and nothing relies on it unless it is asked for
  kFails,      // `run` refuses to work, or a world does not hold what it promises
  kUnchecked,  // something before it failed
};
std::string_view VerdictName(Verdict verdict);

struct Finding {
  std::string name;  // stable: read_home
  Verdict verdict = Verdict::kUnchecked;
  std::string text;    // what was found
  std::string remedy;  // what to do about it; "": nothing, or nothing that we know
};

// A scratch project with its store, where a world is tried out.
struct ScratchProject {
  std::string project, store;
};
// Runs a program there and returns what it printed.
using ScratchRunner = std::function<Result<std::string>(const ScratchProject& scratch,
                                                        const std::vector<std::string>& argv)>;
// In a world of the local kind.
ScratchRunner RunInLocalWorld(const std::string& program, const std::string& shim_path);

std::vector<Finding> ExamineMachine();
// `probe`: the words that make the program run the probe; its targets come behind them.
std::vector<Finding> ExamineWorld(const std::vector<std::string>& probe, const ScratchRunner& run);

}  // namespace sandglass::session

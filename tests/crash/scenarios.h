// The crash scenarios: what precedes each of them and what happens in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/crash/stage.h"

namespace sandglass::crash {

using Play = std::function<Status(Stage&)>;

enum class StoreBefore : uint8_t { kPresent, kMissing };

struct Scenario {
  std::string name;
  std::string about;
  Play setup;  // after the fixture, with an open log; empty: nothing
  Play run;    // with an open log; empty: opening it is all
  std::function<void(undo::UndoOptions&)> configure;  // empty: CalmOptions() as they are
  StoreBefore store = StoreBefore::kPresent;
  Eviction eviction = Eviction::kNone;
  std::string after_crash_of;  // begins where the run of this one was killed
  uint32_t crash_percent = 0;
  uint32_t pause_ms = 0;           // after each kill: time passes before a person starts again
  std::vector<std::string> edits;  // what that person then writes to
};

// Each work as a step, its rollback and its redo; and what is more than one step.
std::vector<Scenario> AllScenarios();

}  // namespace sandglass::crash

// A step that history does not have yet: one that is under way, or one that was interrupted and waits for its recovery. Read beside
// whoever owns the store. One thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/json.h"
#include "undo/journal_format.h"

namespace sandglass::cli {

struct OpenStep {
  undo::JournalHeader header;
  std::optional<pid_t>
      owner;  // of the process that records it; none: it is gone, and the step was interrupted
};

// nullopt: there is none, or it has not changed anything yet.
std::optional<OpenStep> FindOpenStep(const std::string& store);

// One line, as of a history.
std::string OpenStepText(const OpenStep& step);
Json ToJson(const OpenStep& step);

}  // namespace sandglass::cli

// What `run` tells about a command that has ended: a line for each project for people, one object for programs. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "session/session.h"

namespace sandglass::cli {

// How one project is spoken of.
struct ReportedProject {
  std::string path;
  std::string undo_command;
  bool named =
      true;  // nobody could take it for granted: it is not the folder where the program was started, or one of several
  bool is_filtered = false;  // paths may have been left out by what the user said
};

// "step 3: 2 created; `sandglass undo` takes it back"; one line for each project that changed, at least one line.
std::vector<std::string> SummaryLines(const session::CommandReport& report,
                                      const std::vector<ReportedProject>& projects);
// docs/session.md has its members.
Json ReportToJson(const session::CommandReport& report,
                  const std::vector<ReportedProject>& projects);

}  // namespace sandglass::cli

// What a session is made of, for the files of this module. Members die in reverse order: the world first, for the commands wait for
// their processes; the logs last, for the supervisor writes to them.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bridge/supervise/supervisor.h"
#include "control/command_tracker.h"
#include "control/line_reader.h"
#include "control/writer_queue.h"
#include "session/notices.h"
#include "session/request_server.h"
#include "session/session.h"
#include "world/local/local_world.h"

namespace sandglass::session {

// A project that the world may change.
struct ProjectLog {
  std::string path;
  std::unique_ptr<undo::UndoLog> log;
  bool has_step = false;  // that begins with its first change, or has begun
};

// The processes of one command, as the bridge sees them.
struct SupervisedProcesses {
  StepId command;
  Fd end;  // of their filter: hung up when the last one is gone
  std::unique_ptr<bridge::SupervisedCommand> bridge;
};

struct Session::Parts {
  SteadyClock clock;
  Notices notices;
  std::vector<ProjectLog> logs;
  std::unique_ptr<RequestServer> server;
  std::unique_ptr<bridge::Supervisor> supervisor;
  std::vector<SupervisedProcesses> processes;
  std::unique_ptr<world::LocalWorld> world;

  control::CommandTracker tracker{clock, {}};
  control::LineReader lines;
  control::WriterQueue queue;

  // What the people should know of the step that has just ended.
  std::vector<std::string> TakeNotices() {
    std::vector<std::string> texts = notices.Take();
    if (std::string refused = supervisor->TakeRefusals(); !refused.empty())
      texts.push_back("a change was refused: " + refused);
    return texts;
  }
};

}  // namespace sandglass::session

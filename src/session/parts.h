// What a session is made of, for the files of this module. Members die in reverse order: the world first, for the bridge waits for
// the processes in it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "control/command_tracker.h"
#include "control/line_reader.h"
#include "control/writer_queue.h"
#include "session/bridge_process.h"
#include "session/loop_guest.h"
#include "session/output_pipes.h"
#include "session/request_server.h"
#include "session/session.h"
#include "session/system_layer.h"
#include "session/watch/watch_options.h"
#include "world/local/local_world.h"

namespace sandglass::session {

// The processes of one command.
struct SupervisedProcesses {
  StepId command;
  Fd listener;  // of their filter, which the bridge serves: hung up when the last one is gone
};

class CommandRun;
class IdleLoop;
class Standstill;

// Of the bridge, which waits for its answer.
struct OpenQuestion {
  std::string id;  // as people and programs name it
  SafeguardAsked asked;
  Instant deadline;
  StepId step() const { return asked.question.step; }
};

struct Session::Parts {
  // One that no project has used, and no command of this session: another bridge does not remember a step that was taken back.
  Result<StepId> NextStep() const {
    TRY_ASSIGN(const StepId next, bridge->NextId());
    return std::max(next, StepId{last_step.value + 1});
  }

  // What others did to the projects, to whoever listens.
  void TellEvents() {
    for (const ExternalModification& event : bridge->TakeEvents()) {
      log.Info("changed by others", {{"project", event.project}, {"paths", event.affected}});
      if (on_external) on_external(event);
    }
  }

  SteadyClock clock;
  Logger log = Logger::Null();
  TellExternal on_external;
  WatchOptions watch;
  undo::ExternalPolicy external = undo::ExternalPolicy::kBarrier;  // what its policy is to the logs
  std::vector<undo::UndoPaths> writable;  // the projects that the world may change
  std::unique_ptr<BridgeProcess> bridge;
  std::unique_ptr<RequestServer> server;
  std::vector<SupervisedProcesses> processes;
  std::vector<StepId> ended;  // commands without processes of which the bridge was not told yet
  std::optional<SystemLayer> system;  // none: the world has the system read-only
  std::unique_ptr<world::LocalWorld> world;
  LeftOutput left_output;         // of processes that commands left behind
  LoopGuest* guest = nullptr;     // null: nobody shares the thread
  CommandRun* running = nullptr;  // while one does
  IdleLoop* idle = nullptr;       // while that is at work
  Questions asks = Questions::kNobody;
  std::chrono::milliseconds question_timeout{};
  std::vector<OpenQuestion> questions;
  // While something is held, nobody in the world runs. Owners: this, and for a moment who lets go of it.
  std::shared_ptr<Standstill> hold;
  StepId last_step{0};        // of a command
  int64_t last_question = 0;  // the number in its id
  bool over = false;          // the world has ended, or is as good as that
  pid_t shell = -1;           // the first process of the shell that runs, if one does

  control::CommandTracker tracker{clock, {}};
  control::LineReader lines;
  control::WriterQueue queue;
};

}  // namespace sandglass::session

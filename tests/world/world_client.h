// TestWorld: a local world with one project, and a host for it that runs commands and hands out no rights of its own: it releases
// each command at once and takes all output. A call that fails ends the test program: see must.h. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/line_reader.h"
#include "control/messages.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {

struct Ran {
  int exit_code = -1;
  std::optional<int> signal;
  bool timed_out = false;
  std::string error;
  std::string out;
  std::string err;
};

class TestWorld {
 public:
  // What the test wants different.
  using Change = std::function<void(world::LocalWorldSpec&)>;
  explicit TestWorld(const Change& change = {});
  // Into a workspace that outlives it.
  TestWorld(const TempWorkspace& workspace, const Change& change);

  const TempWorkspace& workspace() const { return *workspace_; }
  const std::string& project() const { return workspace_->project(); }
  world::LocalWorld& world() { return *world_; }

  // Gets each command's listener before the command is released; else the listener is only kept open.
  using Supervise = std::function<void(StepId, Fd)>;
  void SuperviseBy(Supervise supervise) { supervise_ = std::move(supervise); }

  // A line for the shell, to its end.
  Ran Run(std::string_view command);
  Ran Run(control::Exec exec);

  StepId Begin(control::Exec exec);
  Ran Finish(StepId id);
  void Send(const control::HostMessage& message);
  // Whatever it is.
  void SendLine(const std::string& text);
  // Until the command has printed that.
  void WaitForOutput(StepId id, std::string_view text);
  // Of a command that runs or has ended.
  const Ran& Of(StepId id) { return commands_[id].ran; }
  const std::vector<std::string>& problems() const { return problems_; }
  // The host no longer says that output was taken.
  void StopTaking() { taking_ = false; }
  void GoOnTaking();
  // For so long whatever happens.
  void Pump(std::chrono::milliseconds time);

 private:
  struct Command {
    Ran ran;
    bool ended = false;
    size_t not_acknowledged = 0;
  };
  void PumpUntil(const std::function<bool()>& done, std::string_view what);
  void PumpOnce(std::chrono::milliseconds time);
  void ReadChannel();
  void ReleaseCommands();
  void Receive(const control::ShimMessage& message);
  void On(const control::Output& output);
  void On(const control::StepCompleted& end);
  void Acknowledge(StepId id, Command& command);

  std::unique_ptr<TempWorkspace> own_workspace_;
  const TempWorkspace* workspace_;
  std::unique_ptr<world::LocalWorld> world_;
  control::LineReader lines_;
  std::map<StepId, Command> commands_;
  std::vector<Fd> listeners_;
  Supervise supervise_ = [this](StepId, Fd listener) { listeners_.push_back(std::move(listener)); };
  std::vector<std::string> problems_;
  int64_t last_id_ = 0;
  bool taking_ = true;
};

// As TestWorld makes it: a home with a secret beside the project, and a filter that allows everything.
world::LocalWorldSpec SpecFor(const TempWorkspace& workspace);

control::Exec Shell(std::string_view command);

// The line of a /proc status file: Field("CapEff:\t0...", "CapEff") is "0...".
std::string Field(std::string_view status, std::string_view name);

}  // namespace sandglass::test

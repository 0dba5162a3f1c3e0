// Session: one world, its projects with their undo logs, and the bridge between them. Runs commands one after the other; each is a
// step in every project that it may write to.
//
// The step is open before the command is sent. It closes when the command and everything that it started are gone, or a short while
// after the command itself ended: see control/step_boundaries.h. What daemons of earlier commands write later is ambient.
// The session ends with everything inside its world. One thread; the caller has no other one when the session starts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "control/command_tracker.h"
#include "session/allow_broad.h"
#include "session/bridge_messages.h"
#include "session/command_streams.h"
#include "session/host_streams.h"
#include "session/loop_guest.h"
#include "session/rewind_request.h"
#include "session/session_questions.h"
#include "session/watch/external_modification.h"
#include "session/watch/watch_options.h"
#include "undo/undo_log.h"
#include "world/local/spec.h"

namespace sandglass::session {

struct SessionProject {
  undo::UndoPaths paths;
  // kStaged: the session has nothing to do with its log, whose store must exist; stage.h makes the folders.
  world::Access access = world::Access::kReadWrite;
  std::string stage_upper = {}, stage_work = {};
};

struct SessionOptions {
  std::vector<SessionProject> projects;  // commands start in the first one
  std::string layer;                     // what the world keeps between sessions; "": nothing
  // Where a session of root without a layer keeps what commands change in the system, until it ends; "": nowhere, the system is
  // read-only then.
  std::string scratch_place;
  std::vector<std::string> hidden_paths;
  std::vector<std::string> extra_read_only, extra_read_write;
  world::Limits limits;
  // What we obey or keep our state in; commands must not be able to change it.
  std::vector<std::string> own_paths;
  // None: a project that is a whole home folder or a folder of the system, or holds one of our own paths, is refused.
  std::optional<AllowBroadProject> allow_broad = {};
  // None: a kernel without Landlock is refused. Else each report warns of what that leaves open.
  std::optional<world::WithoutLandlock> without_landlock = {};
  std::string shim_path;
  undo::UndoOptions undo;
  // Its policy is the one that counts, and not that of `undo`. A policy that cannot be kept is an error.
  WatchOptions watch;
  // Told what others did to the projects, on the thread of Run() and TakeEvents(); may be empty.
  TellExternal on_external;
  Questions questions = Questions::kNobody;
  Logger log = Logger::Null();
};

class ShellWords;

enum class AfterCommand : uint8_t {
  kSessionGoesOn,
  kSessionEnds,  // so the world may go as soon as it is not needed any more, and nothing else is run
};

struct CommandSpec {
  std::vector<std::string> argv;
  std::string cwd;  // absolute; "": the first project
  std::vector<control::EnvEntry> env;
  std::optional<std::chrono::milliseconds> timeout;
  std::string label;  // as history shows it
  AfterCommand after = AfterCommand::kSessionGoesOn;
  // Not null: it is a bash with ShellArguments(), and each of its command lines is a step.
  const ShellWords* shell = nullptr;
};

// What one command did to one project.
struct ProjectStep {
  std::string project;
  std::vector<undo::Change> changes;
};

struct CommandReport {
  StepId step;
  control::Outcome outcome;
  std::vector<ProjectStep> projects;
  undo::Protection protection = undo::Protection::kFull;  // in all of them
  std::vector<std::string> warnings;                      // for a person
};

// A file of a project that a program writes, and not a command.
struct FileToWrite {
  std::string project;
  std::string path;  // normal, from the project
  std::string content;
  std::string label;  // as history shows it
  FoldersAround folders = FoldersAround::kMustExist;
  std::optional<files::FileVersion> expected = {};  // kConflict: it has another one
};
struct WrittenFile {
  StepId step;
  std::vector<undo::Change> changes;
  std::vector<std::string> warnings;  // for a person
};

class Session {
 public:
  // Starts the bridge process, which recovers the projects, and meanwhile builds the world. Whatever protection cannot be set up is an error, and nothing runs.
  static Result<std::unique_ptr<Session>> Start(const SessionOptions& options);
  ~Session();
  struct Parts;  // for the files of this module: parts.h
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // To its end. An error: the command did not run, or not to its end, or its step could not be closed. The world has ended then, unless
  // the session lives().
  Result<CommandReport> Run(const CommandSpec& spec, CommandStreams& streams);
  // True after an error of Run(): the command could not be begun (kInvalid: it makes no sense; kLimit: it is too long), nothing has
  // happened, and another one may be run.
  bool lives() const;

  // --- For a program that shares its thread with the session (loop_guest.h). In session_guest.cc.

  // From now on it takes part in Run() and Idle(). Null: nobody does.
  void SetGuest(LoopGuest* guest);
  // Serves other programs and notices what happens in the world until the guest wants out. An error: the world or the bridge is gone.
  Status Idle();
  // Carries it out, also while a command runs; `reply` is called once, now or later. Only from within the guest's Work().
  using RewindReply = std::function<void(const RewindAnswer&)>;
  void Ask(RewindRequest request, RewindReply reply);
  // The step of the command that runs.
  std::optional<StepId> running_step() const;
  // Of the command that runs; without one nothing happens.
  void CancelCommand();
  void SignalCommand(int number);
  // kInvalid: it has no terminal. kNotFound: none runs.
  Status ResizeTerminal(control::TerminalSize size);
  // Puts content in the place of a file, or makes it, as a step of its own of kind api. No command runs. kBusy: processes that an earlier
  // one left behind have the project open. Others as of the interceptor and the system.
  Result<WrittenFile> WriteFile(const FileToWrite& file);
  // Whoever reads a store of this session afterwards finds the steps of all commands that have ended: those without a change are entered
  // in the history only a while later. An error: the bridge is gone.
  Status EnterHistory();
  // Gives the projects' logs other limits and safeguards, by another bridge process; the world goes on. No command runs. kBusy: an
  // earlier one left processes behind. After any other error the session is good for nothing but to be ended. The policy for what others
  // change stays that of SessionOptions::watch.
  Status Reconfigure(undo::UndoOptions undo, Questions questions);
  // Before a denial takes effect, all processes of commands are ended; the step is taken back. kNotFound: nobody waits for it (any more).
  // Only from within the guest's Work().
  Status AnswerSafeguard(const std::string& id, undo::Decision decision);

  // Between two commands: what others did is told when events_fd() is readable and this is called. Never blocks.
  void TakeEvents();
  int events_fd() const;

  // Of each project that is written to, what recovery found.
  const std::vector<undo::RecoveryReport>& recoveries() const;
  // By which means limits are enforced.
  std::vector<std::string> notes() const;

 private:
  explicit Session(std::unique_ptr<Parts> parts);
  static Status StartTogether(Parts& parts, const world::LocalWorldSpec& spec,
                              const undo::UndoOptions& undo);
  Status FinishStart();
  std::unique_ptr<Parts> parts_;
};

}  // namespace sandglass::session

// Host: the one session that a client drives, and what becomes of its requests. Every interface (STDIO, MCP) is a thin adapter that
// parses its messages into calls of the table in operation.h and sends what the host answers and tells.
//
// One thread, which is the session's too. What looks (status, history, files) is answered at once, also while a command runs. What
// starts, ends or runs something cannot be done from within a session's loop: it becomes the deed, which the adapter's main loop carries
// out before it hands in further calls. So requests take effect in the order in which they came.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/operation.h"
#include "base/clock.h"
#include "base/log.h"
#include "policy/classifier.h"
#include "session/session.h"

namespace sandglass::api {

// Where the host says what nobody asked for.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void Tell(std::string_view event, Json payload) = 0;
  // How many bytes of a command's output may be told now; what does not fit stays with the command, which waits then.
  virtual size_t OutputRoom() const = 0;
  // The client has not read for so long that output is dropped, where there is no room for it, rather than waited for.
  virtual bool stalled() const = 0;
};

struct WorkingDirectory {
  std::string path;  // as given; once started, the real one
  std::string label;
  world::Access access = world::Access::kReadWrite;
};

enum class WorldMode : uint8_t { kPersistent, kEphemeral };

// What a client asks for with `session.start`.
struct StartRequest {
  std::vector<WorkingDirectory> directories;
  WorldMode mode = WorldMode::kPersistent;
};

// What becomes of that.
struct Prepared {
  session::SessionOptions session;
  // The words of the coding agent's command; none: there is no agent.
  std::vector<std::string> agent = {};
  policy::ClassifierConfig classifier = policy::DefaultClassifierConfig();
  bool safeguards_off = false;  // the user wants none unless somebody asks for them by name
};

struct HostOptions {
  // From that to what a session needs: where stores and layers are is not the business of an interface.
  std::function<Result<Prepared>(const StartRequest&)> prepare;
  std::string program_version;
  Logger log = Logger::Null();
};

// Of undo.configure: what was given, over what files say.
struct GivenLimits {
  std::optional<uint64_t> max_copied_bytes, max_step_copied_bytes;
  std::optional<uint32_t> max_steps;
};

// Of safeguard.configure: the same; a threshold of none switches that safeguard off.
struct GivenSafeguards {
  template <class Number>
  using Threshold = std::optional<std::optional<Number>>;
  Threshold<uint32_t> delete_count, rename_over_count;
  Threshold<uint64_t> overwrite_bytes;
  std::optional<std::chrono::milliseconds> timeout;
  bool configured = false;  // somebody can answer
  bool by_default =
      false;  // and is asked the built-in questions where neither a request nor a file says others
};

class CommandOutput;

class Host {
 public:
  // `guest` shares the session's loop; both outlive the host.
  Host(HostOptions options, Outlet& outlet, session::LoopGuest& guest);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Checks it and hands it to its handler, or refuses. The answer may come later.
  void Take(const Operation& operation, Call call);
  // Somebody can answer questions: the built-in ones are asked (session/config/config.h), unless the user's files or a request say something
  // else.
  void AskByDefault(Call call);

  bool has_deed() const { return deed_ != nullptr; }
  void DoDeed();
  // Null: there is none, or only one that waits for `undo.discard`.
  session::Session* session() { return session_.get(); }
  // The session's loop failed: its world or bridge is gone.
  void LoseSession(const Error& why);
  // What is asked for from now on is refused; a running command is ended, and then the session.
  void BeginShutdown();
  // With everything in its world. No command runs.
  void EndSession();
  // Whether the command of that request runs.
  bool runs(std::string_view request_id) const {
    return running_ && running_->request_id == request_id;
  }

  // --- Handlers, for the table.
  void Negotiate(Call call);
  void StartSession(Call call);
  void StopSession(Call call);
  void ResetSession(Call call);
  void ShowStatus(Call call);
  void Execute(Call call);
  void Prompt(Call call);
  void Cancel(Call call);
  void Input(Call call);
  void Resize(Call call);
  void Rollback(Call call);
  void Redo(Call call);
  void Restore(Call call);
  void ShowHistory(Call call);
  void ShowChanges(Call call);
  void ShowDiff(Call call);
  void ConfigureUndo(Call call);
  void DiscardUndo(Call call);
  void ListFolder(Call call);
  void ReadFile(Call call);
  void WriteFile(Call call);
  void EditFile(Call call);
  void FindFiles(Call call);
  void SearchFiles(Call call);
  void ShowFileSystems(Call call);
  void ConfigureSafeguards(Call call);
  void ConfirmSafeguard(Call call);

  // --- From the session.
  void TellExternal(const session::ExternalModification& event);
  // By way of the guest.
  void TellSafeguard(const session::HeldOperation& held);
  void SettleSafeguard(const std::string& id, undo::Decision decision);

 private:
  friend class CommandOutput;
  struct Running {
    std::string request_id, command;
    std::string_view output_event;
    std::unique_ptr<CommandOutput> output;
  };

  // --- What stands in the way of an operation now; nullopt: nothing.
  std::optional<ApiError> Objection(const Operation& operation) const;
  ApiError RunningError() const;
  void Do(std::function<void()> deed);
  std::string_view state() const;
  Json StatusToJson() const;

  // --- Lifecycle: host_session.cc
  Answer Start(const StartRequest& request);
  Answer Open();
  void TellRecoveries();
  void TellVersionMismatch(const Error& why);
  Answer Stop();
  Answer Reset();
  // Into the session that runs; without one it counts from the next start on. What is refused is not kept.
  void ApplyConfiguration(const Call& call, const GivenLimits& limits,
                          const GivenSafeguards& safeguards);
  void Configure(session::SessionOptions& options, const GivenLimits& limits,
                 const GivenSafeguards& safeguards) const;
  void EndCommandFirst();

  // --- Commands: host_agent.cc
  // A command, and what becomes of its streams.
  struct Execution {
    session::CommandSpec spec;
    std::optional<control::TerminalSize> terminal;
    bool takes_input = false;
    std::optional<std::string> whole_input;  // none: the client sends it, if it takes any
    std::string_view output_event = "event.terminal_output";
    // For people, and never a boundary.
    std::optional<policy::CommandClass> command_class;
    std::vector<policy::Finding> dangers;
  };
  void RunCommand(const Execution& execution, const Call& call);
  Json StepToJson(const session::CommandReport& report) const;
  void TellDangers(const Execution& execution, const std::string& request_id);
  void TellWarnings(const std::vector<std::string>& warnings, StepId step,
                    const std::string& request_id);

  // --- Projects
  Result<size_t> DirectoryOf(const Json& payload) const;
  // kInvalid: that one is read-only.
  Result<undo::UndoPaths> WritableOf(const Json& payload) const;
  // The same, for who looks into its history, which is up to date then.
  Result<undo::UndoPaths> UpToDate(const Json& payload);
  void Rewind(session::RewindRequest request, const Call& call);
  struct Target {
    std::string directory, path;  // the working directory, and from there
  };
  Result<Target> TargetOf(const Json& payload) const;
  // Tells of the step, and returns {"step_id", "path", "size"}.
  Result<Json> WriteAsStep(const session::FileToWrite& file, const Call& call);
  Result<Json> Edit(const Call& call);

  const HostOptions options_;
  Outlet& outlet_;
  session::LoopGuest& guest_;
  SystemClock clock_;
  std::unique_ptr<session::Session> session_;
  std::optional<StartRequest> request_;  // of the session that there is, or was last
  std::optional<session::SessionOptions> session_options_;  // the same
  std::vector<std::string> agent_;                          // the same
  policy::ClassifierConfig classifier_;                     // the same
  std::optional<size_t> discard_first_;  // the directory whose undo log is of another version
  std::optional<ApiError> lost_;         // why the session is in its error state
  GivenLimits limits_;                   // as configured
  GivenSafeguards safeguards_;           // the same
  bool safeguards_off_ = false;          // as the user's files say
  std::map<std::string, StepId> held_;   // whose operation waits for an answer, by its id
  std::optional<std::string> denied_;    // the last safeguard that ended the running command
  std::optional<Running> running_;
  std::function<void()> deed_;
  bool shutting_down_ = false;
};

}  // namespace sandglass::api

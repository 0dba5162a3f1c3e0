// Host: the one session that a client drives, and what becomes of its requests. Every interface (STDIO, MCP) is a thin adapter that
// parses its messages into calls of the table in operation.h and sends what the host answers and tells.
//
// One thread, which is the session's too. What looks (status, history, files) is answered at once, also while a command runs. What
// starts, ends or runs something cannot be done from within a session's loop: it becomes the deed, which the adapter's main loop carries
// out before it hands in further calls. So requests take effect in the order in which they came.
#pragma once

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

struct HostOptions {
  // From that to what a session needs: where stores and layers are is not the business of an interface.
  std::function<Result<session::SessionOptions>(const StartRequest&)> prepare;
  std::string program_version;
  Logger log = Logger::Null();
};

// Of undo.configure: what was given, over what files say.
struct GivenLimits {
  std::optional<uint64_t> max_copied_bytes, max_step_copied_bytes;
  std::optional<uint32_t> max_steps;
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
  bool is_running() const { return running_.has_value(); }

  // --- Handlers, for the table.
  void Negotiate(Call call);
  void StartSession(Call call);
  void StopSession(Call call);
  void ResetSession(Call call);
  void ShowStatus(Call call);
  void Execute(Call call);
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

  // --- From the session, by way of the guest.
  void TellSafeguard(const session::SafeguardAsked& asked);
  void SettleSafeguard(const session::SafeguardKey& key, undo::Decision decision);

 private:
  friend class CommandOutput;
  struct Running {
    std::string request_id, command;
    std::unique_ptr<CommandOutput> output;
  };

  // An operation of the step waits for an answer.
  struct Held {
    session::SafeguardKey key;
    StepId step;
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
  using Safeguards = std::optional<undo::SafeguardConfig>;
  void ApplyConfiguration(const Call& call, const GivenLimits& limits,
                          const Safeguards& safeguards);
  static void Configure(session::SessionOptions& options, const GivenLimits& limits,
                        const Safeguards& safeguards);
  void EndCommandFirst();

  // --- Commands: host_agent.cc
  void RunCommand(const session::CommandSpec& spec, const Call& call);
  Json StepToJson(const session::CommandReport& report) const;
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
  std::optional<size_t> discard_first_;  // the directory whose undo log is of another version
  std::optional<ApiError> lost_;         // why the session is in its error state
  GivenLimits limits_;                   // as configured
  Safeguards safeguards_;                // the same; none: nobody is asked
  std::map<std::string, Held> held_;     // by the id that the client knows
  uint64_t next_safeguard_ = 1;
  std::optional<std::string> denied_;  // the last safeguard that ended the running command
  std::optional<Running> running_;
  std::function<void()> deed_;
  bool shutting_down_ = false;
};

}  // namespace sandglass::api

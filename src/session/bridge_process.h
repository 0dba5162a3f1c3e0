// BridgeProcess: the session's end of the process that changes the projects and keeps their undo logs.
//
// It reads what hostile commands hand in, so it is a process of its own with as few rights as the work allows (bridge/confinement.h).
// It is forked, not executed: it needs nothing that the session does not have at that moment, and starts in less than a millisecond.
// It ends with the session. If it dies, every call here says so; commands cannot change the projects then, and the next session
// recovers. Blocks while it waits for answers. One thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/bridge_messages.h"
#include "session/safeguard_messages.h"
#include "session/session_questions.h"
#include "session/watch/external_modification.h"
#include "session/watch/watch_options.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// What `ps` shows of it.
inline constexpr char kBridgeName[] = "sg-bridge";

class BridgeProcess {
 public:
  // Returns while it opens the logs. The calling process has one thread.
  static Result<std::unique_ptr<BridgeProcess>> Begin(const std::vector<undo::UndoPaths>& projects,
                                                      const undo::UndoOptions& options,
                                                      const WatchOptions& watch,
                                                      Questions questions);
  // Returns when the projects are recovered and their logs are open; before that nothing else may be asked for. Called
  // again, it says the same at once.
  Status AwaitOpened();
  BridgeProcess(const BridgeProcess&) = delete;
  BridgeProcess& operator=(const BridgeProcess&) = delete;
  // As End(); returns when the process is gone.
  ~BridgeProcess();

  const std::vector<undo::RecoveryReport>& recoveries() const { return recoveries_; }
  pid_t pid() const { return pid_; }
  // Ready when there is something to be looked at by CheckWork().
  int fd() const { return channel_.get(); }
  // An error: it has died, or could not do what was only sent. Does not block.
  Status CheckWork();
  // Says how, once it has.
  Error Death() const;

  // Readable when TakeQuestion has one; -1: nobody is asked.
  int questions_fd() const { return questions_.get(); }
  Result<SafeguardAsked> TakeQuestion();
  Status AnswerQuestion(const SafeguardAnswered& answer);

  // What others did to the projects, as far as it is known; events_fd() is readable when there is something. Never blocks.
  std::vector<ExternalModification> TakeEvents();
  int events_fd() const { return events_.get(); }

  // These three only send. Requests are served in order, so whatever is asked for next finds them done; if one failed, that says so, or
  // CheckWork(). Until a command is supervised, and for ever if that fails, its calls wait.
  Status Supervise(StepId command, const Fd& listener, pid_t world);
  Status Forget(StepId command);
  Status Announce(StepId step, const std::string& label, undo::IfUnchanged if_unchanged);
  // Until they are done. Who lets a process go on that is supervised already must wait: its next call would be faster.
  Status AwaitSent();
  Result<Closed> CloseStep(EmptyEntry empty_entry);
  // An id that no project has used; between two steps it is known without asking.
  Result<StepId> NextId();
  Result<Position> AskPosition();
  // Has all closed steps entered in the history. What failed of what was only sent is left to CheckWork().
  Status EnterSteps();
  Result<Written> WriteFile(const WriteRequest& request, const Fd& content);
  // `tell` is called while it waits, if the request wants that. What failed of what was only sent is left to CheckWork().
  RewindAnswer Rewind(const RewindRequest& request, const TellProgress& tell);
  // Has it close the logs and end. What is to be supervised has ended before, and nothing else may be asked for afterwards.
  void BeginEnd();
  // The same, and returns what has come up since the last step was closed.
  std::vector<std::string> End();
  // Until the process is gone, and the stores with it are nobody's. Ended before.
  void AwaitGone();

 private:
  BridgeProcess(pid_t pid, Fd channel, Fd events, Fd questions)
      : pid_(pid),
        channel_(std::move(channel)),
        events_(std::move(events)),
        questions_(std::move(questions)) {}
  Status Send(const BridgeRequest& request, std::span<const int> passed = {});
  // The frame that answers what was asked last. The second one returns what failed before in its place.
  Result<std::string> NextAnswer();
  Result<std::string> AnswerOrFailure();
  // The frame that answers it.
  Result<std::string> Ask(const BridgeRequest& request, std::span<const int> passed = {});
  Result<std::string> NextFrame();
  Status TakeOpened();

  const pid_t pid_;
  Fd channel_;
  Fd events_;  // whole messages; none is waited for, by neither side
  Fd questions_;
  std::optional<Status> opened_;
  std::optional<StepId> next_;
  Status failed_;  // the first of what was only sent
  bool gone_ = false;
  std::optional<Status> end_sent_;
  std::vector<undo::RecoveryReport> recoveries_;
};

}  // namespace sandglass::session

// Rewinds: carries out what people ask of a running session: undo, redo and restore.
//
// A step that has begun, or a file that a process has open for writing, is in the way: the answer is kBusy with the ids of the
// processes. Asked to end them first, the request waits until they are gone and the step is closed. One thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "session/parts.h"
#include "session/rewind_request.h"
#include "session/step_keeper.h"

namespace sandglass::session {

// What runs in the world now.
class Runner {
 public:
  virtual ~Runner() = default;
  // The ids of the processes, as the host sees them, that End() would end.
  virtual std::vector<pid_t> Processes() const = 0;
  // They are to end soon, and their step is to close.
  virtual void End() = 0;
  // They had their time.
  virtual void EndAtOnce() = 0;
};

class Rewinds {
 public:
  Rewinds(Session::Parts& parts, const StepKeeper& keeper, Runner& runner)
      : parts_(parts), keeper_(keeper), runner_(runner) {}

  using Reply = std::function<void(const RewindAnswer&)>;
  // `tell`, if any, is called before the reply.
  void Ask(RewindRequest request, Reply reply, TellProgress tell = {});
  // Carries out what has waited long enough. Call it when Deadline() is reached, and after every change of a step.
  void Work();
  // The session ends: whoever waits is told why nothing came of it.
  void RefuseAll(const Error& why);
  std::optional<Instant> Deadline() const;
  bool waiting() const { return !waiting_.empty(); }

 private:
  struct Waiting {
    RewindRequest request;
    Reply reply;
    TellProgress tell;
    Instant kill_at, give_up_at;
  };
  bool IsClear() const;
  RewindAnswer Carry(const RewindRequest& request, const TellProgress& tell);
  RewindAnswer Do(const RewindRequest& request, const TellProgress& tell);

  Session::Parts& parts_;
  const StepKeeper& keeper_;
  Runner& runner_;
  std::vector<Waiting> waiting_;
  Instant next_look_{};
};

}  // namespace sandglass::session

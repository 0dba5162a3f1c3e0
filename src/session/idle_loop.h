// IdleLoop: a session between two commands. Processes that earlier commands left behind may still be at work; other programs may ask
// for an undo; the world may die. One thread.
#pragma once

#include <poll.h>

#include <vector>

#include "session/parts.h"
#include "session/rewinds.h"
#include "session/runners.h"
#include "session/step_keeper.h"

namespace sandglass::session {

class IdleLoop {
 public:
  // There is a guest, who says when it ends.
  explicit IdleLoop(Session::Parts& parts) : parts_(parts) {}
  Status Run();
  void Ask(RewindRequest request, Rewinds::Reply reply) {
    rewinds_.Ask(std::move(request), std::move(reply));
  }

 private:
  Status Turn();
  std::vector<pollfd> Watched() const;
  Status Act();

  Session::Parts& parts_;
  StepKeeper keeper_{parts_};
  ShellRunner runner_{parts_, keeper_};  // without a shell: everything that is left in the world
  Rewinds rewinds_{parts_, keeper_, runner_};
};

}  // namespace sandglass::session

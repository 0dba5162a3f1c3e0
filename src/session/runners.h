// What runs in a world, and how it is ended: a whole command, or everything that a shell has started but the shell itself.
#pragma once

#include "session/rewinds.h"

namespace sandglass::session {

class CommandRunner : public Runner {
 public:
  CommandRunner(Session::Parts& parts, const StepId& command) : parts_(parts), command_(command) {}
  std::vector<pid_t> Processes() const override;
  void End() override;
  void EndAtOnce() override {}  // the shim does, and the tracker watches over it

 private:
  Session::Parts& parts_;
  const StepId& command_;
};

class ShellRunner : public Runner {
 public:
  ShellRunner(Session::Parts& parts, const StepKeeper& keeper) : parts_(parts), keeper_(keeper) {}
  // Its first process exists and has not executed anything yet.
  void NoteShell();
  std::vector<pid_t> Processes() const override;
  void End() override;
  void EndAtOnce() override;

 private:
  Session::Parts& parts_;
  const StepKeeper& keeper_;
};

}  // namespace sandglass::session

#include "session/runners.h"

#include <signal.h>

#include <algorithm>

#include "base/process_tree.h"

namespace sandglass::session {
namespace {

// Without the shim and the keepers, which are its children.
std::vector<pid_t> ProcessesOfCommands(pid_t shim) {
  std::vector<pid_t> processes = DescendantsOf(shim);
  const std::vector<pid_t> keepers = ChildrenOf(shim);
  std::erase_if(processes,
                [&](pid_t pid) { return std::ranges::find(keepers, pid) != keepers.end(); });
  return processes;
}

}  // namespace

std::vector<pid_t> CommandRunner::Processes() const {
  return ProcessesOfCommands(parts_.world->init_pid());
}

void CommandRunner::End() {
  (void)parts_.tracker.CancelCommand(command_);  // it may have ended meanwhile
}

void ShellRunner::NoteShell() {
  const std::vector<pid_t> processes = ProcessesOfCommands(parts_.world->init_pid());
  if (!processes.empty()) shell_ = processes.front();
}

std::vector<pid_t> ShellRunner::Processes() const {
  std::vector<pid_t> processes = ProcessesOfCommands(parts_.world->init_pid());
  std::erase(processes, shell_);
  return processes;
}

void ShellRunner::End() {
  for (const pid_t pid : ProcessesOfCommands(parts_.world->init_pid())) {
    if (pid != shell_)
      ::kill(pid, SIGTERM);
    else if (keeper_.has_begun())
      ::kill(pid, SIGINT);  // a loop of its own would only go on with its next round
  }
}

void ShellRunner::EndAtOnce() {
  for (const pid_t pid : Processes()) ::kill(pid, SIGKILL);
}

}  // namespace sandglass::session

#include "session/runners.h"

#include <signal.h>

#include "session/held_steps.h"
#include "session/standstill.h"

namespace sandglass::session {
std::vector<pid_t> CommandRunner::Processes() const {
  return ProcessesOfCommands(parts_.world->init_pid());
}

void CommandRunner::End() {
  (void)parts_.tracker.CancelCommand(command_);  // it may have ended meanwhile
  DenyQuestionsOfStep(parts_, command_);
}

void ShellRunner::NoteShell() {
  const std::vector<pid_t> processes = ProcessesOfCommands(parts_.world->init_pid());
  if (!processes.empty()) parts_.shell = processes.front();
}

std::vector<pid_t> ShellRunner::Processes() const {
  std::vector<pid_t> processes = ProcessesOfCommands(parts_.world->init_pid());
  std::erase(processes, parts_.shell);
  return processes;
}

void ShellRunner::End() {
  DenyAllQuestions(parts_);
  for (const pid_t pid : ProcessesOfCommands(parts_.world->init_pid())) {
    if (pid != parts_.shell)
      ::kill(pid, SIGTERM);
    else if (keeper_.has_begun())
      ::kill(pid, SIGINT);  // a loop of its own would only go on with its next round
  }
}

void ShellRunner::EndAtOnce() {
  for (const pid_t pid : Processes()) ::kill(pid, SIGKILL);
}

}  // namespace sandglass::session

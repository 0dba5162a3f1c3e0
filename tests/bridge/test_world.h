// TestWorld: runs one shell command in namespaces of its own, with the project read-only at its real path and a supervisor that
// performs its changes. Only what the supervised bridge needs of a world; the rest of the host's files are as they are.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bridge/supervise/supervisor.h"

namespace sandglass::test {

struct CommandResult {
  int exit_code = -1;  // 128 + n for a signal
  std::string output;  // stdout and stderr
  friend bool operator==(const CommandResult&, const CommandResult&) = default;
};

// Who runs the command. As root there is a user namespace with all ids and few capabilities.
struct WorldOptions {
  uid_t uid = 0;
  // Where else the project is mounted; "": nowhere.
  std::string also_at = {};
  bridge::Serving serving = bridge::Serving::kAtOnce;
};

// As a plain child process, in the directory `cwd`.
CommandResult RunNatively(const std::string& command, const std::string& cwd, uid_t uid = 0);

class RunningWorld {
 public:
  // The command starts at once; ends the program when the machine refuses.
  RunningWorld(bridge::Supervisor& supervisor, const std::string& command,
               const std::string& project, const WorldOptions& options = {});
  ~RunningWorld();
  CommandResult Finish();
  bridge::SupervisedCommand& command() { return *command_; }
  pid_t pid() const { return pid_; }

 private:
  std::string output_path_;
  pid_t child_ = -1;
  pid_t pid_ = -1;
  std::unique_ptr<bridge::SupervisedCommand> command_;
};

// Can this machine build such a world at all? "": yes.
std::string WhyNoWorld();

}  // namespace sandglass::test

// Shim: the first process of a world. It runs the commands that the host asks for and reaps whatever has lost its parent.
//
// One thread around poll(): nothing wakes it but the channel, a command's pipes, a child's end and the deadlines that commands
// have set. When the channel closes it returns, and as it is process 1 the kernel ends the whole world with it. It trusts neither
// side: a message that makes no sense is reported as a problem and has no effect.
#pragma once

#include <linux/filter.h>

#include <map>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "control/line_reader.h"
#include "control/messages.h"
#include "shim/channel.h"
#include "shim/command.h"
#include "shim/spawn.h"

namespace sandglass::shim {

struct ShimDescriptors {
  Fd control;          // non-blocking
  Fd listener_socket;  // takes the listeners of commands; invalid if there is no filter
  Fd children;         // a signalfd of SIGCHLD
};

class Shim {
 public:
  Shim(ShimDescriptors descriptors, std::vector<sock_filter> filter);

  // Until the channel closes.
  void Run();

 private:
  void Wait();
  int MillisecondsToNextDeadline() const;
  // False: the other end has closed the channel.
  bool ReadChannel();
  void Receive(const Result<std::string_view>& line);

  void On(control::Exec exec);
  void On(const control::Cancel& cancel);
  void On(const control::RollbackNotify& notify);
  void On(control::Input input);
  void On(const control::Resize& resize);
  void On(const control::Signal& signal);
  void On(const control::Ack& ack);

  Result<Spawned> Start(const control::Exec& exec);
  Supervision supervision() const;
  void PrepareNext();
  void CannotStart(StepId id, const Error& error);
  // Null: there is none any more; the host's message and the end have crossed.
  Command* Find(StepId id);
  void ReapChildren();
  void GoOnIfKeeper(pid_t stopped);
  void WorkOnCommands();

  Channel channel_;
  Fd listener_socket_;
  Fd children_;
  std::vector<sock_filter> filter_;
  control::LineReader lines_;
  std::map<StepId, Command> commands_;
  bool more_come_ = false;               // as the host said of the last one
  Output next_output_ = Output::kPiped;  // and what the next one has then, most likely
  std::optional<SpareKeeper> spare_;
};

}  // namespace sandglass::shim

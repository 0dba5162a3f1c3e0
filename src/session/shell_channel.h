// ShellChannel: the socket pair between the session and the hooks of its shell, and the script with those hooks. Never blocks. One
// thread.
#pragma once

#include <poll.h>

#include <array>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "control/line_reader.h"
#include "control/shim_start.h"
#include "session/shell_messages.h"

namespace sandglass::session {

class ShellChannel {
 public:
  static Result<ShellChannel> Open();

  // What the shell is to be given; see ShellRc().
  std::array<int, control::kMaxGivenFds> given() const { return {theirs_.get(), script_.get()}; }
  // It has them now.
  void CloseGiven();

  void AddTo(std::vector<pollfd>& fds) const;
  // What came, also what could not be understood; sends what could not be sent before.
  std::vector<Result<ShellMessage>> Work();
  void Send(const std::string& tag, const ShellReply& reply);

 private:
  ShellChannel() = default;
  void Write();

  Fd ours_, theirs_, script_;
  control::LineReader frames_{kMaxShellMessageBytes, '\0'};
  std::string unsent_;
};

}  // namespace sandglass::session

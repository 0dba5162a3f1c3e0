// ShellLines: makes each command line of a shell a step, and answers what is typed inside: undo, redo and steps. What bash says is
// not trusted: a line that is told too early, too late or twice splits a step, and what is written outside of any is ambient. One thread.
#pragma once

#include <variant>

#include "session/rewinds.h"
#include "session/shell_channel.h"
#include "session/step_keeper.h"

namespace sandglass::session {

// Who knows what typed words mean, and how to tell an answer.
class ShellWords {
 public:
  virtual ~ShellWords() = default;
  // "undo 2" is a request, whose project is not set; "steps" has its answer at once, and so has what makes no sense.
  virtual std::variant<RewindRequest, ShellReply> Understand(
      const std::vector<std::string>& words, const undo::UndoPaths& paths) const = 0;
  virtual ShellReply Tell(const RewindRequest& request, const RewindAnswer& answer) const = 0;
};

class ShellLines {
 public:
  ShellLines(Session::Parts& parts, StepKeeper& keeper, Rewinds& rewinds, const ShellWords& words,
             ShellChannel channel)
      : parts_(parts),
        keeper_(keeper),
        rewinds_(rewinds),
        words_(words),
        channel_(std::move(channel)) {}

  ShellChannel& channel() { return channel_; }
  const ShellChannel& channel() const { return channel_; }
  // Does what the shell asked for. A failure: a step could not be opened or closed.
  Status Work();

 private:
  Status CloseLine();
  Status On(const std::string& tag, const LineBegins& begins);
  Status On(const std::string& tag, const LineEnded&);
  Status On(const std::string& tag, const WordsTyped& typed);

  Session::Parts& parts_;
  StepKeeper& keeper_;
  Rewinds& rewinds_;
  const ShellWords& words_;
  ShellChannel channel_;
  std::vector<std::string> notices_;  // that the next prompt has to tell
};

}  // namespace sandglass::session

// CommandRun: one command from its step's begin to its step's end. The loop that carries bytes between the host's streams and the
// world, hands listeners to the bridge, and does what the tracker says. One thread.
#pragma once

#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session/command_streams.h"
#include "session/parts.h"
#include "session/rewinds.h"
#include "session/runners.h"
#include "session/shell_lines.h"
#include "session/step_keeper.h"

namespace sandglass::session {

class CommandRun {
 public:
  CommandRun(Session::Parts& parts, CommandStreams& streams, const CommandSpec& spec)
      : parts_(parts), streams_(streams), spec_(spec) {}
  Result<CommandReport> Run();

  // --- For whoever shares the loop. A command that has ended meanwhile is none of their concern.
  StepId step() const { return report_.step; }
  void Cancel();
  void Signal(int number) { (void)parts_.tracker.SendSignal(report_.step, number); }
  Status Resize(control::TerminalSize size) {
    return parts_.tracker.ResizeTerminal(report_.step, size);
  }
  void Ask(RewindRequest request, Rewinds::Reply reply) {
    rewinds_.Ask(std::move(request), std::move(reply));
  }

 private:
  control::Exec ExecFor() const;
  Status OpenShellChannel();
  bool Finished() const;
  bool OnlyCloses() const;

  // --- What the tracker wants done; a failure ends the run.
  Status Act();
  Status Do(const control::StepChange& change);
  Status Do(const control::Send& send);
  Status Do(const control::Started&) { return Ok(); }
  Status Do(const control::Show& show);
  Status Do(const control::Ended& ended);
  Status Do(const control::Violation& violation);
  Status Do(const control::Complaint& complaint);
  Status Do(const control::Stuck& stuck);
  Status Do(const control::WrongVersion& wrong);
  Status CloseSteps();
  Status CloseAgain();
  Error GiveUp(const Error& why);

  // --- What other programs ask of us.
  Runner& runner();
  Status TakeRequests();

  // --- One turn of the loop.
  Result<CommandReport> Carry();
  Status Begin();
  Status Turn();
  std::vector<pollfd> Watched() const;
  int Patience() const;
  void ReadChannel();
  void LoseWorld();
  Status TakeListeners();
  Status Release(StepId command);
  Status ReadOutput(control::Stream stream, const std::vector<pollfd>& fds);
  void TakeInput();
  void TakeSignals();
  Status WriteOutput(control::Stream stream);
  Status PassOn(control::Stream stream, std::string_view& bytes);
  void LoseReader(control::Stream stream);
  void Warn(std::string text) { report_.warnings.push_back(std::move(text)); }

  Session::Parts& parts_;
  CommandStreams& streams_;
  const CommandSpec& spec_;
  CommandReport report_;
  StepKeeper keeper_{parts_};
  CommandRunner command_{parts_, report_.step};
  ShellRunner shell_runner_{parts_, keeper_};
  Rewinds rewinds_{parts_, keeper_, runner()};
  std::optional<ShellLines> shell_;
  bool takes_input_ = true;
  bool ended_ = false, closed_ = false, lost_ = false;
  std::optional<Instant> close_again_;  // a question was on its way when the step was to close
  std::string input_;                   // read, and not sent yet
  std::optional<OutputPipes> pipes_;    // none: its output comes from the shim
  std::string read_;                    // room for what they give; empty until there is something
  std::map<control::Stream, std::string>
      pending_;  // output that nobody has taken yet; the window bounds it, or how much is read at once
  bool reader_gone_ = false;  // of output that comes from the shim
};

}  // namespace sandglass::session

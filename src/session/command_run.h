// CommandRun: one command from its step's begin to its step's end. The loop that carries bytes between the host's streams and the
// world, hands listeners to the supervisor, and does what the tracker says. One thread.
#pragma once

#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session/host_streams.h"
#include "session/parts.h"
#include "session/rewinds.h"
#include "session/step_keeper.h"

namespace sandglass::session {

class CommandRun : private Runner {
 public:
  CommandRun(Session::Parts& parts, HostStreams& streams) : parts_(parts), streams_(streams) {}
  Result<CommandReport> Run(const CommandSpec& spec);

 private:
  control::Exec ExecFor(const CommandSpec& spec) const;
  bool Finished() const;

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
  Error GiveUp(const Error& why);

  // --- What other programs ask of us.
  std::vector<pid_t> Processes() const override;
  void End() override;
  void EndAtOnce() override {}  // the shim does, and the tracker watches over it
  void TakeRequests();

  // --- One turn of the loop.
  Status Turn();
  std::vector<pollfd> Watched() const;
  int Patience() const;
  void ReadChannel();
  void WriteChannel();
  Status TakeListeners();
  void NoticeEndedProcesses();
  void TakeInput();
  void TakeSignals();
  Status WriteOutput(control::Stream stream);
  void Warn(std::string text) { report_.warnings.push_back(std::move(text)); }

  Session::Parts& parts_;
  HostStreams& streams_;
  StepKeeper keeper_{parts_};
  Rewinds rewinds_{parts_, keeper_, *this};
  CommandReport report_;
  std::string label_;
  bool takes_input_ = true;
  bool ended_ = false, closed_ = false;
  std::string input_;  // read, and not sent yet
  std::map<control::Stream, std::string>
      pending_;  // output that nobody has taken yet; the window bounds it
  bool reader_gone_ = false;
};

}  // namespace sandglass::session

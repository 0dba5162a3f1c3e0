// Command: one command of the world from its start to the end of its last process.
//
//   running ──main process ended──► ended ──what its pipes held was sent──► completed ──keeper gone──► over
//
// It completes without waiting for what it left behind: a daemon may hold the pipes open for ever. The output of such a daemon is
// read and dropped after that, so that it does not die of SIGPIPE; its terminal hangs up. Cancelling goes on after completion until
// no process is left. One thread; never blocks.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "control/messages.h"
#include "shim/channel.h"
#include "shim/spawn.h"

namespace sandglass::shim {

using MonotonicTime = std::chrono::steady_clock::time_point;

class Command {
 public:
  Command(control::Exec exec, Spawned spawned, Channel& channel, MonotonicTime now);

  StepId id() const { return exec_.id; }
  pid_t keeper() const { return spawned_.keeper; }
  bool completed() const { return completed_; }
  bool over() const { return completed_ && keeper_gone_; }

  // --- What the host says ---
  void Cancel(MonotonicTime now);
  void Signal(int number);
  void Resize(control::TerminalSize size);
  void TakeInput(control::Input input);
  void OutputAcknowledged(size_t bytes);

  // --- What happens in the world ---
  void KeeperGone();

  // Adds what it waits for.
  void AddTo(std::vector<pollfd>& waits) const;
  // Does whatever can be done now: reads reports and output, writes input, completes.
  void Work();
  void CheckTime(MonotonicTime now);
  std::optional<MonotonicTime> Deadline() const;

 private:
  // One of the two streams of output.
  struct Source {
    control::Stream stream;
    Fd fd;
    // After the end: how many bytes are still the command's own. What comes later is from processes it left behind.
    size_t left = 0;
    bool drained = false;
  };

  void ReadReports();
  void OnEnded(int wait_status);
  void WriteInput();
  void InputTaken(size_t bytes);
  void CloseInput();
  void ReadOutput(Source& source);
  void Drop(Source& source);
  bool MayRead(const Source& source) const;
  size_t WindowLeft() const;
  void CompleteIfDrained();
  void SignalAll(int number);
  // All that are left; again and again, because processes may be born between the look and the signal.
  void KillAll(MonotonicTime now);

  control::Exec exec_;
  Spawned spawned_;
  Channel& channel_;
  std::vector<Source> sources_;
  size_t unacknowledged_ = 0;  // output under way

  std::string input_;  // not written yet
  bool input_ends_ = false;
  size_t input_taken_ = 0;  // not acknowledged yet

  std::optional<MonotonicTime> times_out_;
  std::optional<MonotonicTime> kill_at_;
  bool cancelled_ = false;
  bool timed_out_ = false;

  std::optional<Report> failure_;  // why it did not start
  std::optional<int> wait_status_;
  bool completed_ = false;
  bool keeper_gone_ = false;
};

}  // namespace sandglass::shim

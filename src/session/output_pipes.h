// OutputPipes: standard output and error of one command, straight from its processes: pipes whose writing ends it is given with its
// release. Nothing of it passes the shim, so it is as fast as a pipe, and whoever prints faster than we read waits, as natively.
// What a command had written when it ended is its output; what processes it left behind write later is read and dropped, so that they
// neither wait nor die of it (LeftOutput). One thread; nothing here blocks.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "control/messages.h"

namespace sandglass::session {

// Of commands that have ended.
class LeftOutput {
 public:
  void Add(Fd pipe) { pipes_.push_back(std::move(pipe)); }
  void AddTo(std::vector<pollfd>& fds) const;
  void Drop();

 private:
  std::vector<Fd> pipes_;
};

class OutputPipes {
 public:
  static constexpr size_t kMost = size_t{128} << 10;  // that Read() gives at once

  static Result<OutputPipes> Make();

  // The command's standard output and error; closed here by CloseGiven() when it has them.
  std::array<int, 2> given() const { return {pipes_[0].theirs.get(), pipes_[1].theirs.get()}; }
  void CloseGiven();

  // Readable when Read() has something; -1: there will be nothing.
  int fd(control::Stream stream) const {
    const Pipe& pipe = At(stream);
    return pipe.left == 0 ? -1 : pipe.ours.get();
  }
  // Some of it, into `buffer`; empty: nothing now.
  std::string_view Read(control::Stream stream, std::span<char> buffer);
  // Nobody wants the rest: who writes on is told as natively.
  void Close(control::Stream stream) { At(stream).ours.Reset(); }

  // The command has ended: what the pipes hold now is the rest.
  void NoteEnd();
  // That was read, too.
  bool drained() const;
  // To be called when it was drained.
  void LeaveTo(LeftOutput& left);

 private:
  struct Pipe {
    Fd ours, theirs;
    std::optional<size_t> left;  // after the end
  };
  Pipe& At(control::Stream stream) { return pipes_[stream == control::Stream::kStdout ? 0 : 1]; }
  const Pipe& At(control::Stream stream) const {
    return pipes_[stream == control::Stream::kStdout ? 0 : 1];
  }

  std::array<Pipe, 2> pipes_;
};

}  // namespace sandglass::session

// Child: one run of the scenario program, with a socket between it and the harness.
//
// The child says what it has reached on descriptor 3 (one message per marker) and waits for an answer, so that the harness can
// look at the tree while the child stands still. A child that hangs ends itself by SIGALRM. One thread per child: the thread that
// started it waits for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::crash {

inline constexpr int kMarkerFd = 3;

// Called for each marker while the child waits.
using MarkerSink = std::function<Status(std::string_view marker)>;

struct ChildEnd {
  bool killed_by_us = false;  // the tracer killed it, as planned
  int exit_code = -1;         // of a normal end
  int signal = 0;             // that ended it
  bool ok() const { return signal == 0 && exit_code == 0; }
  // "exit code 1", "signal 11 (Segmentation fault)", "hung".
  std::string Describe() const;
};
ChildEnd EndOf(int wait_status);

enum class Traced : uint8_t { kNo, kYes };  // kYes: stops before exec and lets its parent trace it

class Child {
 public:
  // `output` gets what the child prints, both streams.
  static Result<Child> Start(const std::vector<std::string>& argv, const std::string& output,
                             Traced traced);
  Child(Child&&) = default;

  pid_t pid() const { return pid_; }
  // Hands the markers that have arrived to `sink` and lets the child go on.
  Status TakeMarkers(const MarkerSink& sink);
  // For a child that is not traced: follows it to its end.
  Result<ChildEnd> Follow(const MarkerSink& sink);

 private:
  Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  enum class Block : uint8_t { kNo, kYes };
  // False: nothing there now, or (kYes) the child has closed its side.
  Result<bool> TakeOne(Block block, const MarkerSink& sink);

  pid_t pid_;
  Fd socket_;
};

}  // namespace sandglass::crash

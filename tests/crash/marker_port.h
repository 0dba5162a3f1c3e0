// MarkerPort: the scenario's side of the socket on which it tells the harness what it has reached. Says nothing when there is no
// harness. One thread.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "tests/crash/child.h"

namespace sandglass::crash {

class MarkerPort {
 public:
  MarkerPort() : connected_(fcntl(kMarkerFd, F_GETFD) != -1) {}

  // Returns when the harness has looked at the tree.
  void Say(std::string_view marker) const {
    if (!connected_) return;
    char answer = 0;
    if (write(kMarkerFd, marker.data(), marker.size()) < 0) return;
    static_cast<void>(!read(kMarkerFd, &answer, 1));
  }

  // From here on the tracer follows every call.
  static void BeginTrace() { raise(SIGSTOP); }

 private:
  const bool connected_;
};

}  // namespace sandglass::crash

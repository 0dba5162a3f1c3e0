// OwnFds: our descriptors as /proc has them, to open the object of one anew or to ask where it is.
//
// The folder is opened once: from "/" on the way there is longer than all the rest. It is that of the process which made this, so a
// child must make its own. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"

namespace sandglass::bridge {

class OwnFds {
 public:
  OwnFds();

  // Invalid: errno says why.
  Fd Open(int fd, int flags) const;
  // Its path in its mount namespace. nullopt: errno says why; ENAMETOOLONG if it is too long to be told.
  std::optional<std::string> PathOf(int fd) const;
  // To make copies of; counts as an open file of nothing.
  int folder() const { return folder_.get(); }

 private:
  Fd folder_;
};

}  // namespace sandglass::bridge

// The small tree that each case acts on, and what a case changed in it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>

namespace sandglass::parity {

// In the current folder, which must be empty; ends the program when the machine refuses.
//   file "content", hard (the same file), other, readonly (0444), shared (0666), fifo
//   dir/inner, empty/, locked/inside (0555), closed/inside, sticky/kept (1777), setgid/ (2777)
//   link -> file, abslink -> (absolute) file, dirlink -> dir, dangling -> missing, loop1 <-> loop2
// Everything is old, so that a new time stamp shows.
void MakeStage();
// Only between the two has `closed` no permissions, since nobody could look into it.
void CloseClosed();
void OpenClosed();

struct Entry {
  struct stat stat;
  std::string content;  // also the target of a symlink
  std::string attributes;
};
using Stage = std::map<std::string, Entry>;

// The current folder.
Stage Look();
// One line, "" if nothing is new. Times are told as `now`, or as they were set.
std::string Changes(const Stage& before, const Stage& after);

}  // namespace sandglass::parity

// Starting one command inside the world.
//
// Between the shim and the command stands its keeper, a small process that adopts whatever the command leaves behind
// (PR_SET_CHILD_SUBREAPER). So the processes of a command are exactly the descendants of its keeper, also daemons that have left
// their session; the keeper tells how the command ended and lives until the last of them is gone.
//
//   shim ── keeper ── command ── ...
//              └───── what the command left behind
//
// The shim has one thread, so a forked child may do anything, and is not dumpable, so neither are the keeper and the command
// before its exec: nobody in the world can take their descriptors.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "control/messages.h"

namespace sandglass::shim {

// What the keeper and the starting command tell the shim through a pipe, in one write each.
enum class Fate : uint32_t {
  kCannotFork,  // the rest: in which phase of its start the command failed; then comes kEnded all the same
  kNoTerminal,
  kNoFolder,
  kNoFilter,
  kNotReleased,
  kNoProgram,
  kEnded,
};
struct Report {
  Fate fate = Fate::kEnded;
  int32_t value = 0;  // kEnded: as from waitpid(); else an errno
};

struct Supervision {
  std::span<const sock_filter> filter;  // empty: none
  int listener_socket = -1;             // takes the listener of the filter
};

// Our ends; all are non-blocking and close-on-exec.
struct Spawned {
  pid_t keeper = -1;
  Fd reports;
  Fd input;   // the same terminal as `output` if it has one; invalid if it takes no input
  Fd output;  // the pipe of its standard output, or its terminal; invalid if it is given
  Fd errors;  // invalid on a terminal, too
};

// kGiven: the command gets the ends of its output with its release, and nothing of it passes here.
enum class Output : uint8_t { kPiped, kGiven };
inline Output OutputOf(const control::Exec& exec) {
  return exec.output_given ? Output::kGiven : Output::kPiped;
}

// Returns once the keeper exists; what goes wrong later comes as a report.
Result<Spawned> Spawn(const control::Exec& exec, const Supervision& supervision);

// A keeper in reserve, with the pipes of the command that it will get: whoever runs one command after the other need not wait until
// all of that is made. To the host it is a keeper like any other: it has no filter.
class SpareKeeper {
 public:
  // `supervision` must outlive this process.
  static Result<SpareKeeper> Make(const Supervision& supervision, Output output);

  pid_t pid() const { return spawned_.keeper; }
  // As Spawn(), once, and not with a terminal. nullopt: somebody has killed it, or the command is too long or has
  // another kind of output; it is of no use any more.
  std::optional<Spawned> Start(const control::Exec& exec);

 private:
  Spawned spawned_;
  Output output_ = Output::kPiped;
  Fd orders_;  // takes one message; closed without one, it ends
};

// 127: there is no such program; 126: anything else that kept the command from starting.
int ExitCodeFor(const Report& failure);
// For people: "no folder /x: No such file or directory".
std::string Explain(const Report& failure, const control::Exec& exec);

}  // namespace sandglass::shim

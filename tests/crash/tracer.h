// Tracer: runs a child under ptrace and, at one chosen system call that touches the files under test, kills it from outside or
// makes that call fail.
//
// Calls are numbered in the order in which they are entered, over all threads of the child, from the moment the child says that it
// is ready (it stops itself by SIGSTOP). "Before" means: the call was entered and will never be executed. "After" means: it was
// executed and the child never saw the result. Stores into mapped memory happen between the calls and need no stop of their
// own. Tracing belongs to the thread that started the child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/crash/call_table.h"
#include "tests/crash/child.h"

namespace sandglass::crash {

// Which calls are numbered.
enum class CallSelection : uint8_t {
  kChanging,   // those that may change something
  kTouching,   // also those that only look
  kSpace,      // those that a full disk can refuse
  kShortable,  // those that may write less than asked
};

enum class Deed : uint8_t { kNothing, kKillBefore, kKillAfter, kFailNoSpace, kFailIo, kShorten };

struct TracePlan {
  CallSelection selection = CallSelection::kChanging;
  std::string root;  // only what lies beneath this folder is under test
  size_t point = 0;  // the number of the call
  Deed deed = Deed::kNothing;
};

struct Trace {
  ChildEnd end;
  std::vector<const CallRow*> calls;  // up to the kill
  bool reached = false;               // the deed was done
};

class Tracer {
 public:
  Tracer(Child& child, TracePlan plan, const MarkerSink& sink)
      : child_(child), plan_(std::move(plan)), sink_(sink) {}

  // Follows the child to its end.
  Result<Trace> Run();

 private:
  struct Call {
    const CallRow* row = nullptr;  // null: not of interest
    uint64_t number = 0;
    uint64_t args[6] = {};
    bool chosen = false;  // this is the one at which something happens
  };
  enum class Resume : uint8_t { kFreely, kToNextCall };

  Status Attach();
  Result<bool> WaitOnce();  // false: the child is gone
  Status OnStop(pid_t tid, int status);
  Status OnCallStop(pid_t tid);
  Status OnEntry(pid_t tid, Call call);
  Status OnExit(pid_t tid, int64_t result);
  Status DoAtEntry(pid_t tid, Call& call);
  Status DoAtExit(pid_t tid, const Call& call);
  Status Kill();
  Status Continue(pid_t tid, int signal = 0) const;

  bool Wanted(pid_t tid, const Call& call) const;
  bool Changes(pid_t tid, const Call& call) const;
  bool Touches(pid_t tid, const Call& call) const;
  bool LeadsBeneathRoot(pid_t tid, int fd) const;
  bool PathIsOfInterest(pid_t tid, uint64_t address) const;

  Child& child_;
  const TracePlan plan_;
  const MarkerSink& sink_;
  Resume resume_ = Resume::kFreely;
  std::map<pid_t, Call> entered_;  // per thread that is inside a call
  std::set<uint64_t> mappings_;    // addresses of mapped files under test
  Trace trace_;
};

}  // namespace sandglass::crash

// Tracer: runs a child under ptrace and, at one chosen system call that touches the files under test, kills it from outside or
// makes that call fail.
//
// Calls are numbered in the order in which they are entered, over all threads of the child, from the moment the child says that it
// is ready (it stops itself by SIGSTOP). "Before" means: the call was entered and will never be executed. "After" means: it was
// executed and the child never saw the result. Stores into mapped files happen between the calls: a call that only looks is worth
// a kill exactly where such memory has changed since the last numbered moment, for otherwise the files are the same as then.
// Tracing belongs to the thread that started the child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/crash/call_table.h"
#include "tests/crash/child.h"

namespace sandglass::crash {

// Which calls are numbered.
enum class CallSelection : uint8_t {
  kDistinct,  // those that may change something, and those that look after mapped memory has changed
  kChanging,   // only those that may change something
  kTouching,   // all, also where nothing can have changed in between
  kSpace,      // those that a full disk can refuse
  kShortable,  // those that may write less than asked
};

enum class Deed : uint8_t { kNothing, kKillBefore, kKillAfter, kFailNoSpace, kFailIo, kShorten };

struct TracePlan {
  CallSelection selection = CallSelection::kDistinct;
  std::string root;  // only what lies beneath this folder is under test
  size_t point = 0;  // the number of the call
  Deed deed = Deed::kNothing;
};

enum class Effect : uint8_t { kNone, kMayChange };

struct SeenCall {
  const CallRow* row;
  Effect effect;
};

struct Trace {
  ChildEnd end;
  std::vector<SeenCall> calls;  // the numbered ones, up to the kill
  bool reached = false;         // the deed was done
};

class Tracer {
 public:
  Tracer(Child& child, TracePlan plan, const MarkerSink& sink)
      : child_(child), plan_(std::move(plan)), sink_(sink) {}

  // Follows the child to its end.
  Result<Trace> Run();

 private:
  struct Call {
    const CallRow* row = nullptr;  // null: not numbered
    Effect effect = Effect::kNone;
    uint64_t number = 0;
    uint64_t args[6] = {};
    bool chosen = false;  // this is the one at which something happens
  };
  enum class Resume : uint8_t { kFreely, kToNextCall };
  // A mapped file under test.
  struct Mapping {
    uint64_t length = 0;
    bool shared = false;  // stores into it reach the file
    std::string seen;     // its bytes at the last numbered moment
  };

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

  bool Wanted(pid_t tid, const Call& call);
  // Whether shared mappings differ from what was seen last; they are seen now.
  bool MemoryChanged(pid_t tid);
  void NoteMapping(const Call& call, int64_t result);
  bool Changes(pid_t tid, const Call& call) const;
  bool Touches(pid_t tid, const Call& call) const;
  bool LeadsBeneathRoot(pid_t tid, int fd) const;
  bool PathIsOfInterest(pid_t tid, uint64_t address) const;

  Child& child_;
  const TracePlan plan_;
  const MarkerSink& sink_;
  Resume resume_ = Resume::kFreely;
  std::map<pid_t, Call> entered_;         // per thread that is inside a call
  std::map<uint64_t, Mapping> mappings_;  // by address
  Trace trace_;
};

}  // namespace sandglass::crash

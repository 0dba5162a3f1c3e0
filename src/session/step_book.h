// StepBook: the steps in the undo logs of all projects of a session, one after the other, each under one id in all of them.
//
// A step that changed nothing may have its entry in the history made later (empty_steps.h). While entries are put off, the next step is
// not announced in the logs either but held: else it could begin there before them. The first call of a command that may change
// something, whoever makes it, makes up for both (BeforeCall), and so does whatever rewinds history, and who asks for it before reading (EnterAll); other
// processes that read a store see the entries within a second. Or it turns out that there was none, and one more entry is put off. That works only while no process of an earlier command is left: its calls would find no step
// announced, and open an ambient one.
//
// BeforeCall is for any thread; the rest is for one.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "session/bridge_messages.h"
#include "session/empty_steps.h"
#include "session/notices.h"
#include "session/watch/log_activity.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// Processes of commands that may make calls.
enum class Left : uint8_t { kNone, kSome };
// What becomes of a step that ends: a safeguard may have denied it.
enum class Ending : uint8_t { kKept, kTakenBack };

class StepBook {
 public:
  // What could not be entered in the history is told there. `clock` is that of all logs; all must outlive this.
  StepBook(Notices& notices, PastClock& clock, LogActivity& activity)
      : notices_(notices), clock_(clock), activity_(activity) {}
  ~StepBook() { EnterAll(); }
  StepBook(const StepBook&) = delete;
  StepBook& operator=(const StepBook&) = delete;
  // Before anything else.
  void Add(undo::UndoLog& log, const std::string& store) EXCLUDES(mutex_);

  // As of each log: AnnounceStep and CloseStep. The second in all projects, whatever fails in one of them; the first failure is told.
  Status Announce(const session::Announce& ask) EXCLUDES(mutex_);
  // True: it may have changed something. What was denied in one project is taken back in all.
  Result<bool> Close(EmptyEntry empty_entry, Left left, Ending ending) EXCLUDES(mutex_);
  // Before a call may change anything. Blocks on disk if an entry was put off, else it is one look. An error: the step cannot be
  // announced, and the call must fail.
  Status BeforeCall() EXCLUDES(mutex_);
  // Makes all entries that were put off.
  void EnterAll() EXCLUDES(mutex_);
  // By when, on the clock for waiting, that should have happened; nullopt: nothing was put off.
  std::optional<Instant> EnterBy() const EXCLUDES(mutex_);

  // The last one.
  StepId announced() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return announced_.step;
  }
  // The step has changed something.
  bool HasBegun() const EXCLUDES(mutex_);
  // An id that no project has used.
  StepId NextId() const EXCLUDES(mutex_);

 private:
  struct Project {
    undo::UndoLog* log;
    EmptySteps empty;
    bool has_step = false;  // that begins with its first change, or has begun
  };
  Status AnnounceInLogs() REQUIRES(mutex_);
  Status CloseInLogs(Ending ending) REQUIRES(mutex_);
  Status EnterLocked() REQUIRES(mutex_);
  void PutOff() REQUIRES(mutex_);
  bool Begun() const REQUIRES(mutex_);
  bool MayHaveChanged() const REQUIRES(mutex_);
  bool IsEmptyForSure() const REQUIRES(mutex_);

  Notices& notices_;
  PastClock& clock_;
  LogActivity& activity_;
  SteadyClock steady_clock_;
  mutable Mutex mutex_;
  std::vector<Project> projects_ GUARDED_BY(mutex_);
  session::Announce announced_ GUARDED_BY(mutex_);  // the last one
  StepId last_put_off_ GUARDED_BY(mutex_){0};
  size_t put_off_ GUARDED_BY(mutex_) = 0;       // since entries were made last
  Instant put_off_since_ GUARDED_BY(mutex_){};  // the first of these
  bool held_ GUARDED_BY(mutex_) = false;        // the last announcement has not reached the logs
  // Something is put off or held, or on its way into the logs; changes under the lock.
  std::atomic<bool> unsettled_ = false;
};

}  // namespace sandglass::session

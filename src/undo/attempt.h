// How an operation begins: found, held, kept, intended. What all of them share.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "undo/interceptor.h"
#include "undo/log_core.h"
#include "undo/ticket.h"

namespace sandglass::undo {

// Why an attempt was dropped and is to be made again.
struct Again {
  std::optional<SafeguardQuestion> question;
  std::optional<ObjectId> collided;
};

// One attempt at an operation: everything that Begin does between entering the step and handing the ticket out. When a safeguard must be
// asked or a key is taken by someone else, the attempt is dropped whole and made again.
class Attempt {
 public:
  Attempt(LogCore& log, Entrant entrant, Again& again)
      : log_(log),
        entrant_(entrant),
        place_(log.place()),
        again_(again),
        state_(std::make_unique<TicketState>()) {
    state_->log = &log;
  }
  // Without a ticket nobody else gives up what was kept.
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Status Enter(StepGate::Way way) {
    TRY_ASSIGN(auto step, log_.EnterStep(way, entrant_));
    state_->pass = std::move(step.pass);
    state_->writer = step.writer;
    return Ok();
  }

  // The directory of a name: who it is and where it is now.
  struct Dir {
    int fd;
    ObjectId id;
    std::string path;
  };
  Result<Dir> FindDir(const DirRef& ref);
  // Its metadata is kept before the first name in it changes. The caller holds its key. kNotFound: it is gone, or elsewhere; a record would
  // be about another folder than the one that has its path.
  Status TouchDir(const Dir& dir);
  static NameAt At(const Dir& dir, std::string_view name) { return {dir.id, dir.path, name}; }

  // Where an object is in the project now; nullopt: nowhere. kUnsupported: nobody can tell.
  Result<std::optional<std::string>> Locate(const ObjectRef& ref, const OpenObject& object) const;
  // The path under which a change of the object itself is recorded; nullopt: it is not. kFrozen: it must not happen.
  Result<std::optional<std::string>> RecordedPath(const ObjectRef& ref, const OpenObject& object);
  // Is this name none of undo's business? What this step has on record, or an older one left, stays so wherever it goes, and what a folder
  // that this step renamed carries along is judged by where it was: otherwise what was to be kept could be lost in an ignored place. An
  // ignored name may also be a further one of something that a step left, and losing it would look like an edit of that.
  bool LeavesOut(const std::string& path, const OpenObject& object) const;
  // The same of something new.
  bool LeavesOut(const std::string& path, uint32_t mode) const;
  // Where the path was before this step renamed folders above it.
  std::string Uncarried(const std::string& path) const;
  // Can what is there be undone at all?
  Status CheckGround(const OpenObject& object, std::string_view path) const;

  void HoldFirst(std::initializer_list<ObjectId> ids) { state_->hold = log_.locks().Take(ids); }
  // What this step made goes with it however it changes: nothing of it is kept, and no look at it is needed. Only where an identity is
  // nobody else's for good.
  // The object if it is such a one; nullopt: it is not.
  Result<std::optional<ObjectId>> FindBorn(const ObjectRef& ref) const;
  // Holds it if it is such a one.
  Result<bool> HoldIfBorn(const ObjectRef& ref);
  // The object that has a name. Of one that was made here nothing is opened.
  Result<OpenObject> FindNamed(const NameRef& at) const;
  // One more key, and the object, if it is open, as it is now that nobody else is at it. If somebody else has the key, this attempt is
  // over.
  Status Hold(OpenObject& object);
  Status HoldAlso(ObjectId id) { return state_->hold.TryAdd(id) ? Ok() : Status(Collide(id)); }
  Error Collide(ObjectId id);
  // If there is a question, this attempt is over.
  Status Ask(std::optional<SafeguardQuestion> question);

  // What the object needs to come back after it has lost the name. The state has it from here on.
  Result<Keep> KeepObject(const OpenObject& object, const NameRef& at, const std::string& path);
  // An anchor that could not be linked: the name itself moves there.
  Status MoveToAnchor(const Keep& keep, const NameRef& at, std::string_view what);
  // Keeps the content that is about to change.
  Status TouchContent(const OpenObject& object, const std::string& path, ContentChange change);
  // Instead of that, where it is possible and cheaper: a fresh inode for the name. False: not done.
  Result<bool> ReplaceInode(const OpenObject& object, const std::string& path);

  StepWriter& writer() { return *state_->writer; }
  TicketState& state() { return *state_; }
  Ticket Finish() { return Ticket(std::move(state_)); }
  Ticket FinishUnrecorded() {
    state_->writer = nullptr;
    return Finish();
  }

 private:
  Result<OpenObject> OpenDir(const Dir& dir) const;
  // The step would copy more than it may: ask, refuse, or go on without protection, as configured.
  Status OverLimit(std::string_view path, const Error& error);

  LogCore& log_;
  const Entrant entrant_;
  const Place& place_;
  Again& again_;
  std::unique_ptr<TicketState> state_;
};

// After an attempt that was dropped: waits for the key, or asks. An error ends the operation.
Status BeforeNextAttempt(LogCore& log, const Again& again);

// Runs `once` until it neither asks nor collides. `once` returns a ticket, an error, or sets `question` / `collided`.
template <class Once>
Result<Ticket> Retry(LogCore& log, Once once) {
  while (true) {
    Again again;
    Result<Ticket> ticket = once(again);
    if (!again.question && !again.collided) return ticket;
    TRY(BeforeNextAttempt(log, again));
  }
}

}  // namespace sandglass::undo

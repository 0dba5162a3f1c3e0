// AskingSafeguards: the bridge's end of the questions: whoever is about to destroy too much waits here until the session has answered.
//
// A denial comes only after the session has ended all processes of the command, so that nobody is left who could write again once the
// step is taken back. What nobody can answer any more is denied here: of a command whose processes are all gone, of a step that closes,
// and at the end. A thread of its own reads the answers. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/thread_annotations.h"
#include "session/safeguard_messages.h"
#include "undo/safeguard.h"

namespace sandglass::session {

class AskingSafeguards {
 public:
  using Tell = std::function<void(const undo::SafeguardQuestion&)>;
  // The command whose calls the calling thread serves; 0: of none that there still is.
  using WhoAsks = std::function<StepId()>;
  // All are called on the thread that asks.
  struct Hooks {
    WhoAsks who;
    Tell denied;  // of each question that was denied
    // Around each question, from before it is asked until it is answered: nothing else is to change meanwhile.
    std::function<void()> begin_hold, end_hold;
  };
  // `socket` outlives it. `timeout` is for a session that does not answer at all.
  AskingSafeguards(int socket, size_t projects, std::chrono::milliseconds timeout, Hooks hooks);
  ~AskingSafeguards();
  AskingSafeguards(const AskingSafeguards&) = delete;
  AskingSafeguards& operator=(const AskingSafeguards&) = delete;

  undo::SafeguardHandler& handler(size_t project) { return *handlers_[project]; }

  // A step is about to be announced: what was said of another one that had its id is forgotten.
  void BeginStep(StepId step) EXCLUDES(mutex_);
  // From now on questions of the step are denied at once. False: one is open, and the step must not close yet.
  bool BeginClose(StepId step) EXCLUDES(mutex_);
  // Since the step began.
  bool TakeDenied(StepId step) EXCLUDES(mutex_);
  // Those of the command, which has no process left and is not found by `who` any more.
  void DenyCommand(StepId command) EXCLUDES(mutex_);
  // All that are open, and all that come.
  void DenyAll() EXCLUDES(mutex_);

 private:
  class Handler final : public undo::SafeguardHandler {
   public:
    Handler(AskingSafeguards& all, uint32_t project) : all_(all), project_(project) {}
    undo::Decision Decide(const undo::SafeguardQuestion& question) override {
      return all_.Decide({project_, question.id}, question);
    }

   private:
    AskingSafeguards& all_;
    const uint32_t project_;
  };
  struct Open {
    StepId step, command;
    std::optional<undo::Decision> answer;
  };
  undo::Decision Decide(const SafeguardKey& key, const undo::SafeguardQuestion& question)
      EXCLUDES(mutex_);
  // kDeny: nobody is to be asked; nullopt: it is open now.
  std::optional<undo::Decision> Begin(const SafeguardKey& key, const Open& open) EXCLUDES(mutex_);
  undo::Decision Await(const SafeguardKey& key) EXCLUDES(mutex_);
  void Send(const SafeguardAsked& asked) EXCLUDES(sending_);
  void ReadAnswers();

  const int socket_;
  const std::chrono::milliseconds timeout_;
  const std::thread::id server_ = std::this_thread::get_id();  // who answers the session
  const Hooks hooks_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  Mutex mutex_;
  CondVar answered_;
  std::map<SafeguardKey, Open> open_ GUARDED_BY(mutex_);
  std::set<StepId> denied_
      GUARDED_BY(mutex_);  // and not taken; ambient steps are nobody's to close
  std::optional<StepId> closing_ GUARDED_BY(mutex_);
  StepId leaving_ GUARDED_BY(mutex_){0};  // the command that is being forgotten, or was last
  bool deny_all_ GUARDED_BY(mutex_) = false;
  Mutex sending_;  // frames of several threads must not mix
  std::thread reader_;
};

}  // namespace sandglass::session

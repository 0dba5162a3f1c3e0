// AskingSafeguards: the bridge's end of the questions: whoever is about to destroy too much waits here until the session has answered.
//
// A denial comes only after the session has ended all processes of the command, so that nobody is left who could write again once the
// step is taken back. A thread of its own reads the answers. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_annotations.h"
#include "undo/safeguard.h"

namespace sandglass::session {

class AskingSafeguards {
 public:
  using Tell = std::function<void(const undo::SafeguardQuestion&)>;
  // `socket` outlives it; `denied` is told of each question that was denied, on the thread that asked. `timeout` is for a session that does
  // not answer at all.
  AskingSafeguards(int socket, size_t projects, std::chrono::milliseconds timeout, Tell denied);
  ~AskingSafeguards();
  AskingSafeguards(const AskingSafeguards&) = delete;
  AskingSafeguards& operator=(const AskingSafeguards&) = delete;

  undo::SafeguardHandler& handler(size_t project) { return *handlers_[project]; }
  // Since it was asked last.
  bool TakeDenied() { return denied_.exchange(false); }

 private:
  class Handler final : public undo::SafeguardHandler {
   public:
    Handler(AskingSafeguards& all, uint32_t project, std::chrono::milliseconds timeout);
    undo::Decision Decide(const undo::SafeguardQuestion& question) override;
    void Answer(uint64_t question, undo::Decision decision) { waiting_.Answer(question, decision); }

   private:
    AskingSafeguards& all_;
    undo::WaitingSafeguard waiting_;
  };
  void Send(uint32_t project, const undo::SafeguardQuestion& question) EXCLUDES(sending_);
  void ReadAnswers();

  const int socket_;
  const std::thread::id server_ = std::this_thread::get_id();  // who answers the session
  const Tell tell_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::atomic<bool> denied_ = false;
  Mutex sending_;  // frames of several threads must not mix
  std::thread reader_;
};

}  // namespace sandglass::session

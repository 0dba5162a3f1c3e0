#include "session/asking_safeguards.h"

#include <sys/socket.h>

#include <utility>

#include "base/frames.h"
#include "session/safeguard_messages.h"

namespace sandglass::session {

AskingSafeguards::AskingSafeguards(int socket, size_t projects, std::chrono::milliseconds timeout,
                                   Tell denied)
    : socket_(socket), tell_(std::move(denied)) {
  for (uint32_t i = 0; i < projects; ++i)
    handlers_.push_back(std::make_unique<Handler>(*this, i, timeout));
  reader_ = std::thread([this] { ReadAnswers(); });
}

AskingSafeguards::~AskingSafeguards() {
  ::shutdown(socket_, SHUT_RDWR);
  reader_.join();
}

AskingSafeguards::Handler::Handler(AskingSafeguards& all, uint32_t project,
                                   std::chrono::milliseconds timeout)
    : all_(all), waiting_(timeout, [this, project](const undo::SafeguardQuestion& question) {
        all_.Send(project, question);
      }) {}

undo::Decision AskingSafeguards::Handler::Decide(const undo::SafeguardQuestion& question) {
  // A restore, or a file that a program writes: whoever asked for it by name waits for it, and has confirmed it by that.
  if (std::this_thread::get_id() == all_.server_) return undo::Decision::kAllow;
  const undo::Decision decision = waiting_.Decide(question);
  if (decision == undo::Decision::kDeny) {
    all_.denied_ = true;
    all_.tell_(question);
  }
  return decision;
}

// Where that fails nobody answers, and no answer is a denial.
void AskingSafeguards::Send(uint32_t project, const undo::SafeguardQuestion& question) {
  MutexLock lock(sending_);
  (void)SendFrame(socket_, Encode(SafeguardAsked{{project, question.id}, question}));
}

void AskingSafeguards::ReadAnswers() {
  while (true) {
    const auto frame = ReceiveFrame(socket_, kMaxQuestionBytes);
    if (!frame.ok()) return;
    const auto answered = DecodeSafeguardAnswered(frame->bytes);
    if (!answered.ok() || answered->key.project >= handlers_.size()) continue;
    handlers_[answered->key.project]->Answer(answered->key.question, answered->decision);
  }
}

}  // namespace sandglass::session

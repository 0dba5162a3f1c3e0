// SafeguardPrompt: asks the person at the terminal what a safeguard wants to know, while a command runs there.
//
// The command has the terminal, and it may be raw: so while something is asked, what is typed is the answer and does not reach the
// command (PromptedStreams). Where there is no terminal, people are told what is held, and by which words it is answered elsewhere.
// One thread, that of the session.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "session/command_streams.h"
#include "session/loop_guest.h"
#include "session/session.h"

namespace sandglass::cli {

class SafeguardPrompt final : public session::LoopGuest {
 public:
  // `approve`: the words that answer a question elsewhere, but for its id: "sandglass approve -p DIR".
  SafeguardPrompt(const Console& console, std::string approve)
      : console_(console), approve_(std::move(approve)), asks_(console.can_ask()) {}
  // From now on it asks for this session; both outlive its commands.
  void Attend(session::Session& session);

  // Somebody is asked right now.
  bool is_asking() const { return asks_ && !open_.empty(); }

  void AddTo(std::vector<pollfd>& fds) const override;
  std::optional<Instant> Deadline() const override { return std::nullopt; }
  void Work() override;
  bool wants_out() const override { return false; }
  void OnSafeguard(const session::HeldOperation& held) override;
  void OnSafeguardSettled(const std::string& id, undo::Decision decision) override;

 private:
  void Tell(const session::HeldOperation& held) const;
  void Show();
  void TakeKey(char key);
  void TakeLine(std::string_view line);
  void Echo(std::string_view text) const;
  void Answer(undo::Decision decision);
  void Say(std::string_view text) const;

  const Console& console_;
  const std::string approve_;
  const bool asks_;
  session::Session* session_ = nullptr;
  std::vector<session::HeldOperation> open_;  // the first one is asked
  std::optional<std::string> answering_;      // the id of what we answer ourselves
  std::string typed_;                         // of a line that has not ended
};

// The host's streams, but nothing is read from them while the prompt asks.
class PromptedStreams final : public session::CommandStreams {
 public:
  PromptedStreams(session::CommandStreams& streams, const SafeguardPrompt& prompt)
      : streams_(streams), prompt_(prompt) {}
  int in() const override { return prompt_.is_asking() ? -1 : streams_.in(); }
  int OutputFd(control::Stream stream) const override { return streams_.OutputFd(stream); }
  int signal_fd() const override { return streams_.signal_fd(); }
  std::optional<int> TakeSignal() override { return streams_.TakeSignal(); }
  std::optional<control::TerminalSize> terminal() const override { return streams_.terminal(); }
  Result<size_t> Write(control::Stream stream, std::string_view bytes) override {
    return streams_.Write(stream, bytes);
  }
  Result<std::unique_ptr<RawMode>> BecomeRaw() const override { return streams_.BecomeRaw(); }

 private:
  session::CommandStreams& streams_;
  const SafeguardPrompt& prompt_;
};

}  // namespace sandglass::cli

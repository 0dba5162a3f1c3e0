#include "cli/safeguard_prompt.h"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/io.h"
#include "cli/held_text.h"

namespace sandglass::cli {
namespace {

constexpr size_t kShownAtFirst = 5;
constexpr char kInterrupt = '\x03', kEndOfInput = '\x04', kBackspace = '\b', kDelete = '\x7f';
constexpr size_t kLongestLine = 256;

}  // namespace

void SafeguardPrompt::Attend(session::Session& session) {
  session_ = &session;
  session.SetGuest(this);
}

void SafeguardPrompt::AddTo(std::vector<pollfd>& fds) const {
  fds.push_back({is_asking() ? console_.streams().in : -1, POLLIN, 0});
}

void SafeguardPrompt::OnSafeguard(const session::HeldOperation& held) {
  open_.push_back(held);
  if (!asks_) return Tell(held);
  if (open_.size() == 1) Show();
}

void SafeguardPrompt::OnSafeguardSettled(const std::string& id, undo::Decision decision) {
  const auto found = std::ranges::find(open_, id, &session::HeldOperation::id);
  if (found == open_.end()) return;
  const bool was_asked = is_asking() && found == open_.begin();
  open_.erase(found);
  if (was_asked && answering_ != id)
    Say(decision == undo::Decision::kAllow ? "\nallowed by somebody else\n"
                                           : "\ndenied: no answer from here in time\n");
  if (was_asked && !open_.empty()) Show();
}

void SafeguardPrompt::Tell(const session::HeldOperation& held) const {
  const auto left = std::chrono::ceil<std::chrono::seconds>(held.left);
  std::string text = fmt::format("held: {}:\n{}", HeldSentence(held.question),
                                 SampleText(held.question, kShownAtFirst));
  text += fmt::format("`{0} {1}` lets it happen, `{0} {1} --deny` does not; denied in {2} s",
                      approve_, held.id, left.count());
  console_.Note(text, held.question.step);
}

void SafeguardPrompt::Show() {
  const session::HeldOperation& held = open_.front();
  const auto left = std::chrono::ceil<std::chrono::seconds>(held.left);
  const bool has_more = held.question.sample_paths.size() > kShownAtFirst;
  ::tcflush(console_.streams().in, TCIFLUSH);  // was typed before the question, and is no answer
  typed_.clear();
  Say(fmt::format("\nsandglass: {}:\n{}[a]llow or [d]eny{}, and Enter? (denied in {} s) ",
                  HeldSentence(held.question), SampleText(held.question, kShownAtFirst),
                  has_more ? ", [s]how more" : "", left.count()));
}

void SafeguardPrompt::Work() {
  while (is_asking()) {
    pollfd typed{console_.streams().in, POLLIN, 0};
    if (::poll(&typed, 1, 0) <= 0) return;
    char key = kEndOfInput;
    const ssize_t got = ::read(console_.streams().in, &key, 1);
    if (got < 0) return;
    TakeKey(got == 0 ? kEndOfInput : key);
  }
}

// A whole line, because somebody may be typing something else when the question comes: no single key allows anything.
void SafeguardPrompt::TakeKey(char key) {
  if (key == kInterrupt || key == kEndOfInput) return Answer(undo::Decision::kDeny);
  if (key == '\r' || key == '\n') return TakeLine(std::exchange(typed_, {}));
  if (key == kDelete || key == kBackspace) {
    if (!typed_.empty()) Echo("\b \b");
    return typed_.resize(typed_.size() - std::min<size_t>(typed_.size(), 1));
  }
  if (static_cast<uint8_t>(key) < ' ' || typed_.size() == kLongestLine) return;
  typed_ += key;
  Echo({&key, 1});
}

void SafeguardPrompt::TakeLine(std::string_view line) {
  Echo("\n");
  if (line == "a" || line == "allow") return Answer(undo::Decision::kAllow);
  if (line == "d" || line == "deny") return Answer(undo::Decision::kDeny);
  const undo::SafeguardQuestion& question = open_.front().question;
  if (line == "s") Say(SampleText(question, question.sample_paths.size()));
  Say("[a]llow or [d]eny, and Enter? ");
}

void SafeguardPrompt::Answer(undo::Decision decision) {
  answering_ = open_.front().id;
  Say(decision == undo::Decision::kAllow ? "allowed\n" : "denied\n");
  const Status answered = session_->AnswerSafeguard(*answering_, decision);
  if (!answered.ok()) Say(fmt::format("sandglass: {}\n", answered.error().message()));
  answering_.reset();
}

// A terminal that is raw shows nothing by itself.
void SafeguardPrompt::Echo(std::string_view text) const {
  termios settings{};
  const bool shows =
      ::tcgetattr(console_.streams().in, &settings) == 0 && (settings.c_lflag & ECHO) != 0;
  if (!shows) Say(text);
}

// The terminal may be raw.
void SafeguardPrompt::Say(std::string_view text) const {
  std::string lines;
  for (const char c : text) lines += c == '\n' ? std::string("\r\n") : std::string(1, c);
  (void)WriteFully(console_.streams().err, AsBytes(lines));
}

}  // namespace sandglass::cli

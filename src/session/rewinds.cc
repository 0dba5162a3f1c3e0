#include "session/rewinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "control/messages.h"
#include "session/standstill.h"

namespace sandglass::session {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::milliseconds kAfterKill{2'000};

// What is in the way, who it is, and what to do about it.
Error Busy(const Error& error, std::string_view command, const std::vector<pid_t>& running) {
  const std::string what = command.empty()
                               ? error.message()
                               : fmt::format("a command is at work on this project: {}", command);
  if (running.empty()) return Error(Code::kBusy, what + "\nwait until it has ended");
  return Error(Code::kBusy,
               fmt::format("{}\nstill running: process {}; wait until they have ended, "
                           "or add --stop to end them first",
                           what, fmt::join(running, ", ")));
}

}  // namespace

void Rewinds::Ask(RewindRequest request, Reply reply, TellProgress tell) {
  // Nothing is ended for a question, nor for what can be done, or cannot be done, all the same.
  RewindAnswer answer = Do(request, tell);
  const bool in_the_way = answer.error && answer.error->code() == Code::kBusy;
  if (!in_the_way || request.runners == Runners::kStay || request.deed == Deed::kPlanned)
    return reply(answer);
  const Instant now = parts_.clock.Now();
  const Instant kill_at = now + control::kDefaultGrace;
  waiting_.push_back(
      {std::move(request), std::move(reply), std::move(tell), kill_at, kill_at + kAfterKill});
  next_look_ = now;
  runner_.End();
}

std::optional<Instant> Rewinds::Deadline() const {
  if (waiting_.empty()) return std::nullopt;
  return next_look_;
}

bool Rewinds::IsClear() const { return !keeper_.has_begun() && runner_.Processes().empty(); }

void Rewinds::Work() {
  const Instant now = parts_.clock.Now();
  if (waiting_.empty() || now < next_look_) return;
  next_look_ = now + kLookAgain;
  const bool clear = IsClear();
  if (!clear && waiting_.front().kill_at <= now) runner_.EndAtOnce();
  std::vector<Waiting> due;
  std::erase_if(waiting_, [&](Waiting& one) {
    if (!clear && now < one.give_up_at) return false;
    due.push_back(std::move(one));
    return true;
  });
  for (const Waiting& one : due) one.reply(Do(one.request, one.tell));
}

void Rewinds::RefuseAll(const Error& why) {
  for (const Waiting& one : std::exchange(waiting_, {})) one.reply(Refused(why));
}

RewindAnswer Rewinds::Carry(const RewindRequest& request, const TellProgress& tell) {
  const Standstill still(parts_);
  return parts_.bridge->Rewind(request, tell);
}

RewindAnswer Rewinds::Do(const RewindRequest& request, const TellProgress& tell) {
  RewindAnswer answer = Carry(request, tell);
  if (!answer.error) return answer;
  if (answer.error->code() != Code::kBusy) return answer;
  answer.running = runner_.Processes();
  const std::string_view command = keeper_.has_begun() ? keeper_.label() : std::string_view();
  answer.error = Busy(*answer.error, command, answer.running);
  return answer;
}

}  // namespace sandglass::session

#include "shim/shim.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

namespace sandglass::shim {
namespace {

constexpr size_t kMaxCommands =
    64;  // docs/formats/control.md; those that only left processes behind do not count
constexpr size_t kReadBytes = size_t{64} << 10;

MonotonicTime Now() { return std::chrono::steady_clock::now(); }

}  // namespace

Shim::Shim(ShimDescriptors descriptors, std::vector<sock_filter> filter)
    : channel_(std::move(descriptors.control)),
      listener_socket_(std::move(descriptors.listener_socket)),
      children_(std::move(descriptors.children)),
      filter_(std::move(filter)) {}

void Shim::Run() {
  channel_.Send(control::Ready{});
  do {
    ReapChildren();
    WorkOnCommands();
    channel_.Flush();
    PrepareNext();
    Wait();
  } while (ReadChannel() && !channel_.broken());
}

void Shim::Wait() {
  std::vector<pollfd> waits;
  const short channel_events = channel_.has_more() ? POLLIN | POLLOUT : POLLIN;
  waits.push_back({.fd = channel_.fd(), .events = channel_events});
  waits.push_back({.fd = children_.get(), .events = POLLIN});
  for (const auto& [id, command] : commands_) command.AddTo(waits);
  ::poll(waits.data(), waits.size(), MillisecondsToNextDeadline());
}

int Shim::MillisecondsToNextDeadline() const {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);
  std::optional<MonotonicTime> next;
  for (const auto& [id, command] : commands_) {
    const auto deadline = command.Deadline();
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLongest).count());
}

bool Shim::ReadChannel() {
  std::array<char, kReadBytes> buffer;
  while (true) {
    const ssize_t size = ::read(channel_.fd(), buffer.data(), buffer.size());
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    std::string_view bytes(buffer.data(), static_cast<size_t>(size));
    while (auto line = lines_.Next(bytes)) Receive(*line);
  }
}

void Shim::Receive(const Result<std::string_view>& line) {
  const auto decode = [&]() -> Result<control::HostMessage> {
    TRY_ASSIGN(const std::string_view text, line);
    return control::DecodeHostMessage(text);
  };
  auto message = decode();
  if (!message.ok()) {
    channel_.Send(control::Problem{std::nullopt,
                                   message.error().message().substr(0, control::kMaxReasonBytes)});
    return;
  }
  std::visit([this](auto&& held) { On(std::forward<decltype(held)>(held)); },
             std::move(message).value());
}

// --- Messages ---

void Shim::On(control::Exec exec) {
  const StepId id = exec.id;
  const auto running =
      std::ranges::count_if(commands_, [](const auto& entry) { return !entry.second.completed(); });
  if (commands_.contains(id) || static_cast<size_t>(running) >= kMaxCommands) {
    channel_.Send(control::Problem{id, "the id is in use, or too many commands run"});
    return;
  }
  channel_.Send(control::StepStarted{id});
  more_come_ = exec.more_come;
  next_output_ = OutputOf(exec);
  auto spawned = Start(exec);
  if (!spawned.ok()) return CannotStart(id, spawned.error());
  commands_.try_emplace(id, std::move(exec), std::move(spawned).value(), channel_, Now());
}

Supervision Shim::supervision() const {
  return {.filter = filter_, .listener_socket = listener_socket_.get()};
}

Result<Spawned> Shim::Start(const control::Exec& exec) {
  if (spare_ && !exec.pty) {
    if (auto started = std::exchange(spare_, std::nullopt)->Start(exec)) return std::move(*started);
  }
  return Spawn(exec, supervision());
}

// While the command is at work, and nobody waits for us.
void Shim::PrepareNext() {
  if (!more_come_ || spare_) return;
  more_come_ = false;  // also where it fails: then the next one starts as the first one did
  if (auto spare = SpareKeeper::Make(supervision(), next_output_); spare.ok())
    spare_ = std::move(*spare);
}

void Shim::CannotStart(StepId id, const Error& error) {
  constexpr int kCannotStart = 126;
  channel_.Send(
      control::StepCompleted{.id = id, .exit_code = kCannotStart, .error = error.message()});
}

void Shim::On(const control::Cancel& cancel) {
  if (Command* command = Find(cancel.id)) command->Cancel(Now());
}

// What a process has read before is its own business; a shell may want to know one day.
void Shim::On(const control::RollbackNotify&) {}

void Shim::On(control::Input input) {
  if (Command* command = Find(input.id)) command->TakeInput(std::move(input));
}

void Shim::On(const control::Resize& resize) {
  if (Command* command = Find(resize.id)) command->Resize(resize.size);
}

void Shim::On(const control::Signal& signal) {
  if (Command* command = Find(signal.id)) command->Signal(signal.number);
}

void Shim::On(const control::Ack& ack) {
  if (Command* command = Find(ack.id)) command->OutputAcknowledged(ack.bytes);
}

Command* Shim::Find(StepId id) {
  const auto found = commands_.find(id);
  return found == commands_.end() ? nullptr : &found->second;
}

// --- The world ---

void Shim::ReapChildren() {
  signalfd_siginfo signal;
  while (::read(children_.get(), &signal, sizeof(signal)) > 0) continue;
  pid_t ended = 0;
  int status = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG | __WALL | WUNTRACED)) > 0) {
    if (WIFSTOPPED(status)) {
      GoOnIfKeeper(ended);
      continue;
    }
    for (auto& [id, command] : commands_) {
      if (command.keeper() == ended) command.KeeperGone();
    }
    if (spare_ && spare_->pid() == ended) spare_.reset();
  }
}

// Whoever is in the world may stop a keeper; its command would never begin, or never end for us. Others stay as they are.
void Shim::GoOnIfKeeper(pid_t stopped) {
  const bool keeps = (spare_ && spare_->pid() == stopped) ||
                     std::ranges::any_of(commands_, [&](const auto& entry) {
                       return entry.second.keeper() == stopped;
                     });
  if (keeps) ::kill(stopped, SIGCONT);
}

void Shim::WorkOnCommands() {
  const MonotonicTime now = Now();
  for (auto& [id, command] : commands_) {
    command.CheckTime(now);
    command.Work();
  }
  std::erase_if(commands_, [](const auto& entry) { return entry.second.over(); });
}

}  // namespace sandglass::shim

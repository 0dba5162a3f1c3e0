#include "tests/world/world_client.h"

#include <fmt/format.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/io.h"
#include "tests/support/must.h"

namespace sandglass::test {
namespace {

constexpr std::chrono::seconds kPatience{20};
using SteadyClock = std::chrono::steady_clock;

}  // namespace

world::LocalWorldSpec SpecFor(const TempWorkspace& workspace) {
  const std::string home = workspace.root() + "/home";
  ::mkdir(home.c_str(), 0755);
  ::mkdir((home + "/.ssh").c_str(), 0755);
  std::ofstream(home + "/.ssh/id_test") << "a secret";
  return {.projects = {{.path = workspace.project()}},
          .home = home,
          .command_filter = {sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}},
          .shim_path = SANDGLASS_SHIM};
}

control::Exec Shell(std::string_view command) {
  control::Exec exec;
  exec.command = std::string(command);
  return exec;
}

std::string Field(std::string_view status, std::string_view name) {
  const std::string start = fmt::format("{}:\t", name);
  const size_t at = status.find(start);
  if (at == status.npos) return "";
  const std::string_view value = status.substr(at + start.size());
  return std::string(value.substr(0, value.find('\n')));
}

TestWorld::TestWorld(const Change& change)
    : own_workspace_(std::make_unique<TempWorkspace>()), workspace_(own_workspace_.get()) {
  world::LocalWorldSpec spec = SpecFor(*workspace_);
  if (change) change(spec);
  world_ = Must(world::LocalWorld::Start(spec));
}

TestWorld::TestWorld(const TempWorkspace& workspace, const Change& change)
    : workspace_(&workspace) {
  world::LocalWorldSpec spec = SpecFor(*workspace_);
  if (change) change(spec);
  world_ = Must(world::LocalWorld::Start(spec));
}

Ran TestWorld::Run(std::string_view command) { return Run(Shell(command)); }

Ran TestWorld::Run(control::Exec exec) { return Finish(Begin(std::move(exec))); }

StepId TestWorld::Begin(control::Exec exec) {
  exec.id = StepId{++last_id_};
  commands_[exec.id];
  Send(exec);
  return exec.id;
}

Ran TestWorld::Finish(StepId id) {
  PumpUntil([&] { return commands_[id].ended; }, "the end of a command");
  return commands_[id].ran;
}

void TestWorld::Send(const control::HostMessage& message) {
  Must(control::Validate(message));
  SendLine(control::Encode(message));
}

void TestWorld::SendLine(const std::string& text) {
  const std::string line = text + "\n";
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t count = ::write(world_->control_fd(), line.data() + sent, line.size() - sent);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      PumpOnce(std::chrono::milliseconds(1));
    } else {
      SetupFailed(Error::FromErrno(errno, "send to the shim"));
    }
  }
}

void TestWorld::WaitForOutput(StepId id, std::string_view text) {
  PumpUntil([&] { return commands_[id].ran.out.find(text) != std::string::npos; },
            fmt::format("output '{}'", text));
}

void TestWorld::GoOnTaking() {
  taking_ = true;
  for (auto& [id, command] : commands_) Acknowledge(id, command);
}

void TestWorld::Pump(std::chrono::milliseconds time) {
  const auto end = SteadyClock::now() + time;
  while (SteadyClock::now() < end) PumpOnce(std::chrono::milliseconds(5));
}

void TestWorld::PumpUntil(const std::function<bool()>& done, std::string_view what) {
  const auto end = SteadyClock::now() + kPatience;
  while (!done()) {
    if (SteadyClock::now() > end)
      SetupFailed(Error(Code::kIo, fmt::format("waited too long for {}", what)));
    PumpOnce(std::chrono::milliseconds(100));
  }
}

void TestWorld::PumpOnce(std::chrono::milliseconds time) {
  pollfd waits[] = {{.fd = world_->control_fd(), .events = POLLIN},
                    {.fd = world_->listener_fd(), .events = POLLIN}};
  ::poll(waits, std::size(waits), static_cast<int>(time.count()));
  ReleaseCommands();
  ReadChannel();
}

void TestWorld::ReleaseCommands() {
  while (true) {
    auto listener = world_->ReceiveListener();
    if (!listener.ok() && listener.error().code() == Code::kBusy) return;
    auto [command, fd] = Must(std::move(listener));
    supervise_(command, std::move(fd));
    Must(world_->Release(command));
  }
}

void TestWorld::ReadChannel() {
  std::array<char, size_t{64} << 10> buffer;
  ssize_t size = 0;
  while ((size = ::read(world_->control_fd(), buffer.data(), buffer.size())) > 0) {
    std::string_view bytes(buffer.data(), static_cast<size_t>(size));
    while (auto line = lines_.Next(bytes))
      Receive(Must(control::DecodeShimMessage(Must(std::move(*line)))));
  }
  if (size == 0) SetupFailed(Error(Code::kIo, "the shim is gone"));
}

void TestWorld::Receive(const control::ShimMessage& message) {
  if (const auto* output = std::get_if<control::Output>(&message)) On(*output);
  if (const auto* end = std::get_if<control::StepCompleted>(&message)) On(*end);
  if (const auto* problem = std::get_if<control::Problem>(&message))
    problems_.push_back(problem->message);
}

void TestWorld::On(const control::Output& output) {
  Command& command = commands_[output.id];
  std::string& text = output.stream == control::Stream::kStdout ? command.ran.out : command.ran.err;
  text += output.data;
  command.not_acknowledged += output.data.size();
  if (taking_) Acknowledge(output.id, command);
}

void TestWorld::On(const control::StepCompleted& end) {
  Command& command = commands_[end.id];
  command.ended = true;
  command.ran.exit_code = end.exit_code;
  command.ran.signal = end.signal;
  command.ran.timed_out = end.timed_out;
  command.ran.error = end.error.value_or("");
}

void TestWorld::Acknowledge(StepId id, Command& command) {
  if (command.not_acknowledged == 0 || command.ended) return;
  Send(control::Ack{id, std::exchange(command.not_acknowledged, 0)});
}

}  // namespace sandglass::test

#include "tests/model/command.h"

#include <numeric>
#include <ostream>

namespace sandglass::model {
namespace {

constexpr bool TableIsInOrder() {
  for (size_t i = 0; i < kOpCount; ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return true;
}
static_assert(TableIsInOrder());

constexpr uint32_t TotalWeight() {
  return std::accumulate(kOps.begin(), kOps.end(), uint32_t{0},
                         [](uint32_t sum, const OpInfo& info) { return sum + info.weight; });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Command& command) {
  return out << InfoOf(command.op).name << " (" << command.path << ", " << command.other << ", "
             << command.salt << ")\n";
}

std::ostream& operator<<(std::ostream& out, const Sequence& sequence) {
  out << "salt " << sequence.salt << ", " << sequence.most_per_step << " per step, "
      << sequence.directories << " directories:\n";
  for (const Command& command : sequence.commands) out << "  " << command;
  return out;
}

Sequence SequenceFrom(uint64_t bits) {
  constexpr std::array<uint32_t, 4> kMostPerStep = {10, 10, 14, 30};
  constexpr std::array<uint32_t, 4> kDirectories = {6, 6, 2, 1};
  return {.salt = static_cast<uint32_t>(bits >> 32),
          .most_per_step = kMostPerStep[bits % kMostPerStep.size()],
          .directories = kDirectories[(bits >> 8) % kDirectories.size()],
          .commands = {}};
}

Command CommandFrom(uint64_t bits) {
  auto at = static_cast<uint32_t>((bits & 0xffff) % TotalWeight());
  size_t index = 0;
  while (at >= kOps[index].weight) at -= kOps[index++].weight;
  return {.op = kOps[index].op,
          .path = static_cast<uint16_t>((bits >> 16) & 0xff),
          .other = static_cast<uint16_t>((bits >> 24) & 0xff),
          .salt = static_cast<uint32_t>(bits >> 32)};
}

std::vector<Command> Simplify(const Command& command) {
  std::vector<Command> simpler;
  const auto add = [&](auto Command::* field) {
    Command copy = command;
    copy.*field = 0;
    if (copy != command) simpler.push_back(copy);
  };
  add(&Command::salt);
  add(&Command::other);
  add(&Command::path);
  return simpler;
}

uint32_t Dice::Below(uint32_t bound) {
  if (state_ == 0 || bound < 2) return 0;
  // splitmix64, except that 0 stays 0.
  state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((mixed ^ (mixed >> 31)) % bound);
}

}  // namespace sandglass::model

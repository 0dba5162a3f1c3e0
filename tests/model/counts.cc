#include "tests/model/counts.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "tests/support/must.h"

namespace sandglass::model {
namespace {

void LowerTo(std::atomic<uint64_t>& minimum, uint64_t value) {
  uint64_t seen = minimum;
  while (value < seen && !minimum.compare_exchange_weak(seen, value)) {
  }
}

std::string JsonPairs(const std::vector<std::pair<std::string, uint64_t>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace

void Counts::AddStrategies(const undo::UndoLog& log) {
  for (size_t i = 0; i < kStrategyCount; ++i) {
    strategies[i] += TimesUsed(log, i);
    if (IsOffered(log, i)) offered[i] = true;
  }
}

void Counts::AddSequence(uint64_t operations, uint64_t steps_in_it) {
  ++sequences;
  LowerTo(shortest_sequence, operations);
  LowerTo(fewest_steps, steps_in_it);
}

SharedCounts::SharedCounts() {
  void* memory =
      mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) test::SetupFailed(Error::FromErrno(errno, "mmap"));
  counts_ = new (memory) Counts;
}

SharedCounts::~SharedCounts() {
  counts_->~Counts();
  munmap(counts_, sizeof(Counts));
}

std::string CountsTable(const Counts& counts) {
  std::string table =
      fmt::format("{} sequences, {} steps, {} trees compared\n", counts.sequences.load(),
                  counts.steps.load(), counts.checks.load());
  if (counts.sequences > 0) {
    table += fmt::format("at least {} operations and {} steps in each\n",
                         counts.shortest_sequence.load(), counts.fewest_steps.load());
  }
  for (size_t i = 0; i < kOpCount; ++i) {
    table += fmt::format("  operation  {:<36} {:>9}\n", kOps[i].name, counts.done[i].load());
  }
  for (size_t i = 0; i < kStrategyCount; ++i) {
    table +=
        fmt::format("  strategy   {:<36} {:>9}{}\n", StrategyName(i), counts.strategies[i].load(),
                    counts.offered[i] ? "" : "  (not offered here)");
  }
  return table;
}

std::string CountsJson(const Counts& counts, uint64_t seed, const std::string& file_system) {
  std::vector<std::pair<std::string, uint64_t>> operations, strategies;
  for (size_t i = 0; i < kOpCount; ++i)
    operations.emplace_back(kOps[i].name, counts.done[i].load());
  for (size_t i = 0; i < kStrategyCount; ++i) {
    if (counts.offered[i]) strategies.emplace_back(StrategyName(i), counts.strategies[i].load());
  }
  return fmt::format(
      "{{\"file_system\": \"{}\", \"seed\": {}, \"sequences\": {}, \"steps\": {}, "
      "\"trees_compared\": {}, "
      "\"shortest_sequence\": {}, \"fewest_steps\": {}, \"operations\": {{{}}}, \"strategies\": "
      "{{{}}}}}\n",
      file_system, seed, counts.sequences.load(), counts.steps.load(), counts.checks.load(),
      counts.shortest_sequence.load(), counts.fewest_steps.load(), JsonPairs(operations),
      JsonPairs(strategies));
}

std::vector<std::string> TooRare(const Counts& counts, uint64_t required) {
  std::vector<std::string> rare;
  for (size_t i = 0; i < kOpCount; ++i) {
    const bool impossible = counts.done[i] == 0 && counts.unsupported[i] > 0;
    if (!impossible && counts.done[i] < required) {
      rare.push_back(fmt::format("operation {}: {}", kOps[i].name, counts.done[i].load()));
    }
  }
  for (size_t i = 0; i < kStrategyCount; ++i) {
    if (counts.offered[i] && counts.strategies[i] < required) {
      rare.push_back(fmt::format("strategy {}: {}", StrategyName(i), counts.strategies[i].load()));
    }
  }
  return rare;
}

}  // namespace sandglass::model

// Counts: what a run of sequences did, kept in memory that child processes share, and its closing report.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/model/command.h"
#include "tests/model/strategies.h"

namespace sandglass::model {

struct Counts {
  std::array<std::atomic<uint64_t>, kOpCount> done{};
  std::array<std::atomic<uint64_t>, kOpCount> unsupported{};
  std::array<std::atomic<uint64_t>, kStrategyCount> strategies{};
  std::array<std::atomic<bool>, kStrategyCount> offered{};
  std::atomic<uint64_t> sequences{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> checks{0};  // comparisons of whole trees
  // Of sequences as drawn; a shrunk one may be as short as it likes.
  std::atomic<uint64_t> shortest_sequence{UINT64_MAX};
  std::atomic<uint64_t> fewest_steps{UINT64_MAX};

  void AddStrategies(const undo::UndoLog& log);
  void AddSequence(uint64_t operations, uint64_t steps_in_it);
};

// Owns Counts that survive fork() as one.
class SharedCounts {
 public:
  SharedCounts();
  ~SharedCounts();
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  Counts& operator*() const { return *counts_; }
  Counts* operator->() const { return counts_; }

 private:
  Counts* counts_;
};

// One line per operation and strategy.
std::string CountsTable(const Counts& counts);
std::string CountsJson(const Counts& counts, uint64_t seed, const std::string& file_system);
// Every operation and strategy that the place offers but that was used fewer than `required` times, one line each.
std::vector<std::string> TooRare(const Counts& counts, uint64_t required);

}  // namespace sandglass::model

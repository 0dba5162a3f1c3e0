// Ledger: which tree belongs to which history, learnt from a run's own markers, and what may therefore be found after a kill.
//
// A scenario reports every state in which no step is open ("state 1,2"), the tree of a step that is about to close ("closing 3"),
// the begin of an ambient step ("ambient -1") and what a rewind of several steps passes through ("between 1"). A step that was
// killed must be gone as if it had never been; one that had been reported closed must be there. So after a kill the history is
// that of the last state or of the next one, or one in between, and the tree is the one that belongs to it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/crash/plain_compare.h"

namespace sandglass::crash {

using History = std::vector<int64_t>;  // step ids, oldest first
std::string HistoryText(const History& history);
Result<History> ParseHistory(std::string_view text);

using TreePtr =
    std::shared_ptr<const PlainTree>;  // shared by the ledgers and references that mention the tree

// A tree together with what is not known about it: times that differ from run to run.
struct ExpectedTree {
  TreePtr tree;
  std::set<std::string> any_mtime;

  std::vector<std::string> Differences(const PlainTree& got) const {
    return PlainDifferences(*tree, got, any_mtime);
  }
};

struct ReferenceState {
  History history;
  ExpectedTree expected;
};

// The states of an undisturbed run.
using Reference = std::vector<ReferenceState>;

enum class Eviction : uint8_t { kNone, kOldest };

class Ledger {
 public:
  // Reads a marker; `tree` is the project at that moment. Returns how the tree contradicts what was known.
  Result<std::vector<std::string>> Take(std::string_view marker, TreePtr tree);
  // The states from now on are counted: they correspond to those of a reference.
  void BeginRun();

  bool refused() const { return refused_; }  // an operation was refused
  const std::string& refusal() const { return refusal_; }
  const Reference& states() const { return run_states_; }
  const History& current() const { return current_; }

  // What the tree must be when reopening reported `history`, after an end at a time when the tree was `at_end`.
  // kConflict: that history must not be found at all.
  Result<ExpectedTree> After(const History& history, const TreePtr& at_end,
                             const Reference& reference, Eviction eviction) const;
  // The tree before the first step of `history`, i.e. after rolling all of it back.
  Result<ExpectedTree> Before(const History& history, const Reference& reference) const;

 private:
  std::vector<std::string> Learn(const History& history, TreePtr tree);
  std::optional<ExpectedTree> Known(const History& history, const Reference& reference) const;
  std::vector<History> Allowed(const Reference& reference) const;

  std::map<History, TreePtr> trees_;
  std::map<int64_t, TreePtr>
      newest_;  // by newest step; 0: none. Eviction shortens a history but keeps its newest step
  std::map<int64_t, int64_t> before_;  // by step: the one before it
  History current_;
  std::optional<History> closing_;
  std::vector<History> between_;
  std::optional<int64_t> ambient_;
  Reference run_states_;
  bool counting_ = false;
  bool refused_ = false;
  std::string refusal_;
};

// The same run done twice: what differs in time is not to be expected again. kInvalid: the runs differ in more than that.
Result<Reference> MergeReferences(const Reference& first, const Reference& second);

}  // namespace sandglass::crash

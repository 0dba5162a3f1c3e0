#include "tests/crash/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace sandglass::crash {
namespace {

constexpr int64_t kNoStep = 0;

int64_t Newest(const History& history) { return history.empty() ? kNoStep : history.back(); }

History With(History history, int64_t id) {
  history.push_back(id);
  return history;
}

bool IsSuffix(const History& part, const History& whole) {
  return part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
}

// "word rest" -> {word, rest}.
std::pair<std::string_view, std::string_view> SplitWord(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return {text, {}};
  return {text.substr(0, space), text.substr(space + 1)};
}

Result<int64_t> ParseId(std::string_view text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return Error{Code::kInvalid, fmt::format("'{}' is no step id", text)};
  }
  return id;
}

}  // namespace

std::string HistoryText(const History& history) {
  return fmt::format("{}", fmt::join(history, ","));
}

Result<History> ParseHistory(std::string_view text) {
  History history;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    TRY_ASSIGN(const int64_t id, ParseId(text.substr(0, comma)));
    history.push_back(id);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return history;
}

void Ledger::BeginRun() {
  counting_ = true;
  run_states_.clear();
}

Result<std::vector<std::string>> Ledger::Take(std::string_view marker, TreePtr tree) {
  const auto [word, rest] = SplitWord(marker);
  if (word == "refused") {
    refused_ = true;
    refusal_ = std::string(rest);
    return std::vector<std::string>{};
  }
  if (word == "ambient") {
    TRY_ASSIGN(ambient_, ParseId(rest));
    return std::vector<std::string>{};
  }
  if (word == "between") {
    TRY_ASSIGN(History history, ParseHistory(rest));
    between_.push_back(std::move(history));
    return std::vector<std::string>{};
  }
  if (word == "closing") {
    TRY_ASSIGN(const int64_t id, ParseId(rest));
    closing_ = With(current_, id);
    return Learn(*closing_, std::move(tree));
  }
  if (word != "state") return Error{Code::kInvalid, fmt::format("unknown marker '{}'", marker)};
  TRY_ASSIGN(current_, ParseHistory(rest));
  closing_.reset();
  between_.clear();
  ambient_.reset();
  if (counting_) run_states_.push_back({current_, {tree, {}}});
  return Learn(current_, std::move(tree));
}

std::vector<std::string> Ledger::Learn(const History& history, TreePtr tree) {
  for (size_t i = 0; i < history.size(); ++i) {
    before_.emplace(history[i], i == 0 ? kNoStep : history[i - 1]);
  }
  const auto [known, is_new] = trees_.emplace(history, tree);
  newest_[Newest(history)] = tree;
  return is_new ? std::vector<std::string>{} : PlainDifferences(*known->second, *tree);
}

// What this very run has shown comes first: it knows the times as well.
std::optional<ExpectedTree> Ledger::Known(const History& history,
                                          const Reference& reference) const {
  const auto newest = newest_.find(Newest(history));
  if (newest != newest_.end()) return ExpectedTree{newest->second, {}};
  const auto same = [&](const ReferenceState& state) {
    return Newest(state.history) == Newest(history);
  };
  const auto state = std::find_if(reference.begin(), reference.end(), same);
  if (state == reference.end()) return std::nullopt;
  return state->expected;
}

std::vector<History> Ledger::Allowed(const Reference& reference) const {
  std::vector<History> allowed = {current_};
  if (closing_) allowed.push_back(*closing_);
  allowed.insert(allowed.end(), between_.begin(), between_.end());
  const size_t next = run_states_.size();
  // A refused run goes its own way from there on, but the call that was refused may have done its work.
  if (next < reference.size()) allowed.push_back(reference[next].history);
  return allowed;
}

Result<ExpectedTree> Ledger::After(const History& history, const TreePtr& at_end,
                                   const Reference& reference, Eviction eviction) const {
  if (ambient_ && history == With(current_, *ambient_)) return ExpectedTree{at_end, {}};
  const std::vector<History> allowed = Allowed(reference);
  const bool found = std::any_of(allowed.begin(), allowed.end(), [&](const History& candidate) {
    return history == candidate ||
           (eviction == Eviction::kOldest && !history.empty() && IsSuffix(history, candidate));
  });
  std::optional<ExpectedTree> known = Known(history, reference);
  if (found && known) return *std::move(known);
  std::string text;
  for (const History& candidate : allowed) text += fmt::format(" [{}]", HistoryText(candidate));
  return Error{Code::kConflict,
               fmt::format("history [{}], expected one of{}", HistoryText(history), text)};
}

Result<ExpectedTree> Ledger::Before(const History& history, const Reference& reference) const {
  if (history.empty()) return Error{Code::kInvalid, "no step to take back"};
  const int64_t first = history.front();
  History earlier;
  if (const auto before = before_.find(first); before != before_.end()) {
    if (before->second != kNoStep) earlier.push_back(before->second);
  } else if (!current_.empty()) {
    earlier.push_back(current_.back());  // an ambient step that only recovery closed
  }
  std::optional<ExpectedTree> known = Known(earlier, reference);
  if (!known)
    return Error{Code::kInvalid, fmt::format("nobody saw the tree before step {}", first)};
  return *std::move(known);
}

Result<Reference> MergeReferences(const Reference& first, const Reference& second) {
  if (first.size() != second.size())
    return Error{Code::kInvalid, "two runs, two numbers of states"};
  Reference merged = first;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (first[i].history != second[i].history)
      return Error{Code::kInvalid, "two runs, two histories"};
    ExpectedTree& expected = merged[i].expected;
    expected.any_mtime = PathsWithOtherMtime(*expected.tree, *second[i].expected.tree);
    const auto differences = expected.Differences(*second[i].expected.tree);
    if (!differences.empty())
      return Error{Code::kInvalid, "two runs differ: " + differences.front()};
  }
  return merged;
}

}  // namespace sandglass::crash

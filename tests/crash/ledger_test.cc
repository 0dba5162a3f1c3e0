#include "tests/crash/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/must.h"

namespace sandglass::crash {
namespace {

using test::Must;
using ::testing::IsEmpty;
using ::testing::Not;

TreePtr Tree(const std::string& content) {
  PlainTree tree;
  tree["file"].body = content;
  return std::make_shared<const PlainTree>(std::move(tree));
}

Reference ReferenceOf(std::initializer_list<std::pair<History, TreePtr>> states) {
  Reference reference;
  for (const auto& [history, tree] : states) reference.push_back({history, {tree, {}}});
  return reference;
}

class LedgerTest : public ::testing::Test {
 protected:
  void Take(std::string_view marker, const TreePtr& tree) {
    EXPECT_THAT(Must(ledger_.Take(marker, tree)), IsEmpty());
  }
  // The content that must be found with that history; "!" when the history is not allowed.
  std::string After(const History& history, const TreePtr& at_end = Tree("at the end"),
                    Eviction eviction = Eviction::kNone) const {
    const Result<ExpectedTree> expected = ledger_.After(history, at_end, reference_, eviction);
    return expected.ok() ? expected->tree->at("file").body : "!";
  }

  Ledger ledger_;
  Reference reference_ = ReferenceOf({{{}, Tree("old")}, {{1}, Tree("reference")}});
};

TEST_F(LedgerTest, AnInterruptedStepMustBeGone) {
  ledger_.BeginRun();
  Take("state ", Tree("old"));
  EXPECT_EQ(After({}), "old");
  EXPECT_EQ(After({2}), "!");
}

TEST_F(LedgerTest, AStepThatWasClosingMayBeThereWithItsTree) {
  ledger_.BeginRun();
  Take("state ", Tree("old"));
  Take("closing 1", Tree("new"));
  EXPECT_EQ(After({}), "old");
  EXPECT_EQ(After({1}), "new");
}

TEST_F(LedgerTest, AClosedStepMustNotBeLost) {
  ledger_.BeginRun();
  Take("state ", Tree("old"));
  Take("closing 1", Tree("new"));
  Take("state 1", Tree("new"));
  EXPECT_EQ(After({1}), "new");
  EXPECT_EQ(After({}), "!");
}

TEST_F(LedgerTest, WhatARewindPassesThroughIsAllowed) {
  Take("state 1", Tree("first"));
  Take("state 1,2", Tree("second"));
  EXPECT_EQ(After({1}), "!");
  Take("between 1", Tree("second"));
  EXPECT_EQ(After({1}), "first");
}

TEST_F(LedgerTest, TheNextStateOfTheReferenceIsAllowed) {
  ledger_.BeginRun();
  Take("state ", Tree("old"));
  EXPECT_EQ(After({1}), "reference");
}

TEST_F(LedgerTest, TheSameHistoryWithAnotherTreeIsAContradiction) {
  Take("state ", Tree("old"));
  Take("state 1", Tree("new"));
  EXPECT_THAT(Must(ledger_.Take("state ", Tree("not quite old"))), Not(IsEmpty()));
}

TEST_F(LedgerTest, AnAmbientStepKeepsWhatWasThere) {
  ledger_.BeginRun();
  Take("state ", Tree("old"));
  Take("ambient -1", Tree("old"));
  EXPECT_EQ(After({-1}), "at the end");
  EXPECT_EQ(After({}), "old");
  EXPECT_EQ(Must(ledger_.Before({-1}, reference_)).tree->at("file").body, "old");
}

TEST_F(LedgerTest, EvictionMayShortenTheHistoryFromItsOldEnd) {
  Take("state ", Tree("old"));
  Take("state 1", Tree("first"));
  Take("state 1,2", Tree("second"));
  EXPECT_EQ(After({2}), "!");
  EXPECT_EQ(After({2}, Tree(""), Eviction::kOldest), "second");
  EXPECT_EQ(After({1}, Tree(""), Eviction::kOldest), "!");
  EXPECT_EQ(Must(ledger_.Before({2}, reference_)).tree->at("file").body, "first");
}

TEST_F(LedgerTest, TimesThatDifferBetweenTwoRunsAreNotExpected) {
  PlainTree later = *Tree("old");
  later["file"].mtime_ns = 1;
  const Reference again = ReferenceOf({{{}, std::make_shared<const PlainTree>(later)}});
  const Reference merged = Must(MergeReferences(ReferenceOf({{{}, Tree("old")}}), again));
  EXPECT_THAT(merged[0].expected.Differences(later), IsEmpty());
  EXPECT_FALSE(MergeReferences(merged, ReferenceOf({{{}, Tree("other")}})).ok());
}

TEST(HistoryTextTest, SurvivesARoundTrip) {
  const History history = {1, -2, 30};
  EXPECT_EQ(HistoryText(history), "1,-2,30");
  EXPECT_EQ(Must(ParseHistory("1,-2,30")), history);
  EXPECT_EQ(Must(ParseHistory("")), History{});
  EXPECT_FALSE(ParseHistory("1,x").ok());
}

}  // namespace
}  // namespace sandglass::crash

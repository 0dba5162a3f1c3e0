#include "session/empty_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const EmptyStep kFirst{StepId{4}, "true", {1'700'000'000'000'000'000}};
const EmptyStep kSecond{StepId{5}, "echo '\n\xff'", {1'700'000'001'000'000'000}};

TEST(EmptySteps, AreReadAsTheyWereWritten) {
  EXPECT_THAT(DecodeEmptySteps(EncodeEmptyStep(kFirst) + EncodeEmptyStep(kSecond)),
              ElementsAre(kFirst, kSecond));
}

TEST(EmptySteps, WhatIsNoLineOfTheFileIsLeftOut) {
  const std::string whole = EncodeEmptyStep(kSecond);
  EXPECT_THAT(DecodeEmptySteps(""), IsEmpty());
  EXPECT_THAT(DecodeEmptySteps("nonsense\n{}\n{\"step\":1}\n" + whole), ElementsAre(kSecond));
  for (size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_THAT(DecodeEmptySteps(EncodeEmptyStep(kFirst) + whole.substr(0, cut)),
                ElementsAre(kFirst));
}

class EmptyStepsOfAStore : public ::testing::Test {
 protected:
  struct Entry {
    int64_t id;
    std::string label;
    int64_t closed_ns;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> History() const {
    std::vector<Entry> found;
    for (const undo::HistoryEntry& entry : test::Must(log_->History())) {
      if (entry.step)
        found.push_back({entry.step->id.value, entry.step->label, entry.step->closed.ns});
    }
    return found;
  }
  void Open() {
    log_.reset();
    log_ = test::Must(undo::UndoLog::Open(paths_, {.clock = &clock_}));
  }

  const test::TempWorkspace workspace_;
  const undo::UndoPaths paths_{.project = workspace_.project(), .store = workspace_.store()};
  PastClock clock_;
  std::unique_ptr<undo::UndoLog> log_;
};

TEST_F(EmptyStepsOfAStore, AreEnteredInOrderWithTheirTimesAndLeaveNoFile) {
  Open();
  {
    EmptySteps steps(paths_.store, *log_, clock_);
    steps.PutOff(kFirst);
    steps.PutOff(kSecond);
    EXPECT_THAT(History(), IsEmpty());
    EXPECT_TRUE(steps.Enter().ok());
  }
  EXPECT_THAT(History(), ElementsAre(Entry{4, kFirst.label, kFirst.ended.ns},
                                     Entry{5, kSecond.label, kSecond.ended.ns}));
  EXPECT_NE(::access((paths_.store + "/empty_steps").c_str(), F_OK), 0);
}

TEST_F(EmptyStepsOfAStore, WhatAKillLeftIsEnteredAndNoIdIsUsedAgain) {
  Open();
  auto* killed = new EmptySteps(paths_.store, *log_, clock_);
  killed->PutOff(kFirst);
  killed->PutOff(kSecond);
  Open();
  EXPECT_TRUE(EnterLeftSteps(paths_.store, *log_).ok());
  const auto history = History();
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].label, kFirst.label);
  EXPECT_EQ(log_->next_step_id(), StepId{6});
  EXPECT_TRUE(EnterLeftSteps(paths_.store, *log_).ok());
  EXPECT_EQ(History().size(), 2u);
  delete killed;
}

TEST_F(EmptyStepsOfAStore, WhatWasEnteredBeforeTheKillIsNotEnteredAgain) {
  Open();
  auto* killed = new EmptySteps(paths_.store, *log_, clock_);
  killed->PutOff(kFirst);
  killed->PutOff(kSecond);
  test::Must(log_->OpenStep({.label = kFirst.label, .id = kFirst.id}));
  test::Must(log_->CloseStep());
  Open();
  EXPECT_TRUE(EnterLeftSteps(paths_.store, *log_).ok());
  const auto history = History();
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].id, 4);
  EXPECT_EQ(history[1].id, 5);
  delete killed;
}

}  // namespace
}  // namespace sandglass::session

#include "session/step_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StepBookOfAProject : public ::testing::Test {
 protected:
  StepBookOfAProject() { book_.Add(*log_, paths_.store); }
  std::vector<int64_t> History() const {
    std::vector<int64_t> ids;
    for (const undo::HistoryEntry& entry : test::Must(log_->History())) {
      if (entry.step) ids.push_back(entry.step->id.value);
    }
    return ids;
  }
  void Announce(int64_t id) {
    test::Must(book_.Announce({StepId{id}, "true", undo::IfUnchanged::kRecorded}));
  }
  void CloseEmpty() {
    EXPECT_FALSE(test::Must(book_.Close(EmptyEntry::kLater, Left::kNone, Ending::kKept)));
  }

  const test::TempWorkspace workspace_;
  const undo::UndoPaths paths_{.project = workspace_.project(), .store = workspace_.store()};
  Notices notices_;
  PastClock clock_;
  LogActivity activity_;
  std::unique_ptr<undo::UndoLog> log_ = test::Must(undo::UndoLog::Open(paths_, {.clock = &clock_}));
  StepBook book_{notices_, clock_, activity_};
};

// The call of a process that nobody knew of: what it changes is ambient, and comes after the entries.
TEST_F(StepBookOfAProject, ACallBetweenTwoStepsFindsTheEntriesMade) {
  Announce(1);
  CloseEmpty();
  EXPECT_THAT(History(), IsEmpty());
  test::Must(book_.BeforeCall());
  EXPECT_THAT(History(), ElementsAre(1));
}

TEST_F(StepBookOfAProject, TheFirstCallOfAHeldStepFindsTheEntriesMade) {
  Announce(1);
  CloseEmpty();
  Announce(2);
  EXPECT_THAT(History(), IsEmpty());
  test::Must(book_.BeforeCall());
  EXPECT_THAT(History(), ElementsAre(1));
  CloseEmpty();
  book_.EnterAll();
  EXPECT_THAT(History(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace sandglass::session

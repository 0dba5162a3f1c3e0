// StepWriter alone: what it believes to be on record is on record, also where the journal cannot grow.
#include "undo/step_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/place.h"
#include "undo/step_view.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;

constexpr const char* kFolder = "step";
constexpr size_t kMoreThanAJournalStartsWith = 100'000;

// No file of this process can grow any more, as on a full disk.
void StopGrowth() {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
  MustCall(::setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
}
void AllowGrowth() {
  const rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  MustCall(::setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
}

class UndoStepWriter : public UndoTest {
 protected:
  void SetUp() override {
    workspace().WriteFile("a.txt", "before");
    place_ = Must(OpenPlace(paths(), StoreAccess::kReadWrite));
    Must(ProbeStore(*place_));
  }
  std::unique_ptr<StepWriter> Start() {
    return Must(StepWriter::Create(*place_, place_->store.get(), kFolder, {.uid = 1}, {}));
  }
  OpenObject Look(const char* name) {
    return Must(OpenObjectAt(place_->identifier, place_->root.get(), name));
  }
  StepView Read() {
    return Must(StepView::Open(Must(OpenSubdir(place_->store.get(), kFolder)).get()));
  }

  std::unique_ptr<Place> place_;
};

TEST_F(UndoStepWriter, AStepWhoseRecordOfBeingUnprotectedDoesNotFitIsProtected) {
  RunForked([&] {
    const auto writer = Start();
    StopGrowth();
    EXPECT_CODE(writer->MarkUnprotected(std::string(kMoreThanAJournalStartsWith, 'w')),
                Code::kNoSpace);
    AllowGrowth();
    EXPECT_FALSE(writer->unprotected());
    EXPECT_OK(writer->TouchContent(Look("a.txt"), "a.txt", ContentChange::TruncateTo(0),
                                   WriteVisibility::kAnnounced));
    size_t contents = 0;
    Read().journal().ForEachOf<ContentRecord>([&](const ContentRecord&, size_t) { ++contents; });
    EXPECT_EQ(contents, 1u);
    EXPECT_OK(writer->MarkUnprotected("too large"));
    EXPECT_TRUE(writer->unprotected());
    EXPECT_TRUE(Read().unprotected());
  });
}

TEST_F(UndoStepWriter, AChangeWhoseMarkDoesNotFitIsMarkedByTheNextAttempt) {
  RunForked([&] {
    const auto writer = Start();
    const OpenObject object = Look("a.txt");
    EXPECT_OK(writer->TouchMeta(object, "a.txt", TouchReason::kContent));
    StopGrowth();
    std::string long_path = "p";
    while (long_path.size() < kMoreThanAJournalStartsWith) long_path += "/p";
    EXPECT_CODE(writer->TouchMeta(object, long_path, TouchReason::kDirect), Code::kNoSpace);
    AllowGrowth();
    EXPECT_OK(writer->TouchMeta(object, "a.txt", TouchReason::kDirect));
    EXPECT_OK(writer->TouchMeta(object, "a.txt", TouchReason::kDirect));
    size_t marks = 0;
    Read().journal().ForEachOf<MarkRecord>([&](const MarkRecord&, size_t) { ++marks; });
    EXPECT_EQ(marks, 1u);
  });
}

TEST_F(UndoStepWriter, MoreAnchorsOfAnObjectThanSixteenBitsCountAreCounted) {
  constexpr uint32_t kNames = 65'537;
  const auto writer = Start();
  const OpenObject object = Look("a.txt");
  if (!place_->abilities.links) GTEST_SKIP() << "nothing is anchored here";
  if (place_->abilities.file_system == "ext4") GTEST_SKIP() << "ext4 allows 65000 links";
  for (uint32_t i = 0; i < kNames; ++i) {
    const auto keep =
        Must(writer->KeepObject(object, place_->root.get(), "a.txt", "a.txt", KeepBy::kLink));
    if (keep.by_rename) GTEST_SKIP() << "no object has that many links here";
  }
  EXPECT_EQ(writer->AnchorCount(object.id), kNames);
}

}  // namespace
}  // namespace sandglass::undo

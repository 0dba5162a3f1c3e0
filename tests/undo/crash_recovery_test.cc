// A process that dies in the middle of a step, and what the next one makes of it (CR-01..07). The faults are real: a child
// is killed, a small file system fills up, files in the store are cut and overwritten.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace {

// Takes the place of the call in this program: it may be the last thing that a process does.
bool& DiesAfterChmod() {
  static bool dies = false;
  return dies;
}

}  // namespace

extern "C" int chmod(const char* path, mode_t mode) noexcept {
  const auto rc = static_cast<int>(::syscall(SYS_chmod, path, mode));
  if (DiesAfterChmod()) sandglass::undo::DieNow();
  return rc;
}

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Longer than any heartbeat of an open step, so that what a person does now is later than all that the step did.
constexpr auto kAfterTheHeartbeat = 700ms;

class UndoRecovery : public UndoTest {
 protected:
  // In a child: opens the log, runs `body` in a step and dies there.
  void CrashInStep(const std::function<void()>& body, Who who = Who::kSelf) {
    RunUntilDeath(
        [&] {
          OpenLog();
          ASSERT_OK(log().OpenStep({.label = "interrupted"}));
          body();
          DieNow();
        },
        who);
  }

  // A few changes of every kind.
  void ChangeMuch() {
    EXPECT_OK(ops().Overwrite("small.txt", "new content"));
    EXPECT_OK(ops().WriteAt("large.bin", 1000, "in the middle", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().RemoveTree("src/components"));
    EXPECT_OK(ops().Rename("src", "lib"));
    EXPECT_OK(ops().WriteNew("lib/new.rs", "fn new() {}"));
    EXPECT_OK(ops().Chmod("run.sh", 0600));
    EXPECT_OK(ops().Symlink("lib", "src"));
  }

  // Nothing of an interrupted step is left in the store.
  void ExpectNoOpenStepOnDisk() const {
    EXPECT_THAT(FilesBelow(OpenStepFolder(workspace())), IsEmpty());
  }

  std::string JournalOfOpenStep() const { return OpenStepFolder(workspace()) + "/journal"; }

  // One more than the last byte that is not zero: the journal's file may be longer than what is written in it.
  static uint64_t WrittenSize(const std::string& path) {
    const Fd file(MustCall(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path));
    const Bytes bytes = test::Must(ReadFully(file.get(), size_t{1} << 30));
    uint64_t size = bytes.size();
    while (size > 0 && bytes[size - 1] == 0) --size;
    return size;
  }
};

// A process of an earlier step still writes, through a descriptor of its own, when everything dies.
class UndoRecoveryLiveWriter : public UndoRecovery {
 protected:
  void SetUp() override {
    UndoRecovery::SetUp();
    test::SmallTree(workspace().project());
  }
  // In a child: a step that leaves a writer behind, then `body` with the writer's descriptor, then death.
  void CrashWithWriter(const std::function<void(int)>& body) {
    RunUntilDeath([&] {
      OpenLog();
      ASSERT_OK(log().OpenStep({.label = "start a server"}));
      const Fd server = test::Must(ops().OpenFile("small.txt", O_RDWR, WriteVisibility::kUnseen));
      ASSERT_EQ(::pwrite(server.get(), "first", 5, 0), 5);
      const ObjectRef live[] = {{server.get(), "small.txt"}};
      ASSERT_OK(log().CloseStep(live));
      body(server.get());
      DieNow();
    });
  }
};

// Its xattrs can be recorded only while their owner may read the file.
TEST_F(UndoRecovery, AFileThatWasOpenForAMomentIsClosedAgain) {
  const test::TreeBuilder tree(workspace().project());
  tree.File("closed", "content");
  if (tree.Xattr("closed", "user.a", "1") != 0)
    GTEST_SKIP() << "user xattrs: not supported by " << FileSystemName(workspace().project());
  tree.Mode("closed", 0);
  GiveToOrdinaryUser(workspace());
  CrashInStep(
      [&] {
        DiesAfterChmod() = true;
        (void)ops().Chmod("closed", 0640);
      },
      Who::kOrdinaryUser);
  EXPECT_EQ(StatOf("closed").st_mode & 07777, 0400u) << "killed at the very moment";
  RunForked([&] { OpenLog(); }, Who::kOrdinaryUser);
  EXPECT_EQ(StatOf("closed").st_mode & 07777, 0u);
}

TEST_F(UndoRecoveryLiveWriter, WhatItWroteInTheInterruptedStepIsTakenBack) {
  CrashWithWriter([&](int server) {
    ASSERT_OK(log().OpenStep({.label = "interrupted"}));
    ASSERT_EQ(::pwrite(server, "SECOND", 6, 0), 6);
  });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_EQ(Content("small.txt"), "first world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRecoveryLiveWriter, SoItIsUnderAnotherName) {
  CrashWithWriter([&](int server) {
    ASSERT_OK(log().OpenStep({.label = "interrupted"}));
    ASSERT_OK(ops().Mkdir("moved"));
    ASSERT_EQ(::pwrite(server, "SECOND", 6, 0), 6);
    ASSERT_OK(ops().Rename("small.txt", "moved/small.txt"));
  });
  OpenLog();
  EXPECT_EQ(Content("small.txt"), "first world");
}

TEST_F(UndoRecoveryLiveWriter, WhatItWroteBetweenStepsBecomesAStep) {
  CrashWithWriter([&](int server) { ASSERT_EQ(::pwrite(server, "SECOND", 6, 0), 6); });
  OpenLog();
  EXPECT_EQ(Content("small.txt"), "SECONDworld");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "first world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRecoveryLiveWriter, QuietOnesLeaveNothing) {
  CrashWithWriter([](int) {});
  OpenLog();
  EXPECT_FALSE(log().recovery().recovered);
  EXPECT_THAT(FilesBelow(workspace().store() + "/shadows"), IsEmpty());
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

// The step's own copy was dropped because nothing had changed until it closed; that it was not promoted is what makes it interrupted.
TEST_F(UndoRecoveryLiveWriter, WhatItWroteAfterTheStepsOwnCopyWasDroppedIsTakenBack) {
  const std::string content = Noise(2 << 20), obstacle = workspace().store() + "/steps/1";
  workspace().WriteFile("big.bin", content);
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({.label = "start a server"}));
    const Fd server = test::Must(ops().OpenFile("big.bin", O_RDWR, WriteVisibility::kUnseen));
    MustCall(::mkdir(obstacle.c_str(), 0700), "mkdir");
    MustCall(::mkdir((obstacle + "/inside").c_str(), 0700), "mkdir");
    const ObjectRef live[] = {{server.get(), "big.bin"}};
    ASSERT_FALSE(log().CloseStep(live).ok());
    ASSERT_EQ(::pwrite(server.get(), "late", 4, 0), 4);
    DieNow();
  });
  MustCall(::rmdir((obstacle + "/inside").c_str()), "rmdir");
  MustCall(::rmdir(obstacle.c_str()), "rmdir");
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_TRUE(Content("big.bin") == content);
}

TEST_F(UndoRecovery, TheModeThatAPersonGaveAFolderAfterTheCrashIsKept) {
  test::SmallTree(workspace().project());
  CrashInStep([&] { EXPECT_OK(ops().WriteNew("src/new.rs", "x")); });
  std::this_thread::sleep_for(kAfterTheHeartbeat);
  MustCall(::chmod((workspace().project() + "/src").c_str(), 0700), "chmod");
  OpenLog();
  EXPECT_EQ(StatOf("src").st_mode & 07777, 0700u);
  EXPECT_EQ(Content("src/new.rs"), "(missing)");
  EXPECT_TRUE(HasConflict(log().recovery().rewind.conflicts, ConflictKind::kEdited, "src"));
}

TEST_F(UndoRecovery, CR_01_ACrashInTheMiddleOfAStepIsRolledBackByTheNextOpen) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] { ChangeMuch(); });
  EXPECT_FALSE(workspace().Exists("medium.txt"));

  OpenLog();
  ExpectTree(before);
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_EQ(log().recovery().step, StepId{1});
  EXPECT_FALSE(log().recovery().interrupted_rewind);
  EXPECT_THAT(log().recovery().rewind.conflicts, IsEmpty());
  EXPECT_THAT(Lines(log().recovery().rewind.changes), Contains("created medium.txt"));
  EXPECT_THAT(Steps(), IsEmpty());
  ExpectNoOpenStepOnDisk();
}

TEST_F(UndoRecovery, CR_01_WritesThroughAnInjectedDescriptorAreRolledBackToo) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] {
    Result<Fd> truncated =
        ops().OpenFile("small.txt", O_WRONLY | O_TRUNC, WriteVisibility::kUnseen);
    Result<Fd> in_place = ops().OpenFile("large.bin", O_RDWR, WriteVisibility::kUnseen);
    Result<Fd> created = ops().OpenFile("out.log", O_WRONLY | O_CREAT, WriteVisibility::kUnseen);
    ASSERT_TRUE(truncated.ok() && in_place.ok() && created.ok());
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(::write(truncated->get(), "line\n", 5), 5);
      EXPECT_EQ(::pwrite(in_place->get(), "block", 5, i * 40'000), 5);
      EXPECT_EQ(::write(created->get(), "more\n", 5), 5);
      std::this_thread::sleep_for(10ms);
    }
    DieNow();
  });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectTree(before);
}

TEST_F(UndoRecovery, CR_01_EarlierStepsSurviveTheCrashAndCanBeRolledBack) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { ChangeMuch(); }, "completed");
    ASSERT_OK(log().OpenStep({.label = "interrupted"}));
    EXPECT_OK(ops().RemoveTree("lib"));
    DieNow();
  });
  OpenLog();
  EXPECT_EQ(log().recovery().step, StepId{2});
  EXPECT_TRUE(workspace().Exists("lib/new.rs"));
  ASSERT_THAT(Steps(), SizeIs(1));
  EXPECT_EQ(Steps()[0].label, "completed");
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRecovery, CR_01_ManyCrashesAtDifferentPointsAllRecover) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  const std::function<void()> operations[] = {
      [&] { EXPECT_OK(ops().Unlink("small.txt")); },
      [&] { EXPECT_OK(ops().WriteNew("small.txt", "another")); },
      [&] { EXPECT_OK(ops().Rename("large.bin", "small.txt")); },
      [&] { EXPECT_OK(ops().TruncateTo("small.txt", 100)); },
      [&] { EXPECT_OK(ops().Rename("src", "medium.txt.d")); },
      [&] { EXPECT_OK(ops().RemoveTree("medium.txt.d")); },
      [&] { EXPECT_OK(ops().Chmod("", 0700)); },
  };
  for (size_t count = 0; count <= std::size(operations); ++count) {
    SCOPED_TRACE(fmt::format("after {} operations", count));
    CrashInStep([&] {
      for (size_t i = 0; i < count; ++i) operations[i]();
    });
    OpenLog();
    ExpectTree(before);
    CloseLog();
  }
}

TEST_F(UndoRecovery, CR_01_AnOrdinaryUsersCrashIsRecoveredByThatUser) {
  GiveToOrdinaryUser(workspace());
  RunForked([&] { test::SmallTree(workspace().project()); }, Who::kOrdinaryUser);
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] { ChangeMuch(); }, Who::kOrdinaryUser);
  RunForked(
      [&] {
        OpenLog();
        EXPECT_TRUE(log().recovery().recovered);
      },
      Who::kOrdinaryUser);
  ExpectTree(before);
}

// The founding plan left open whether a failed capture refuses the operation or gives up protection: we refuse.
TEST_F(UndoRecovery, CR_02_AFailedCaptureRefusesTheOperationAndTheStepStaysExact) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  workspace().WriteFile("big.bin", Noise(24u << 20));
  workspace().WriteFile("small.txt", "small");
  test::AgeTree(workspace().project());
  RunWithPrivateMounts([&] {
    // A store that cannot hold a copy of the big file.
    MustCall(::mount("none", workspace().store().c_str(), "tmpfs", 0, "size=16m"), "mount tmpfs");
    const TreeSnapshot before = Snapshot();
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_CODE(ops().WriteAt("big.bin", 100, "never", WriteVisibility::kUnseen), Code::kNoSpace);
    EXPECT_CODE(ops().Overwrite("big.bin", "never"), Code::kNoSpace);
    EXPECT_CODE(ops().Unlink("big.bin"), Code::kNoSpace);
    EXPECT_EQ(StatOf("big.bin").st_size, 24 << 20);
    EXPECT_OK(ops().WriteNew("new.txt", "the step goes on"));
    EXPECT_OK(log().CloseStep());
    EXPECT_THAT(ChangeLines(StepId{1}), ElementsAre("created new.txt", "modified small.txt"));
    RollBack();
    ExpectTree(before);
    CloseLog();
  });
}

// The same without root's help: no file of this process may grow beyond the limit, so the copy cannot be written.
TEST_F(UndoRecovery, CR_02_ACaptureThatIsCutShortRefusesTheOperation) {
  workspace().WriteFile("big.bin", Noise(24u << 20));
  workspace().WriteFile("small.txt", "small");
  test::AgeTree(workspace().project());
  RunForked([&] {
    const TreeSnapshot before = Snapshot();
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    std::signal(SIGXFSZ, SIG_IGN);  // EFBIG instead
    rlimit limit{};
    MustCall(::getrlimit(RLIMIT_FSIZE, &limit), "getrlimit");
    const rlimit low{.rlim_cur = 8u << 20, .rlim_max = limit.rlim_max};
    MustCall(::setrlimit(RLIMIT_FSIZE, &low), "setrlimit");
    const Status written = ops().WriteAt("big.bin", 100, "never", WriteVisibility::kUnseen);
    MustCall(::setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().sys_errno(), EFBIG);
    EXPECT_TRUE(Content("big.bin") == Noise(24u << 20));
    EXPECT_OK(ops().WriteNew("new.txt", "the step goes on"));
    EXPECT_OK(log().CloseStep());
    RollBack();
    ExpectTree(before);
    CloseLog();
  });
}

TEST_F(UndoRecovery, CR_02_ACrashAfterAFailedCaptureIsRecovered) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  workspace().WriteFile("big.bin", Noise(24u << 20));
  workspace().WriteFile("small.txt", "small");
  test::AgeTree(workspace().project());
  RunWithPrivateMounts([&] {
    MustCall(::mount("none", workspace().store().c_str(), "tmpfs", 0, "size=16m"), "mount tmpfs");
    const TreeSnapshot before = Snapshot();
    CrashInStep([&] {
      EXPECT_OK(ops().Overwrite("small.txt", "changed"));
      EXPECT_CODE(ops().WriteAt("big.bin", 0, "never", WriteVisibility::kUnseen), Code::kNoSpace);
    });
    OpenLog();
    EXPECT_TRUE(log().recovery().recovered);
    ExpectTree(before);
    CloseLog();
  });
}

TEST_F(UndoRecovery, CR_03_AStepThatCannotBePromotedStaysOpenAndIsRolledBackAfterACrash) {
  GiveToOrdinaryUser(workspace());
  RunForked([&] { test::SmallTree(workspace().project()); }, Who::kOrdinaryUser);
  const TreeSnapshot before = Snapshot();
  const std::string steps = workspace().store() + "/steps";
  CrashInStep(
      [&] {
        ChangeMuch();
        MustCall(::chmod(steps.c_str(), 0555), "chmod");
        EXPECT_FALSE(log().CloseStep().ok());
        EXPECT_EQ(log().open_step(), StepId{1});
      },
      Who::kOrdinaryUser);
  EXPECT_THAT(FilesBelow(OpenStepFolder(workspace())), ::testing::Not(IsEmpty()));
  MustCall(::chmod(steps.c_str(), 0700), "chmod");
  RunForked(
      [&] {
        OpenLog();
        EXPECT_TRUE(log().recovery().recovered);
        EXPECT_EQ(log().recovery().step, StepId{1});
        EXPECT_THAT(Steps(), IsEmpty());
      },
      Who::kOrdinaryUser);
  ExpectTree(before);
}

TEST_F(UndoRecovery, CR_03_AStepThatCouldNotBePromotedCanBeClosedLater) {
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        StartWith(test::SmallTree);
        const TreeSnapshot before = Snapshot();
        const std::string steps = workspace().store() + "/steps";
        ASSERT_OK(log().OpenStep({}));
        ChangeMuch();
        MustCall(::chmod(steps.c_str(), 0555), "chmod");
        EXPECT_FALSE(log().CloseStep().ok());
        MustCall(::chmod(steps.c_str(), 0700), "chmod");
        EXPECT_OK(log().CloseStep());
        RollBack();
        ExpectTree(before);
      },
      Who::kOrdinaryUser);
}

// A record is written before its operation, so a torn last record means that its operation never happened.
TEST_F(UndoRecovery, CR_04_ATornTailOfTheJournalIsDroppedAndTheRestRolledBack) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] { ChangeMuch(); });
  const std::string journal = JournalOfOpenStep();
  const uint64_t end = WrittenSize(journal);
  ASSERT_GT(end, 0u);
  const Fd file(MustCall(::open(journal.c_str(), O_WRONLY | O_CLOEXEC), "open"));
  const std::string torn = Noise(57);
  MustCall(::pwrite(file.get(), torn.data(), torn.size(), static_cast<off_t>((end + 7) / 8 * 8)),
           "write");

  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectTree(before);
}

// Harder than any crash: records of operations that did happen are gone. What the rest of the journal knows comes back,
// what it does not know stays, and nothing is made up.
class UndoTruncatedJournal : public UndoRecovery, public ::testing::WithParamInterface<int> {};

TEST_P(UndoTruncatedJournal, CR_04_ATruncatedJournalRestoresWhatItStillKnows) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "new"));
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Overwrite("run.sh", "new too"));
    EXPECT_OK(ops().Unlink("src/main.rs"));
  });
  const std::string journal = JournalOfOpenStep();
  const uint64_t size = WrittenSize(journal) * static_cast<uint64_t>(GetParam()) / 100;
  MustCall(::truncate(journal.c_str(), static_cast<off_t>(size)), "truncate");

  for (int open = 1; open <= 2; ++open) {
    SCOPED_TRACE(fmt::format("open {}", open));
    Result<std::unique_ptr<UndoLog>> opened = UndoLog::Open(paths(), options_);
    if (opened.ok()) {
      EXPECT_TRUE(open == 1 || !(*opened)->recovery().recovered)
          << "the second open has nothing to do";
    } else {
      EXPECT_CODE(opened, Code::kCorrupt);
    }
  }
  const TreeSnapshot now = Snapshot();
  EXPECT_THAT(Content("small.txt"), ::testing::AnyOf("hello world", "new"));
  EXPECT_THAT(Content("run.sh"), ::testing::AnyOf("#!/bin/sh\necho ok", "new too"));
  for (const char* deleted : {"medium.txt", "src/main.rs"}) {
    if (workspace().Exists(deleted))
      EXPECT_EQ(now.Find(deleted)->content, before.Find(deleted)->content) << deleted;
  }
  for (const char* untouched : {"large.bin", "empty.txt", "src/components/app.rs"}) {
    ASSERT_NE(now.Find(untouched), nullptr);
    EXPECT_EQ(now.Find(untouched)->content, before.Find(untouched)->content) << untouched;
  }
  if (GetParam() == 100) ExpectTree(before);
}

INSTANTIATE_TEST_SUITE_P(Percent, UndoTruncatedJournal, ::testing::Values(0, 10, 35, 60, 85, 100));

TEST_F(UndoRecovery, CR_05_AfterACleanEndThereIsNothingToRecover) {
  StartWith(test::SmallTree);
  InStep([&] { ChangeMuch(); });
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const TreeSnapshot after = Snapshot();
  CloseLog();
  ExpectNoOpenStepOnDisk();
  EXPECT_THAT(NamesIn(workspace().store() + "/steps"), ElementsAre("1", "2"));
  OpenLog();
  EXPECT_FALSE(log().recovery().recovered);
  EXPECT_EQ(log().recovery().step, std::nullopt);
  EXPECT_THAT(Steps(), SizeIs(2));
  ExpectTree(after);
}

TEST_F(UndoRecovery, CR_05_ACrashAfterTheCloseLosesNothing) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { ChangeMuch(); });
    DieNow();
  });
  const TreeSnapshot after = Snapshot();
  OpenLog();
  EXPECT_FALSE(log().recovery().recovered);
  ExpectTree(after);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRecovery, CR_06_ASecondOpenAfterRecoveryDoesNothing) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] { ChangeMuch(); });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  OpenLog();
  EXPECT_FALSE(log().recovery().recovered);
  EXPECT_THAT(log().recovery().rewind.changes, IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoRecovery, CR_07_AnEmptyInterruptedStepIsDiscarded) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([] {});
  OpenLog();
  EXPECT_THAT(log().recovery().rewind.changes, IsEmpty());
  EXPECT_THAT(Steps(), IsEmpty());
  ExpectNoOpenStepOnDisk();
  ExpectTree(before);
  OpenLog();
  EXPECT_FALSE(log().recovery().recovered);
  ExpectUndone([&] { ChangeMuch(); });
}

// Beyond the founding list.

TEST_F(UndoRecovery, WhatRecoveryTookBackCanBeRedone) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  CrashInStep([&] { ChangeMuch(); });
  const TreeSnapshot at_crash = Snapshot();
  OpenLog();
  ExpectTree(before);
  EXPECT_EQ(log().redo_depth(), 1u);
  RedoSteps();
  ExpectTree(at_crash);
  RollBack();
  ExpectTree(before);
}

// Nobody waits for a daemon's writes to end, so there is no sense in which they were interrupted.
TEST_F(UndoRecovery, AnInterruptedAmbientStepIsPromotedInsteadOfUndone) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    ChangeMuch();
    DieNow();
  });
  const TreeSnapshot after = Snapshot();
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectTree(after);
  ASSERT_THAT(Steps(), SizeIs(1));
  EXPECT_EQ(Steps()[0].id, StepId{-1});
  EXPECT_EQ(Steps()[0].kind, StepKind::kAmbient);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRecovery, WhatAPersonChangedAfterTheCrashIsKeptAndReported) {
  test::SmallTree(workspace().project());
  CrashInStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
    EXPECT_OK(ops().Overwrite("medium.txt", "by the step"));
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/file.txt", "by the step"));
    EXPECT_OK(ops().Unlink("run.sh"));
  });
  std::this_thread::sleep_for(kAfterTheHeartbeat);
  workspace().WriteFile("small.txt", "by a person");
  workspace().WriteFile("made/notes.txt", "by a person");
  workspace().WriteFile("run.sh", "by a person");

  OpenLog();
  const RewindReport& report = log().recovery().rewind;
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_EQ(Content("small.txt"), "by a person");
  EXPECT_EQ(Content("made/notes.txt"), "by a person");
  EXPECT_EQ(Content("run.sh"), "by a person");
  EXPECT_EQ(Content("medium.txt"), std::string(4096, 'x')) << "the rest is rolled back";
  EXPECT_FALSE(workspace().Exists("made/file.txt"));
  EXPECT_TRUE(HasConflict(report.conflicts, ConflictKind::kEdited, "small.txt"));
  EXPECT_TRUE(HasConflict(report.conflicts, ConflictKind::kOccupied, "run.sh"))
      << "another object has the name";
  EXPECT_THAT(report.kept, Contains("made"));
}

TEST_F(UndoRecovery, AKilledRollbackIsCompletedOrUndoneByTheNextOpen) {
  test::DeepTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  OpenLog();
  InStep([&] { EXPECT_OK(ops().RemoveTree("level1")); });
  const TreeSnapshot after = Snapshot();
  CloseLog();
  for (const auto delay : {0us, 200us, 500us, 1000us, 2000us, 4000us, 8000us}) {
    SCOPED_TRACE(delay.count());
    RunUntilDeath([&] {
      OpenLog();
      std::thread killer([delay] {
        std::this_thread::sleep_for(delay);
        DieNow();
      });
      if (log().redo_depth() == 0) {
        (void)log().Rollback(1);
      } else {
        (void)log().Redo(1);
      }
      killer.join();
    });
    OpenLog();
    const bool undone = test::Diff(before, Snapshot()).empty();
    if (!undone) EXPECT_TREE_EQ(after, Snapshot());
    EXPECT_EQ(Steps().size(), undone ? 0u : 1u);
    EXPECT_EQ(log().redo_depth(), undone ? 1u : 0u);
    CloseLog();
  }
  OpenLog();
  if (log().redo_depth() == 0) RollBack();
  ExpectTree(before);
}

TEST_F(UndoRecovery, TheStoreIsFreeAgainAfterItsOwnerDied) {
  test::SmallTree(workspace().project());
  CrashInStep([&] { EXPECT_CODE(UndoLog::Open(paths(), options_), Code::kLocked); });
  EXPECT_OK(UndoLog::Open(paths(), options_));
}

}  // namespace
}  // namespace sandglass::undo

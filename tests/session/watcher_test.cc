// What others do to a project while a session has it: seen at once, told, and never confused with what the world does itself
// (FW-01..12, and those of EB that need a watcher). The log, the kernel and the files are real; changes come through the interceptor,
// as a bridge makes them, or directly, as a person does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/json.h"
#include "session/watch/filesystem_watch.h"
#include "session/watch/folder_watch.h"
#include "session/watch/project_watch.h"
#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::session {
namespace {

using namespace std::chrono_literals;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using undo::Force;

constexpr auto kLongEnough = 20s;

// Everything that was told, in order. Thread-safe.
class Told {
 public:
  void operator()(const ExternalModification& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  // The first event that names the path; it must come.
  ExternalModification Await(const std::string& path) {
    std::unique_lock lock(mutex_);
    const auto names = [&](const ExternalModification& event) {
      return std::ranges::find(event.affected_paths, path) != event.affected_paths.end();
    };
    const auto found = [&] { return std::ranges::find_if(events_, names) != events_.end(); };
    if (!changed_.wait_for(lock, kLongEnough, found)) {
      ADD_FAILURE() << path << " was not told of, but " << events_.size() << " other events";
      return {};
    }
    return *std::ranges::find_if(events_, names);
  }
  ExternalModification AwaitWholeTree() {
    std::unique_lock lock(mutex_);
    const auto is_whole = [](const ExternalModification& event) {
      return event.extent == Extent::kWholeTree;
    };
    const auto found = [&] { return std::ranges::find_if(events_, is_whole) != events_.end(); };
    if (!changed_.wait_for(lock, kLongEnough, found)) {
      ADD_FAILURE() << "nothing was told of the whole tree";
      return {};
    }
    return *std::ranges::find_if(events_, is_whole);
  }
  std::set<std::string> Paths() const {
    const std::lock_guard lock(mutex_);
    std::set<std::string> paths;
    for (const ExternalModification& event : events_)
      paths.insert(event.affected_paths.begin(), event.affected_paths.end());
    return paths;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ExternalModification> events_;
};

class WatcherTest : public undo::UndoTest {
 protected:
  WatcherTest() {
    watch_options_.start_delay = 0ms;
    watch_options_.debounce = 20ms;
  }
  void TearDown() override {
    if (watch_) watch_->End();
    CloseLog();
  }

  // The log opens, and everything is watched.
  void StartWatching() {
    options_.external = test::Must(UndoPolicyFor(watch_options_.policy));
    watch_ = std::make_unique<ProjectWatch>(paths(), watch_options_, notices_,
                                            [this](const auto& event) { told_(event); });
    options_.observer = watch_.get();
    StartWith(test::SmallTree);
    BeginToWatch();
  }
  void BeginToWatch() {
    watch_->Begin(log(), options_, activity_,
                  [this](dev_t, ino_t inode) { return writer_ != 0 && inode == writer_; });
    AwaitState(WatchState::kReady);
  }
  void AwaitState(WatchState state) {
    const auto deadline = std::chrono::steady_clock::now() + kLongEnough;
    while (watch_->status().state != state && std::chrono::steady_clock::now() < deadline)
      ::usleep(1'000);
    ASSERT_EQ(watch_->status().state, state) << watch_->status().why;
  }

  // Whatever happened before this has been judged when it returns.
  void AwaitJudgement() {
    const std::string path = "zz-canary-" + std::to_string(canaries_++);
    workspace().WriteFile(path, "tweet");
    told_.Await(path);
  }
  // What was told but for the canaries.
  std::set<std::string> ToldPaths() {
    AwaitJudgement();
    std::set<std::string> paths = told_.Paths();
    std::erase_if(paths, [](const std::string& path) { return path.starts_with("zz-canary"); });
    return paths;
  }

  WatchOptions watch_options_;
  Notices notices_;
  Told told_;
  LogActivity activity_;
  ino_t writer_ = 0;  // that a process of the world has open
  std::unique_ptr<ProjectWatch> watch_;
  int canaries_ = 0;
};

// --- What others do.

TEST_F(WatcherTest, FW_01_EveryKindOfEditBetweenTwoStepsIsToldWithItsKind) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the world")); });

  workspace().WriteFile("small.txt", "by a person");
  EXPECT_TRUE(told_.Await("small.txt").kinds.Has(ExternalKind::kContent));
  told_.Forget();
  MustCall(::chmod(workspace().Path("small.txt").c_str(), 0600), "chmod");
  EXPECT_TRUE(told_.Await("small.txt").kinds.Has(ExternalKind::kMetadata));
  told_.Forget();
  workspace().WriteFile("new.tmp", "by an editor");
  MustCall(::rename(workspace().Path("new.tmp").c_str(), workspace().Path("small.txt").c_str()),
           "rename");
  EXPECT_TRUE(told_.Await("small.txt").kinds.Has(ExternalKind::kCreated));
  told_.Forget();
  MustCall(::unlink(workspace().Path("small.txt").c_str()), "unlink");
  EXPECT_TRUE(told_.Await("small.txt").kinds.Has(ExternalKind::kRemoved));
}

TEST_F(WatcherTest, EB_01_AnEditIsToldAtOnceWithItsBarrierAlsoWhileAStepIsOpen) {
  StartWatching();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("notes.txt", "by a person");
  const ExternalModification event = told_.Await("notes.txt");
  EXPECT_EQ(event.project, workspace().project());
  EXPECT_EQ(event.barrier, step);
  EXPECT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(notices_.Take(), Contains(HasSubstr("somebody else changed notes.txt")));

  const StepId open = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "2"));
    workspace().WriteFile("during.txt", "by a person");
    EXPECT_EQ(told_.Await("during.txt").barrier, log().open_step());
  });
  EXPECT_EQ(told_.Await("during.txt").barrier, open);
}

TEST_F(WatcherTest, EB_02_WhatWasToldStopsARollbackOfThatPathAndOfNoOther) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  InStep([&] { EXPECT_OK(ops().WriteNew("other.txt", "1")); });
  workspace().WriteFile("small.txt", "by a person");
  told_.Await("small.txt");
  RollBack(1);
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_EQ(Content("small.txt"), "by a person");
}

TEST_F(WatcherTest, WithTheWatcherDeadARollbackStillRefuses) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  watch_->End();
  workspace().WriteFile("small.txt", "by a person");
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_EQ(told_.size(), 0);
}

TEST_F(WatcherTest, FilesInFoldersThatWereJustMadeAreNotMissed) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  for (int i = 0; i < 20; ++i)
    workspace().WriteFile("made/" + std::to_string(i) + "/deep/er/file", "quickly");
  for (int i = 0; i < 20; ++i) told_.Await("made/" + std::to_string(i) + "/deep/er/file");
}

TEST_F(WatcherTest, AFolderThatWasRenamedIsWatchedUnderItsNewName) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("before/in/file", "1");
  told_.Await("before/in/file");
  MustCall(::rename(workspace().Path("before").c_str(), workspace().Path("after").c_str()),
           "rename");
  told_.Await("after");
  workspace().WriteFile("after/in/file", "2");
  told_.Await("after/in/file");
}

TEST_F(WatcherTest, OfAFolderThatIsMovedInWhatIsOlderIsNotToldOneByOne) {
  const std::string outside = workspace().root() + "/outside";
  workspace().WriteFile("../outside/in/file", "1");
  const int64_t made = test::Must(undo::StatAt(AT_FDCWD, (outside + "/in/file").c_str())).ctime_ns;
  while (StampingNow() <= made) ::usleep(1'000);
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  MustCall(::rename(outside.c_str(), workspace().Path("inside").c_str()), "rename");
  EXPECT_THAT(ToldPaths(), ElementsAre("inside"));
  workspace().WriteFile("inside/in/file", "2");
  told_.Await("inside/in/file");
}

TEST_F(WatcherTest, AFolderThatWasMovedOutIsNotWatchedAnyMore) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("leaves/in/file", "1");
  told_.Await("leaves/in/file");
  told_.Forget();
  const std::string outside = workspace().root() + "/outside";
  MustCall(::rename(workspace().Path("leaves").c_str(), outside.c_str()), "rename");
  told_.Await("leaves");
  told_.Forget();
  std::ofstream(outside + "/in/file") << "2";
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

// --- What the world does.

TEST_F(WatcherTest, FW_02_WhatTheWorldWritesIsNotTold) {
  StartWatching();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().WriteNew("born.txt", "1"));
    EXPECT_OK(ops().Mkdir("dir"));
    EXPECT_OK(ops().WriteNew("dir/file", "1"));
  });
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, EB_05_WritesOfALongStepAreNotToldWhileItIsOpen) {
  StartWatching();
  InStep([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_OK(ops().WriteNew("file" + std::to_string(i), "1"));
      if (i % 10 == 0) AwaitJudgement();
    }
    EXPECT_THAT(ToldPaths(), IsEmpty());
  });
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, FW_07_ThatAWriteIsTheWorldsOwnEndsWithItsStepAndNotAfterSomeTime) {
  StartWatching();
  for (int i = 0; i < 20; ++i) {
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step " + std::to_string(i))); });
    workspace().WriteFile("small.txt", "a person right after it, " + std::to_string(i));
    told_.Await("small.txt");
    told_.Forget();
  }
}

TEST_F(WatcherTest, FW_11_ChangesOfContentAndMetadataAreKnownAsTheWorldsOwn) {
  StartWatching();
  const auto work = [&] {
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().WriteAt("small.txt", 0, "2", undo::WriteVisibility::kUnseen));
    EXPECT_OK(ops().Append("small.txt", "3", undo::WriteVisibility::kAnnounced));
    EXPECT_OK(ops().TruncateTo("small.txt", 1));
    EXPECT_OK(ops().Chmod("small.txt", 0600));
    EXPECT_OK(ops().Chmod("src", 0700));
    EXPECT_OK(ops().SetMtime("small.txt", 1'000'000'000));
  };
  InStep(work);
  EXPECT_THAT(ToldPaths(), IsEmpty());
  RollBack();
  EXPECT_THAT(ToldPaths(), IsEmpty());
  RedoSteps(1, Force::kYes);
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, FW_12_ChangesOfNamesAreKnownAsTheWorldsOwn) {
  StartWatching();
  const auto work = [&] {
    EXPECT_OK(ops().Rename("src", "moved"));
    EXPECT_OK(ops().WriteNew("moved/new.txt", "1"));
    EXPECT_OK(ops().Rename("small.txt", "large.txt"));
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/one", "1"));
    EXPECT_OK(ops().Link("made/one", "made/two"));
    EXPECT_OK(ops().Symlink("one", "made/link"));
    EXPECT_OK(ops().Unlink("made/one"));
    EXPECT_OK(ops().Mkdir("passing"));
    EXPECT_OK(ops().WriteNew("passing/by", "1"));
    EXPECT_OK(ops().RemoveTree("passing"));
  };
  InStep(work);
  EXPECT_THAT(ToldPaths(), IsEmpty());
  RollBack();
  EXPECT_THAT(ToldPaths(), IsEmpty());
  RedoSteps(1, Force::kYes);
  EXPECT_THAT(ToldPaths(), IsEmpty());
  InStep([&] { EXPECT_OK(ops().RemoveTree("moved")); });
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

// The events of all three steps are judged together, in the middle of the third.
TEST_F(WatcherTest, AFolderThatIsRemovedAndMadeAgainIsTheWorldsOwn) {
  StartWatching();
  auto busy = std::make_unique<LogActivity::Busy>(activity_);
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/file", "1"));
    EXPECT_OK(ops().Mkdir("other"));
    EXPECT_OK(ops().WriteNew("other/file", "1"));
  });
  InStep([&] { EXPECT_OK(ops().RemoveTree("made")); });
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().Rename("other", "moved"));
    EXPECT_OK(ops().Mkdir("other"));
    busy.reset();
    EXPECT_THAT(ToldPaths(), IsEmpty());
  });
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, AStepThatIsAbortedLeavesNothingToTell) {
  StartWatching();
  for (const auto pause : {false, true}) {
    ASSERT_OK(log().OpenStep({.label = "denied"}));
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().Rename("src", "moved"));
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/one", "1"));
    if (pause) EXPECT_THAT(ToldPaths(), IsEmpty());
    ASSERT_OK(log().AbortStep());
    EXPECT_THAT(ToldPaths(), IsEmpty()) << pause;
  }
}

TEST_F(WatcherTest, AnAmbientWriteIsTheWorldsOwn) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  EXPECT_OK(ops().Overwrite("small.txt", "2"));
  EXPECT_OK(ops().WriteNew("ambient.txt", "2"));
  EXPECT_THAT(ToldPaths(), IsEmpty());
  ASSERT_OK(log().CloseAmbientStep());
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, WhatALiveWriterWritesAfterItsStepIsTheWorldsOwn) {
  StartWatching();
  const Fd kept = test::Must(ops().OpenFile("small.txt", O_WRONLY, undo::WriteVisibility::kUnseen));
  ASSERT_OK(log().CloseAmbientStep());
  writer_ = StatOf("small.txt").st_ino;
  MustCall(static_cast<int>(::pwrite(kept.get(), "late", 4, 0)), "write");
  EXPECT_THAT(ToldPaths(), IsEmpty());
  writer_ = 0;
  MustCall(static_cast<int>(::pwrite(kept.get(), "other", 5, 0)), "write");
  told_.Await("small.txt");
}

TEST_F(WatcherTest, NothingIsFinalWhileTheLogIsAtWork) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  auto busy = std::make_unique<LogActivity::Busy>(activity_);
  workspace().WriteFile("small.txt", "by a person");
  ::usleep(200'000);  // several rounds of the judge, of which none may tell
  EXPECT_EQ(told_.size(), 0);
  busy.reset();
  told_.Await("small.txt");
}

// --- By the other means.

class FilesystemWatcherTest : public WatcherTest {
 protected:
  void SetUp() override {
    const Fd root(MustCall(::open(workspace().project().c_str(), O_RDONLY | O_CLOEXEC), "open"));
    const Exclusions exclusions = test::Must(Exclusions::Load(root.get(), watch_options_, {}));
    PendingChanges pending;
    const auto watch =
        FilesystemWatch::Open(root.get(), workspace().project(), exclusions, pending);
    if (!watch.ok()) GTEST_SKIP() << "fanotify: " << watch.error().message();
    watch_options_.means = WatchMeans::kFilesystem;
  }
};

TEST_F(FilesystemWatcherTest, FW_01_EveryKindOfEditIsTold) {
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the world")); });
  workspace().WriteFile("small.txt", "by a person");
  told_.Await("small.txt");
  told_.Forget();
  MustCall(::chmod(workspace().Path("small.txt").c_str(), 0600), "chmod");
  told_.Await("small.txt");
  told_.Forget();
  MustCall(::unlink(workspace().Path("small.txt").c_str()), "unlink");
  told_.Await("small.txt");
  workspace().WriteFile("made/deep/file", "1");
  told_.Await("made/deep/file");
}

TEST_F(FilesystemWatcherTest, FW_12_WhatTheWorldDoesIsNotTold) {
  StartWatching();
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/one", "1"));
    EXPECT_OK(ops().WriteNew("made/two", "1"));
    EXPECT_OK(ops().Unlink("made/one"));
    EXPECT_OK(ops().Unlink("src/main.rs"));
    EXPECT_OK(ops().Rename("made", "moved"));
    EXPECT_OK(ops().Rename("src", "source"));
    EXPECT_THAT(ToldPaths(), IsEmpty());
  });
  EXPECT_THAT(ToldPaths(), IsEmpty());
  RollBack();
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

// --- Options.

TEST_F(WatcherTest, FW_03_ADisabledWatcherStaysSilent) {
  watch_options_.watching = Watching::kOff;
  watch_ = std::make_unique<ProjectWatch>(paths(), watch_options_, notices_,
                                          [this](const auto& event) { told_(event); });
  options_.observer = watch_.get();
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("small.txt", "by a person");
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "2")); });
  EXPECT_EQ(told_.size(), 0);
  EXPECT_THAT(notices_.Take(), IsEmpty());
  EXPECT_THAT(Barriers(), SizeIs(1)) << "undo finds it all the same";
}

TEST_F(WatcherTest, FW_04_ExcludedPathsAreNotTold) {
  watch_options_.exclude_patterns.push_back("*.swp");
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("node_modules/package/index.js", "1");
  workspace().WriteFile("sub/node_modules/package/index.js", "1");
  workspace().WriteFile(".git/objects/00/object", "1");
  workspace().WriteFile(".git/logs/HEAD", "1");
  workspace().WriteFile(".git/refs/heads/main", "1");
  workspace().WriteFile(".small.txt.swp", "1");
  EXPECT_THAT(ToldPaths(), ElementsAre(".git", "sub"));
  workspace().WriteFile(".git/config", "1");
  told_.Await(".git/config");
}

TEST_F(WatcherTest, WhatGitIgnoresIsNotToldIfThatIsWanted) {
  workspace().WriteFile(".gitignore", "*.o\n");
  watch_options_.gitignore = undo::GitignoreMode::kSkipIgnored;
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("main.o", "1");
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, FW_05_WhatHappensInTheStoreIsNotTold) {
  StartWatching();
  for (int i = 0; i < 5; ++i)
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", std::to_string(i))); });
  std::ofstream(workspace().store() + "/stray") << "1";
  EXPECT_THAT(ToldPaths(), IsEmpty());
}

TEST_F(WatcherTest, FW_06_WithoutAStepThereIsNoBarrier) {
  StartWatching();
  workspace().WriteFile("small.txt", "by a person");
  EXPECT_EQ(told_.Await("small.txt").barrier, std::nullopt);
  EXPECT_THAT(Barriers(), IsEmpty());
}

TEST_F(WatcherTest, FW_08_EachProjectTellsOfItsOwn) {
  StartWatching();
  const test::TempWorkspace second;
  undo::UndoOptions undo;
  Told told;
  ProjectWatch watch({.project = second.project(), .store = second.store()}, watch_options_,
                     notices_, [&](const auto& event) { told(event); });
  undo.observer = &watch;
  const auto log =
      test::Must(undo::UndoLog::Open({.project = second.project(), .store = second.store()}, undo));
  watch.Begin(*log, undo, activity_, {});
  while (watch.status().state != WatchState::kReady) ::usleep(1'000);
  workspace().WriteFile("of-the-first", "1");
  second.WriteFile("of-the-second", "1");
  EXPECT_EQ(told_.Await("of-the-first").project, workspace().project());
  EXPECT_EQ(told.Await("of-the-second").project, second.project());
  EXPECT_THAT(told_.Paths(), Not(Contains("of-the-second")));
  EXPECT_THAT(told.Paths(), Not(Contains("of-the-first")));
  watch.End();
}

TEST_F(WatcherTest, EB_08_UnderPolicyWarnAnEditIsToldAndBlocksNothing) {
  watch_options_.policy = WatchPolicy::kWarn;
  StartWatching();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  workspace().WriteFile("notes.txt", "by a person");
  EXPECT_EQ(told_.Await("notes.txt").barrier, std::nullopt);
  EXPECT_THAT(Barriers(), IsEmpty());
  RollBack();
}

TEST_F(WatcherTest, EB_09_PolicyLockIsRefusedWithTheReason) {
  const auto policy = UndoPolicyFor(test::Must(ParseWatchPolicy("lock")));
  ASSERT_CODE(policy, Code::kUnsupported);
  EXPECT_THAT(policy.error().message(), HasSubstr("choose the policy barrier"));
  EXPECT_CODE(ParseWatchPolicy("locked"), Code::kInvalid);
}

// --- Limits.

TEST_F(WatcherTest, EB_07_AWatcherThatLosesTrackWarnsAndAssumesABarrierForEverything) {
  watch_options_.pending = {.max_paths = 10, .max_bytes = 1 << 20};
  StartWatching();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  for (int i = 0; i < 100; ++i) workspace().WriteFile("many" + std::to_string(i), "1");
  EXPECT_EQ(told_.AwaitWholeTree().barrier, step);
  EXPECT_THAT(notices_.Take(), Contains(HasSubstr("nobody can tell")));
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  const auto forced = log().Rollback(1, Force::kYes);
  ASSERT_OK(forced);
  EXPECT_THAT(forced->conflicts, Not(IsEmpty()));
}

TEST_F(WatcherTest, EB_07_AFullQueueOfTheKernelIsNoticedAndNewFoldersAreFoundAfterIt) {
  const WatchOptions watch;
  const Fd root(MustCall(::open(workspace().project().c_str(), O_RDONLY | O_CLOEXEC), "open"));
  const Exclusions exclusions = test::Must(Exclusions::Load(root.get(), watch, {}));
  PendingChanges pending;
  FolderWatch folders = test::Must(FolderWatch::Open(root.get(), exclusions, pending));
  workspace().WriteFile("a", "");
  workspace().WriteFile("b", "");
  const std::string limit =
      test::Must(ReadFileAt(AT_FDCWD, "/proc/sys/fs/inotify/max_queued_events", 64));
  for (int i = 0; i <= std::stoi(limit) / 2; ++i) {
    for (const char* name : {"a", "b"})
      MustCall(::chmod(workspace().Path(name).c_str(), i % 2 == 0 ? 0600 : 0644), "chmod");
  }
  workspace().MakeDir("unheard/of");
  EXPECT_OK(folders.Drain());
  ASSERT_TRUE(pending.Await());
  EXPECT_EQ(pending.TakeWhenQuiet(0ms)->extent, Extent::kWholeTree);
  while (folders.WalkOn(10) == FolderWatch::Walk::kGoesOn) {
  }
  EXPECT_EQ(folders.folders(), 3);
  workspace().WriteFile("unheard/of/file", "1");
  EXPECT_OK(folders.Drain());
  EXPECT_THAT(pending.TakeWhenQuiet(0ms)->notes, Contains(::testing::Key("unheard/of/file")));
}

TEST_F(WatcherTest, ItEndsAtOnceWhateverItIsAt) {
  watch_options_.start_delay = 1h;
  watch_ = std::make_unique<ProjectWatch>(paths(), watch_options_, notices_, TellExternal());
  options_.observer = watch_.get();
  StartWith(test::SmallTree);
  watch_->Begin(log(), options_, activity_, {});
  EXPECT_EQ(watch_->status().state, WatchState::kWaiting);
  watch_->End();
}

}  // namespace
}  // namespace sandglass::session

// Damage to the store: one byte at a time, everywhere, and files that do not belong there.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/pack.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The rollback is refused or exact; whatever is refused touches nothing.
enum class Damage { kFlip, kTruncate };
enum class What { kJournal, kKeptData };

class UndoDamage : public ::testing::TestWithParam<std::tuple<What, Damage>> {
 protected:
  static constexpr uint64_t kStride = 97;

  // A project with a log of its own for each place of damage.
  struct Case {
    TempWorkspace workspace;
    TreeSnapshot before, after;

    UndoPaths paths() const { return {.project = workspace.project(), .store = workspace.store()}; }
  };

  static UndoOptions Options() {
    UndoOptions options;
    options.compression = Compression::kOff;
    return options;
  }

  static void Change(ProjectOps& ops) {
    EXPECT_OK(ops.WriteAt("a.txt", 0, "changed", WriteVisibility::kUnseen));
    EXPECT_OK(ops.Overwrite("b.txt", "changed"));
    EXPECT_OK(ops.Rename("d/moved.txt", "moved.txt"));
    EXPECT_OK(ops.WriteNew("new.txt", "new"));
    EXPECT_OK(ops.Unlink("gone.txt"));
  }

  static void Build(Case& c) {
    c.workspace.WriteFile("a.txt", Noise(700, 1));
    c.workspace.WriteFile("b.txt", Noise(500, 2));
    c.workspace.WriteFile("d/moved.txt", "moved");
    c.workspace.WriteFile("gone.txt", Noise(300, 3));
    test::AgeTree(c.workspace.project());
    c.before = c.workspace.Snapshot();
  }

  static std::vector<std::string> Targets(const std::string& folder) {
    std::vector<std::string> files = FilesBelow(folder);
    const std::string journal = folder + "/journal";
    if (std::get<0>(GetParam()) == What::kJournal) return {journal};
    std::erase(files, journal);
    return files;
  }

  static void Apply(const std::string& path, uint64_t offset) {
    if (std::get<1>(GetParam()) == Damage::kFlip) {
      FlipByte(path, offset);
    } else {
      MustCall(::truncate(path.c_str(), static_cast<off_t>(offset)), "truncate");
    }
  }

  // Each path is as it was before or after the step, or it is reported as damaged; nothing else appeared.
  static void ExpectNoGarbage(const Case& c, const std::vector<Conflict>& reported) {
    const auto same = [](const test::EntrySnapshot* known, const test::EntrySnapshot& entry) {
      return known != nullptr && known->size == entry.size && known->content == entry.content;
    };
    const TreeSnapshot now = c.workspace.Snapshot();
    for (const test::EntrySnapshot& entry : now.entries()) {
      if (!S_ISREG(entry.mode)) continue;
      if (same(c.before.Find(entry.path), entry) || same(c.after.Find(entry.path), entry)) continue;
      EXPECT_TRUE(HasConflict(reported, ConflictKind::kCorrupt, entry.path))
          << entry.path << " holds something made up";
    }
    for (const char* path : {"a.txt", "b.txt"})
      EXPECT_NE(now.Find(path), nullptr) << path << " is lost";
    EXPECT_TRUE(now.Find("moved.txt") != nullptr || now.Find("d/moved.txt") != nullptr);
  }

  // The number of bytes worth damaging in target `index`, or 0 when there is no such target.
  static uint64_t Extent(const std::string& folder, size_t index) {
    const std::vector<std::string> targets = Targets(folder);
    return index < targets.size() ? std::min<uint64_t>(FileSize(targets[index]), 32 * 1024) : 0;
  }
};

TEST_P(UndoDamage, OfAClosedStepIsRefusedOrHarmless) {
  int cases = 0;
  int refused = 0;
  for (size_t index = 0; index < 4; ++index) {
    for (uint64_t offset = 0, extent = 1; offset < extent; offset += kStride) {
      Case c;
      Build(c);
      {
        const auto log = Must(UndoLog::Open(c.paths(), Options()));
        ProjectOps ops(*log, c.workspace.project());
        ASSERT_OK(log->OpenStep({}));
        Change(ops);
        ASSERT_OK(log->CloseStep());
      }
      c.after = c.workspace.Snapshot();
      const std::string folder = StepFolder(c.workspace, StepId{1});
      extent = Extent(folder, index);
      if (offset >= extent) break;
      const std::string target = Targets(folder)[index];
      SCOPED_TRACE(fmt::format("{} at {}", target, offset));
      Apply(target, offset);
      ++cases;

      const auto log = UndoLog::Open(c.paths(), Options());
      EXPECT_TREE_EQ(c.after, c.workspace.Snapshot());
      if (!log.ok()) {
        EXPECT_CODE(log, Code::kCorrupt);
        ++refused;
        continue;
      }
      EXPECT_OK((*log)->History());
      if (const auto rolled_back = (*log)->Rollback(1); rolled_back.ok()) {
        EXPECT_TREE_EQ(c.before, c.workspace.Snapshot());
      } else {
        ++refused;
        EXPECT_THAT(rolled_back.error().code(), AnyOf(Code::kCorrupt, Code::kConflict));
        EXPECT_TREE_EQ(c.after, c.workspace.Snapshot());
        const auto forced = (*log)->Rollback(1, Force::kYes);
        ExpectNoGarbage(c, forced.ok() ? forced->conflicts : std::vector<Conflict>{});
      }
      if (HasFailure()) return;  // one report says enough
    }
  }
  EXPECT_GT(cases, 5);
  EXPECT_GT(refused, 0) << "no damage was ever noticed";
}

TEST_P(UndoDamage, OfAnInterruptedStepLosesNothing) {
  int cases = 0;
  for (size_t index = 0; index < 4; ++index) {
    for (uint64_t offset = 0, extent = 1; offset < extent; offset += kStride) {
      Case c;
      Build(c);
      RunUntilDeath([&] {
        const auto log = Must(UndoLog::Open(c.paths(), Options()));
        ProjectOps ops(*log, c.workspace.project());
        ASSERT_OK(log->OpenStep({}));
        Change(ops);
        DieNow();
      });
      c.after = c.workspace.Snapshot();
      const std::string folder = OpenStepFolder(c.workspace);
      // The journal of an open step is longer than what is written in it.
      extent = std::min<uint64_t>(Extent(folder, index), 4096);
      if (offset >= extent) break;
      const std::string target = Targets(folder)[index];
      SCOPED_TRACE(fmt::format("{} at {}", target, offset));
      Apply(target, offset);
      ++cases;

      const auto log = UndoLog::Open(c.paths(), Options());
      if (!log.ok()) EXPECT_CODE(log, Code::kCorrupt);
      ExpectNoGarbage(c, log.ok() ? (*log)->recovery().rewind.conflicts : std::vector<Conflict>{});
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(cases, 5);
}

INSTANTIATE_TEST_SUITE_P(, UndoDamage,
                         ::testing::Combine(::testing::Values(What::kJournal, What::kKeptData),
                                            ::testing::Values(Damage::kFlip, Damage::kTruncate)),
                         [](const auto& info) {
                           const bool journal = std::get<0>(info.param) == What::kJournal;
                           const bool flip = std::get<1>(info.param) == Damage::kFlip;
                           return std::string(flip ? "Flipped" : "Truncated") +
                                  (journal ? "Journal" : "KeptData");
                         });

class UndoGarbageStore : public UndoTest {};

TEST_F(UndoGarbageStore, StrangeFilesInTheStoreAreLeftOutOfIt) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  const TreeBuilder store(workspace().store());
  store.File("steps/not a step", "x");
  store.Dir("steps/abc");
  store.Dir("steps/99999999999999999999999");
  store.Symlink("steps/7", "../../project");
  OpenLog();
  ASSERT_FALSE(Steps().empty());
  EXPECT_EQ(Steps().back().id, StepId{1});
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

// What was under way and cannot be read: nobody can take it back, but nothing that it kept is lost.
class UndoUnreadable : public UndoTest {
 protected:
  static constexpr uint64_t kInHeader = 20;

  void SetUp() override { test::SmallTree(workspace().project()); }
  // A killed step that holds the only copy of small.txt, "hello world".
  void Interrupt() {
    RunUntilDeath([&] {
      OpenLog();
      ASSERT_OK(log().OpenStep({}));
      EXPECT_OK(ops().Unlink("small.txt"));
      DieNow();
    });
  }
  std::string journal() const { return OpenStepFolder(workspace()) + "/journal"; }
  std::string damaged() const { return workspace().store() + "/damaged"; }
  bool IsKept(std::string_view bytes) const {
    const auto files = FilesBelow(damaged());
    return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      std::ifstream in(file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {}).find(bytes) != std::string::npos;
    });
  }
  void ExpectSetAside(std::string_view folder, std::string_view kept) {
    OpenLog();
    log().WaitForBackground();
    EXPECT_FALSE(log().recovery().recovered);
    const auto& conflicts = log().recovery().rewind.conflicts;
    ASSERT_EQ(conflicts.size(), 1u);
    EXPECT_EQ(conflicts[0].kind, ConflictKind::kCorrupt);
    EXPECT_THAT(conflicts[0].detail, HasSubstr(fmt::format("damaged/{}-", folder)));
    EXPECT_TRUE(IsKept(kept));
    InStep([&] { EXPECT_OK(ops().Overwrite("medium.txt", "the store goes on")); });
    RollBack();
  }
};

TEST_F(UndoUnreadable, AnInterruptedStepIsSetAsideWithWhatItKept) {
  Interrupt();
  FlipByte(journal(), kInHeader);
  ExpectSetAside("in_progress", "hello world");
}

TEST_F(UndoUnreadable, AnInterruptedStepWithoutItsRecordsIsSetAsideWithWhatItKept) {
  for (const off_t size : {0, 100, 4096}) {
    SCOPED_TRACE(size);
    workspace().WriteFile("small.txt", "hello world");
    CloseLog();
    Interrupt();
    MustCall(::truncate(journal().c_str(), size), "truncate");
    ExpectSetAside("in_progress", "hello world");
  }
}

TEST_F(UndoUnreadable, AnInterruptedRewindIsSetAsideWithWhatItKept) {
  OpenLog();
  InStep([&] { EXPECT_OK(ops().WriteNew("made.txt", "made by the step")); });
  RollBack();
  CloseLog();
  // Killed before the rename that makes it happen.
  const std::string rewind = workspace().store() + "/wal/rewind";
  MustCall(::rename((workspace().store() + "/redo/1").c_str(), rewind.c_str()), "rename");
  FlipByte(rewind + "/journal", kInHeader);
  ExpectSetAside("rewind", "made by the step");
  EXPECT_TRUE(log().recovery().interrupted_rewind);
}

TEST_F(UndoUnreadable, WhatWasKilledBeforeItBeganIsDropped) {
  OpenLog();
  CloseLog();
  for (const char* name : {"in_progress", "rewind"}) {
    for (const int bytes : {-1, 0, 100, 64 << 10}) {  // no journal, and one that was still blank
      SCOPED_TRACE(fmt::format("{} with {}", name, bytes));
      const TreeBuilder wal(workspace().store() + "/wal");
      wal.Dir(name);
      if (bytes >= 0)
        wal.File(fmt::format("{}/journal", name), std::string(static_cast<size_t>(bytes), '\0'));
      OpenLog();
      EXPECT_THAT(Lines(log().recovery().rewind.conflicts), ElementsAre());
      CloseLog();
      EXPECT_THAT(NamesIn(workspace().store() + "/wal"), ElementsAre());
      EXPECT_THAT(NamesIn(damaged()), ElementsAre());
    }
  }
}

// Wherever the descriptors run out, the store is as before or the step is taken back.
TEST_F(UndoUnreadable, AnOpenWithoutEnoughDescriptorsGivesNothingUp) {
  options_.compression = Compression::kOff;
  options_.heartbeat = std::chrono::milliseconds(0);
  const TreeSnapshot before = Snapshot();
  Interrupt();
  RunForked([&] {
    const auto lowest = static_cast<rlim_t>(MustCall(::dup(0), "dup"));
    rlimit few{};
    MustCall(::getrlimit(RLIMIT_NOFILE, &few), "getrlimit");
    bool opened = false;
    for (rlim_t limit = lowest; !opened && limit < lowest + 100; ++limit) {
      few.rlim_cur = limit;
      MustCall(::setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
      const auto log = UndoLog::Open(paths(), options_);
      if (!log.ok()) continue;
      opened = true;
      EXPECT_TRUE((*log)->recovery().recovered) << limit;
      EXPECT_THAT(Lines((*log)->recovery().rewind.conflicts), ElementsAre()) << limit;
    }
    EXPECT_TRUE(opened);
  });
  ExpectTree(before);
  EXPECT_THAT(NamesIn(damaged()), ElementsAre());
}

TEST_F(UndoGarbageStore, ADamagedCopyDoesNotCostWhatIsThere) {
  StartWith([](const std::string& root) {
    TreeBuilder(root).File("cut.bin", Noise(400'000, 1));
    TreeBuilder(root).File("flipped.bin", Noise(400'000, 2));
  });
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteAt("cut.bin", 0, "new", WriteVisibility::kUnseen));
    EXPECT_OK(ops().WriteAt("flipped.bin", 0, "new", WriteVisibility::kUnseen));
  });
  const TreeSnapshot after = Snapshot();
  const std::string blobs = StepFolder(workspace(), step) + "/blobs";
  MustCall(::truncate((blobs + "/0").c_str(), 100), "truncate");
  const bool has_checksum = !log().abilities().reflinks;  // a clone has none
  if (has_checksum) FlipByte(blobs + "/1", 300'000);
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  const RewindReport forced = RollBack(1, Force::kYes);
  EXPECT_TRUE(HasConflict(forced.conflicts, ConflictKind::kCorrupt, "cut.bin"));
  EXPECT_EQ(HasConflict(forced.conflicts, ConflictKind::kCorrupt, "flipped.bin"), has_checksum);
  for (const char* path : {"cut.bin", "flipped.bin"}) {
    if (path == std::string("flipped.bin") && !has_checksum) continue;
    EXPECT_EQ(Snapshot().Find(path)->size, after.Find(path)->size) << path;
    EXPECT_EQ(Snapshot().Find(path)->content, after.Find(path)->content) << path;
  }
}

// Both forms of a pack, as a power cut may leave them.
class UndoTwoPacks : public UndoTest {
 protected:
  void SetUp() override {
    options_.compression = Compression::kOff;
    StartWith(test::SmallTree);
    before_ = Snapshot();
    const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
    folder_ = StepFolder(workspace(), step);
    CloseLog();
  }
  // Puts what `raw` compresses to beside the pack.
  void Compress(const std::string& raw) const {
    const Fd from(MustCall(::open(raw.c_str(), O_RDONLY | O_CLOEXEC), "open " + raw));
    const std::string packz = folder_ + "/packz";
    const Fd to(MustCall(::open(packz.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open packz"));
    Must(WriteCompressedPack(from.get(), FileSize(raw), to.get()));
  }
  void ExpectExactWithout(const char* form) {
    OpenLog();
    EXPECT_FALSE(NameExists(AT_FDCWD, (folder_ + "/" + form).c_str()));
    RollBack();
    ExpectTree(before_);
  }

  TreeSnapshot before_;
  std::string folder_;
};

TEST_F(UndoTwoPacks, ACompressedOneWithTheSameBytesReplacesTheRawOne) {
  Compress(folder_ + "/pack");
  ExpectExactWithout("pack");
}

TEST_F(UndoTwoPacks, ARawOneThatWasCutOffGoes) {
  Compress(folder_ + "/pack");
  MustCall(::truncate((folder_ + "/pack").c_str(), 3), "truncate");
  ExpectExactWithout("pack");
}

TEST_F(UndoTwoPacks, AnEmptyCompressedOneGoes) {
  TreeBuilder(folder_).File("packz", "");
  ExpectExactWithout("packz");
}

TEST_F(UndoTwoPacks, ACompressedOneWithOtherBytesGoes) {
  TreeBuilder(workspace().root()).File("other", "jello world");
  Compress(workspace().root() + "/other");
  ExpectExactWithout("packz");
}

TEST_F(UndoTwoPacks, ACompressedOneWithADamagedChunkGoes) {
  Compress(folder_ + "/pack");
  FlipByte(folder_ + "/packz", 0);
  ExpectExactWithout("packz");
}

TEST_F(UndoGarbageStore, AFolderThatIsNoStoreIsNotTakenForOne) {
  test::SmallTree(workspace().project());
  const TreeBuilder store(workspace().store());
  store.File("thesis.txt", "somebody's only copy");
  const auto opened = UndoLog::Open(paths(), options_);
  struct stat st;
  EXPECT_EQ(::stat((workspace().store() + "/thesis.txt").c_str(), &st), 0);
}

TEST_F(UndoGarbageStore, DiscardOfAFolderThatIsNoStoreDeletesNothing) {
  test::SmallTree(workspace().project());
  TreeBuilder(workspace().store()).File("thesis.txt", "somebody's only copy");
  (void)UndoLog::Discard(paths());
  struct stat st;
  EXPECT_EQ(::stat((workspace().store() + "/thesis.txt").c_str(), &st), 0);
}

TEST_F(UndoGarbageStore, AVersionFileDoesNotMakeAFolderAStore) {
  for (const char* version : {"1.4.2\n", "3\n", "garbage"}) {
    for (const char* project : {"", "not json", "{\"name\": \"a thesis\"}"}) {
      SCOPED_TRACE(std::string(version) + project);
      const TempWorkspace fresh;
      const TreeBuilder folder(fresh.store());
      folder.Dir("objects");
      folder.File("thesis.txt", "somebody's only copy");
      folder.File("version", version);
      folder.File("project", project);
      folder.File("objects/kept.txt", "theirs too");
      folder.File("lock", "theirs");
      folder.File("probe.a", "and this");
      const TreeSnapshot before = Must(TreeSnapshot::Capture(fresh.store()));
      EXPECT_CODE(UndoLog::Discard({.project = fresh.project(), .store = fresh.store()}),
                  Code::kInvalid);
      EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(fresh.store())));
    }
  }
}

TEST_F(UndoGarbageStore, AStoreBesideOtherThingsIsDiscardedAlone) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  TreeBuilder(workspace().store()).File("thesis.txt", "somebody's only copy");
  EXPECT_OK(UndoLog::Discard(paths()));
  EXPECT_THAT(NamesIn(workspace().store()), ElementsAre("lock", "thesis.txt", "version"));
}

TEST_F(UndoGarbageStore, ALockThatCannotBeOpenedIsNoOtherSandglass) {
  StartWith(test::SmallTree);
  CloseLog();
  ASSERT_EQ(::unlink((workspace().store() + "/lock").c_str()), 0);
  TreeBuilder(workspace().store()).Dir("lock");
  const Status discarded = UndoLog::Discard(paths());
  ASSERT_FALSE(discarded.ok());
  EXPECT_NE(discarded.error().code(), Code::kLocked);
}

TEST_F(UndoGarbageStore, DiscardFollowsNoSymlinkOutOfTheStore) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  const TreeSnapshot after = Snapshot();
  TreeBuilder(workspace().store()).Symlink("steps/link", "../../project");
  EXPECT_OK(UndoLog::Discard(paths()));
  ExpectTree(after);
}

TEST_F(UndoGarbageStore, AFolderOfAnchorsThatLeadsOutOfTheStoreIsDamage) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const std::string folder = StepFolder(workspace(), step) + "/anchors/0";
  struct stat st{};
  if (::stat(folder.c_str(), &st) != 0) GTEST_SKIP() << "nothing is anchored here";
  CloseLog();
  const std::string outside = workspace().store() + "/../outside";
  ASSERT_EQ(::rename(folder.c_str(), outside.c_str()), 0);
  ASSERT_EQ(::symlink(outside.c_str(), folder.c_str()), 0);
  OpenLog();
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  EXPECT_CODE(log().Restore(step, std::vector<std::string>{"small.txt"}), Code::kCorrupt);
  EXPECT_FALSE(log().Rollback(1, Force::kYes).ok() && Content("small.txt") == "hello world");
  EXPECT_THAT(NamesIn(outside), ElementsAre("0"));
}

// What an anchor looks like is compared when it is back, so this rollback has to turn back midway.
TEST_F(UndoGarbageStore, AnchorsChangedInTheStoreAreAllToldAndNothingIsChanged) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    for (const char* name : {"a", "b", "c"}) EXPECT_OK(ops().Create(name));
  });
  const StepId removal = InStep([&] {
    for (const char* name : {"a", "b", "c"}) EXPECT_OK(ops().Unlink(name));
  });
  ASSERT_NE(step, removal);
  const std::string folder = StepFolder(workspace(), removal) + "/anchors/0";
  if (!NameExists(AT_FDCWD, folder.c_str())) GTEST_SKIP() << "nothing is anchored here";
  for (const char* slot : {"0", "2"}) std::ofstream(folder + "/" + slot) << "somebody's bytes";
  const TreeSnapshot after = Snapshot();
  const auto refused = log().Rollback(1);
  EXPECT_CODE(refused, Code::kCorrupt);
  EXPECT_THAT(refused.error().message(), AllOf(HasSubstr("corrupt   a:"), HasSubstr("corrupt   c:"),
                                               Not(HasSubstr("corrupt   b:"))));
  ExpectTree(after);
  const RewindReport forced = Must(log().Rollback(1, Force::kYes));
  EXPECT_EQ(forced.conflicts.size(), 2U);
  EXPECT_EQ(Content("b"), "");
  EXPECT_EQ(Content("a"), "somebody's bytes");
}

TEST_F(UndoGarbageStore, AnAnchorThatIsAnotherFileNowGoesBackWhenTheRollbackIsRefused) {
  StartWith(test::SmallTree);
  const StepId removal = InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const std::string anchor = StepFolder(workspace(), removal) + "/anchors/0/0";
  if (!NameExists(AT_FDCWD, anchor.c_str())) GTEST_SKIP() << "nothing is anchored here";
  std::ofstream(anchor + ".new") << "jello world";
  ASSERT_EQ(::rename((anchor + ".new").c_str(), anchor.c_str()), 0);
  const TreeSnapshot after = Snapshot();
  for (int i = 0; i < 2; ++i) {
    const auto refused = log().Rollback(1);
    EXPECT_CODE(refused, Code::kCorrupt);
    EXPECT_THAT(refused.error().message(), HasSubstr("corrupt   small.txt:"));
    ExpectTree(after);
    EXPECT_TRUE(NameExists(AT_FDCWD, anchor.c_str()));
  }
  EXPECT_EQ(Must(log().Rollback(1, Force::kYes)).conflicts.size(), 1U);
  EXPECT_EQ(Content("small.txt"), "jello world");
}

TEST_F(UndoGarbageStore, NoFileOfAStepIsFollowedOutOfTheStore) {
  StartWith(test::SmallTree);
  const StepId step =
      InStep([&] { EXPECT_OK(ops().WriteAt("small.txt", 0, "J", WriteVisibility::kAnnounced)); });
  log().WaitForBackground();
  CloseLog();
  const TreeBuilder folder(StepFolder(workspace(), step));
  const std::string packz = StepFolder(workspace(), step) + "/packz";
  struct stat st{};
  if (::stat(packz.c_str(), &st) == 0) {
    ASSERT_EQ(::rename(packz.c_str(), (workspace().store() + "/../packz").c_str()), 0);
    folder.Symlink("packz", "../../../packz");
  } else {
    ASSERT_EQ(::rename((StepFolder(workspace(), step) + "/pack").c_str(),
                       (workspace().store() + "/../pack").c_str()),
              0);
    folder.Symlink("pack", "../../../pack");
  }
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
}

// Whatever file of the store is a symlink: refused or left out, and what it leads to stays as it is.
class UndoSymlinkInStore : public UndoTest {
 protected:
  void SetUp() override {
    options_.compression = Compression::kOff;
    StartWith(test::SmallTree);
  }

  std::string outside() const { return workspace().store() + "/../outside"; }
  std::string target() const { return outside() + "/target"; }
  void Plant(const std::string& path) {
    (void)::mkdir(outside().c_str(), 0755);
    MustCall(::rename(path.c_str(), target().c_str()), "rename " + path);
    MustCall(::symlink(target().c_str(), path.c_str()), "symlink " + path);
    planted_ = Must(TreeSnapshot::Capture(outside()));
  }
  void ExpectTargetUntouched() const {
    EXPECT_TREE_EQ(planted_, Must(TreeSnapshot::Capture(outside())));
  }

  TreeSnapshot planted_;
};

TEST_F(UndoSymlinkInStore, NoFileOfTheFrameIsFollowed) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  EXPECT_OK(log().NoteExternalModification(std::vector<std::string>{"medium.txt"}));
  CloseLog();
  const TreeSnapshot after = Snapshot();
  for (const char* name : {"version", "lock", "project", "objects", "barriers"}) {
    SCOPED_TRACE(name);
    const std::string path = workspace().store() + "/" + name;
    Plant(path);
    EXPECT_FALSE(UndoLog::Open(paths(), options_).ok());
    ExpectTargetUntouched();
    ExpectTree(after);
    MustCall(::rename(target().c_str(), path.c_str()), "rename");
  }
  OpenLog();
  RollBack();
}

TEST_F(UndoSymlinkInStore, TheJournalOfAStepIsDamageAndForceSetsTheStepAside) {
  InStep([&] { EXPECT_OK(ops().Overwrite("medium.txt", "x")); });
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  Plant(StepFolder(workspace(), step) + "/journal");
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  ExpectTargetUntouched();
  EXPECT_OK(log().Rollback(1, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "x");
  ExpectTargetUntouched();
  RollBack();
}

TEST_F(UndoSymlinkInStore, TheJournalOfAnInterruptedStepIsNotWrittenTo) {
  for (const StepKind kind : {StepKind::kCommand, StepKind::kAmbient}) {
    CloseLog();
    RunUntilDeath([&] {
      OpenLog();
      if (kind == StepKind::kCommand) EXPECT_OK(log().OpenStep({}));
      EXPECT_OK(ops().Overwrite("small.txt", "y"));
      DieNow();
    });
    Plant(OpenStepFolder(workspace()) + "/journal");
    OpenLog();
    ExpectTargetUntouched();
  }
}

TEST_F(UndoSymlinkInStore, ABlobIsDamage) {
  const StepId step =
      InStep([&] { EXPECT_OK(ops().WriteAt("large.bin", 0, "J", WriteVisibility::kUnseen)); });
  CloseLog();
  Plant(StepFolder(workspace(), step) + "/blobs/0");
  OpenLog();
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  EXPECT_CODE(log().Restore(step, std::vector<std::string>{"large.bin"}), Code::kCorrupt);
  ExpectTree(after);
  ExpectTargetUntouched();
}

TEST_F(UndoSymlinkInStore, AProvisionalCopyIsNotComparedWithWhatItLeadsTo) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteAt("large.bin", 0, "", WriteVisibility::kUnseen));
  const std::string blob = OpenStepFolder(workspace()) + "/blobs/0";
  struct stat st{};
  ASSERT_EQ(::stat(blob.c_str(), &st), 0);
  Plant(blob);
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(::lstat((StepFolder(workspace(), StepId{1}) + "/blobs/0").c_str(), &st), 0);
  ExpectTargetUntouched();
}

TEST_F(UndoSymlinkInStore, AFifoKeepsNobodyWaiting) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  const std::string pack = StepFolder(workspace(), step) + "/pack";
  ASSERT_EQ(::unlink(pack.c_str()), 0);
  ASSERT_EQ(::mkfifo(pack.c_str(), 0600), 0);
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
}

}  // namespace
}  // namespace sandglass::undo

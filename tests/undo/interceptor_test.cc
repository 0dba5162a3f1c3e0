// What each intercepted operation leaves behind when its step is rolled back (UI-01..16, 23, 24).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include "base/io.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WriteVisibility kBothVisibilities[] = {WriteVisibility::kUnseen,
                                                 WriteVisibility::kAnnounced};

class UndoInterceptor : public UndoTest {
 protected:
  int64_t MtimeOf(std::string_view path) const {
    const struct stat st = StatOf(path);
    return st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
  }
  ino_t InodeOf(std::string_view path) const { return StatOf(path).st_ino; }
};

TEST_F(UndoInterceptor, UI_01_WritingTheSameFileThreeTimesKeepsOnePreimage) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    for (const char* text : {"first", "second", "third"}) {
      EXPECT_OK(ops().WriteAt("medium.txt", 0, text, WriteVisibility::kUnseen));
    }
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified medium.txt"));
  EXPECT_LE(InfoOf(step).copied_bytes, 4096u);
  EXPECT_EQ(Content("medium.txt").substr(0, 6), "thirdd");
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_01_TheFirstTouchCountsWhateverTheOperation) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Chmod("small.txt", 0600));
    EXPECT_OK(ops().Append("small.txt", " and more", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().TruncateTo("small.txt", 3));
    EXPECT_OK(ops().Overwrite("small.txt", "entirely new"));
    EXPECT_OK(ops().Rename("small.txt", "src/moved.txt"));
    EXPECT_OK(ops().WriteAt("src/moved.txt", 4, "XX", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Unlink("src/moved.txt"));
  });
}

TEST_F(UndoInterceptor, UI_02_RollbackRemovesACreatedFileAndRestoresTheParentsMtime) {
  StartWith(test::SmallTree);
  const int64_t parent_mtime = MtimeOf("src");
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().WriteNew("src/new.txt", "content")); });
  EXPECT_EQ(Content("src/new.txt"), "content");
  EXPECT_NE(MtimeOf("src"), parent_mtime);
  EXPECT_THAT(ChangeLines(step), ElementsAre("created src/new.txt"));
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u) << "what was born in the step needs no content";
  RollBack();
  EXPECT_FALSE(workspace().Exists("src/new.txt"));
  EXPECT_EQ(MtimeOf("src"), parent_mtime);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_03_RollbackRemovesCreatedDirectoriesDeepestFirst) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Mkdir("new"));
    EXPECT_OK(ops().Mkdir("new/deep"));
    EXPECT_OK(ops().Mkdir("new/deep/deeper", 0700));
    EXPECT_OK(ops().WriteNew("new/deep/deeper/file.txt", "x"));
    EXPECT_OK(ops().WriteNew("new/file.txt", "y"));
    EXPECT_OK(ops().Mkdir("src/components/inner"));
  });
  EXPECT_FALSE(workspace().Exists("new"));
}

TEST_F(UndoInterceptor, UI_04_RollbackRestoresADeletedFileWithItsMetadata) {
  const TreeBuilder tree(workspace().project());
  tree.File("tool", "#!/bin/sh", 04751);
  // Where there are no user xattrs the rest still counts; UI-12 reports their absence.
  tree.Xattr("tool", "user.note", "kept");
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("tool")); });
  EXPECT_FALSE(workspace().Exists("tool"));
  EXPECT_THAT(ChangeLines(step), ElementsAre("deleted tool"));
  RollBack();
  EXPECT_EQ(Content("tool"), "#!/bin/sh");
  EXPECT_EQ(StatOf("tool").st_mode & 07777, 04751u);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_05_RollbackRestoresADeletedTree) {
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().RemoveTree("level1")); });
  EXPECT_FALSE(workspace().Exists("level1"));
  EXPECT_EQ(InfoOf(step).counts.deleted, 130u);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_05_ATreeDeletedAndMadeAgainInOneStepComesBackAsItWas) {
  StartWith(test::DeepTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().RemoveTree("level1"));
    EXPECT_OK(ops().Mkdir("level1", 0700));
    EXPECT_OK(ops().Mkdir("level1/level2"));
    EXPECT_OK(ops().WriteNew("level1/file00.txt", "another file of the same name"));
  });
}

TEST_F(UndoInterceptor, UI_06_RollbackTakesARenameBack) {
  StartWith(test::RenameTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("a.txt", "c.txt")); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed a.txt -> c.txt"));
  RollBack();
  EXPECT_FALSE(workspace().Exists("c.txt"));
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_07_RollbackOfARenameOverRestoresBothFiles) {
  StartWith(test::RenameTree);
  const ino_t inode_a = InodeOf("a.txt");
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Rename("a.txt", "b.txt")); });
  EXPECT_EQ(Content("b.txt"), "content of a");
  EXPECT_FALSE(workspace().Exists("a.txt"));
  RollBack();
  EXPECT_EQ(InodeOf("a.txt"), inode_a) << "a rename is taken back by a rename";
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_07_ADirectoryRenamedOverAnEmptyOneComesBack) {
  StartWith(test::SmallTree);
  workspace().MakeDir("empty");
  test::AgeTree(workspace().project());
  ExpectUndone([&] { EXPECT_OK(ops().Rename("src", "empty")); });
}

TEST_F(UndoInterceptor, UI_08_RollbackOfARenamedDirectoryRestoresAllBelow) {
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("level1/level2", "moved")); });
  EXPECT_TRUE(workspace().Exists("moved/level3/level4/file00.txt"));
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed level1/level2 -> moved"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_08_ChangesInsideARenamedDirectoryAreTakenBackToo) {
  StartWith(test::DeepTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Overwrite("level1/level2/file01.txt", "before the rename"));
    EXPECT_OK(ops().Rename("level1/level2", "moved"));
    EXPECT_OK(ops().Overwrite("moved/file00.txt", "after the rename"));
    EXPECT_OK(ops().Unlink("moved/file01.txt"));
    EXPECT_OK(ops().WriteNew("moved/new.txt", "new"));
    EXPECT_OK(ops().Rename("moved/level3", "level1/level3"));
    EXPECT_OK(ops().RemoveTree("level1/level3/level4"));
  });
}

TEST_F(UndoInterceptor, UI_09_OpeningWithTruncationCapturesTheOldContentFirst) {
  StartWith(test::SmallTree);
  for (const char* path : {"small.txt", "medium.txt", "large.bin"}) {
    SCOPED_TRACE(path);
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      Result<Fd> file = ops().OpenFile(path, O_WRONLY | O_TRUNC, WriteVisibility::kUnseen);
      ASSERT_OK(file);
      EXPECT_EQ(StatOf(path).st_size, 0);
    });
    RollBack();
    ExpectTree(before);
  }
}

// creat() on a name that exists is a truncation; only a new inode is a creation.
TEST_F(UndoInterceptor, UI_09_CreatOfAnExistingFileIsAModificationAndOfANewOneACreation) {
  StartWith(test::SmallTree);
  constexpr int kCreat = O_WRONLY | O_CREAT | O_TRUNC;
  const StepId step = InStep([&] {
    EXPECT_OK(ops().OpenFile("small.txt", kCreat, WriteVisibility::kUnseen));
    EXPECT_OK(ops().OpenFile("fresh.txt", kCreat, WriteVisibility::kUnseen));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created fresh.txt", "modified small.txt"));
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_FALSE(workspace().Exists("fresh.txt"));
}

TEST_F(UndoInterceptor, UI_10_TruncatingKeepsTheFullOldContent) {
  StartWith(test::SmallTree);
  for (const char* path : {"small.txt", "medium.txt", "large.bin"}) {
    for (const uint64_t size : {0, 5, 2'000'000}) {
      SCOPED_TRACE(fmt::format("{} to {}", path, size));
      ExpectUndone([&] { EXPECT_OK(ops().TruncateTo(path, size)); });
    }
  }
}

TEST_F(UndoInterceptor, UI_11_RollbackRestoresTheExecutableBit) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Chmod("small.txt", 0755));
    EXPECT_OK(ops().Chmod("run.sh", 0644));
  });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u) << "metadata alone needs no content";
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified run.sh", "modified small.txt"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_12_RollbackTakesASetXattrBack) {
  if (!test::XattrTree(workspace().project())) {
    GTEST_SKIP() << "user xattrs: not supported by " << FileSystemName(workspace().project());
  }
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().SetXattr("plain.txt", "user.new", "added"));
    EXPECT_OK(ops().SetXattr("tagged.txt", "user.test", "changed"));
    EXPECT_OK(ops().SetXattr("dir", "user.more", "on a directory"));
  });
}

TEST_F(UndoInterceptor, UI_13_RollbackRestoresARemovedXattr) {
  if (!test::XattrTree(workspace().project())) {
    GTEST_SKIP() << "user xattrs: not supported by " << FileSystemName(workspace().project());
  }
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().RemoveXattr("tagged.txt", "user.binary"));
    EXPECT_OK(ops().RemoveXattr("dir", "user.test"));
  });
}

TEST_F(UndoInterceptor, UI_14_RollbackRestoresTheSizeAfterFallocate) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Fallocate("small.txt", 0, 100'000));
    EXPECT_OK(ops().Fallocate("large.bin", 900'000, 300'000));
  });
  EXPECT_EQ(StatOf("small.txt").st_size, 11);
}

TEST_F(UndoInterceptor, UI_14_RollbackFillsAPunchedHole) {
  StartWith(test::SmallTree);
  ExpectUndone([&] { EXPECT_OK(ops().PunchHole("large.bin", 65'536, 131'072)); });
}

TEST_F(UndoInterceptor, UI_15_RollbackRestoresTheTargetOfACopiedRange) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().CopyRange("large.bin", 0, "medium.txt", 100, 200'000));
    EXPECT_OK(ops().CopyRange("medium.txt", 0, "large.bin", 500'000, 50));
    EXPECT_OK(ops().CopyRange("large.bin", 0, "large.bin", 700'000, 100'000));
  });
}

TEST_F(UndoInterceptor, UI_16_RollingBackOneOfTwoStepsLeavesTheFirst) {
  StartWith(test::SmallTree);
  const TreeSnapshot original = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after step 1")); });
  const TreeSnapshot after_first = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after step 2")); });
  RollBack(1);
  EXPECT_EQ(Content("small.txt"), "after step 1");
  ExpectTree(after_first);
  EXPECT_THAT(Steps(), SizeIs(1)) << "rollback pops";
  RollBack(1);
  ExpectTree(original);
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(UndoInterceptor, UI_16_TwoStepsRolledBackTogetherGiveTheOriginal) {
  StartWith(test::SmallTree);
  const TreeSnapshot original = Snapshot();
  const StepId first = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().Rename("src", "lib"));
  });
  const StepId second = InStep([&] {
    EXPECT_OK(ops().Rename("small.txt", "lib/small.txt"));
    EXPECT_OK(ops().RemoveTree("lib/components"));
  });
  const RewindReport report = RollBack(2);
  EXPECT_THAT(report.steps, ElementsAre(second, first));
  ExpectTree(original);
}

// The founding plan captured by path and only asked that hard links do no harm. Objects have identities here, so they are
// exact: both names change together and come back together.
TEST_F(UndoInterceptor, UI_23_HardLinksAreExact) {
  test::SmallTree(workspace().project());
  const TreeBuilder tree(workspace().project());
  tree.Link("medium.txt", "src/second.txt");
  tree.Link("medium.txt", "third.txt");
  test::AgeTree(workspace().project());
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().WriteAt("src/second.txt", 10, "through a link", WriteVisibility::kUnseen));
  });
  ExpectUndone([&] { EXPECT_OK(ops().Overwrite("medium.txt", "truncated for all names")); });
  ExpectUndone([&] { EXPECT_OK(ops().Unlink("medium.txt")); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().WriteAt("third.txt", 0, "after one name went", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Unlink("src/second.txt"));
    EXPECT_OK(ops().Chmod("third.txt", 0600));
    EXPECT_OK(ops().Unlink("third.txt"));
  });
  ExpectUndone([&] {
    EXPECT_OK(ops().Link("small.txt", "src/linked.txt"));
    EXPECT_OK(ops().Overwrite("src/linked.txt", "both"));
    EXPECT_OK(ops().Rename("small.txt", "third.txt"));
  });
  EXPECT_EQ(InodeOf("medium.txt"), InodeOf("src/second.txt"));
  EXPECT_EQ(InodeOf("medium.txt"), InodeOf("third.txt"));
}

TEST_F(UndoInterceptor, UI_24_RollbackRestoresASymlinksTarget) {
  StartWith(test::SymlinkTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Symlink("dir/inside.txt", "to_file"));
    EXPECT_OK(ops().Unlink("to_dir"));
    EXPECT_OK(ops().Symlink("target.txt", "new_link"));
    EXPECT_OK(ops().Rename("new_link", "dir/new_link"));
  });
  ExpectUndone([&] {
    EXPECT_OK(ops().Symlink("elsewhere", "temporary"));
    EXPECT_OK(ops().Rename("temporary", "to_dir"));
    EXPECT_OK(ops().SetMtime("to_dir", 1'600'000'000'123'456'789));
  });
}

// Beyond the founding list: every other operation and every order that defeats path-keyed undo.

TEST_F(UndoInterceptor, ExchangeIsTakenBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] { EXPECT_OK(ops().Rename("small.txt", "src/main.rs", RenameMode::kExchange)); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Rename("src", "large.bin", RenameMode::kExchange));
    EXPECT_OK(ops().Overwrite("large.bin/main.rs", "in the exchanged directory"));
    EXPECT_OK(ops().Unlink("src"));
  });
}

TEST_F(UndoInterceptor, NoReplaceOverAnExistingNameFailsAndIsNothing) {
  StartWith(test::RenameTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    const Status renamed = ops().Rename("a.txt", "b.txt", RenameMode::kNoReplace);
    ASSERT_FALSE(renamed.ok());
    EXPECT_EQ(renamed.error().sys_errno(), EEXIST);
    EXPECT_OK(ops().Rename("a.txt", "c.txt", RenameMode::kNoReplace));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed a.txt -> c.txt"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, ARenameBetweenTwoNamesOfOneObjectIsNothing) {
  test::RenameTree(workspace().project());
  TreeBuilder(workspace().project()).Link("a.txt", "alias.txt");
  test::AgeTree(workspace().project());
  OpenLog();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("a.txt", "alias.txt")); });
  EXPECT_TRUE(workspace().Exists("a.txt")) << "the kernel does nothing here";
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoInterceptor, AnOpenFileThatWasUnlinkedMayBeWrittenFurtherWithoutHarmToThePreimage) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (const char* path : {"small.txt", "large.bin"}) {
      Result<Fd> file = ops().OpenFile(path, O_RDWR, WriteVisibility::kUnseen);
      ASSERT_OK(file);
      EXPECT_EQ(::pwrite(file->get(), "X", 1, 0), 1);
      EXPECT_OK(ops().Unlink(path));
      EXPECT_EQ(::pwrite(file->get(), "YYY", 3, 5), 3);
    }
  });
}

TEST_F(UndoInterceptor, AnUnlinkedOpenFileCannotBeLinkedBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    Result<Fd> file = ops().OpenFile("small.txt", O_RDONLY, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_OK(ops().Unlink("small.txt"));
    EXPECT_CODE(ops().LinkOpenFile(file->get(), "back.txt"), Code::kNotFound);
    EXPECT_FALSE(workspace().Exists("back.txt"));
  });
}

// What was dropped lies in the trash until a thread deletes it. Until then the kernel would link it.
class UndoDropped : public UndoInterceptor {
 protected:
  static constexpr int kRounds = 20;

  // A new file in the open step, as someone holds it who opened it then.
  Fd NewFile() {
    EXPECT_OK(ops().WriteNew("new.txt", "to be dropped"));
    return Fd(::open(workspace().Path("new.txt").c_str(), O_RDONLY | O_CLOEXEC));
  }
  void ExpectDead(const Fd& file) {
    EXPECT_CODE(ops().LinkOpenFile(file.get(), "back.txt"), Code::kNotFound);
    EXPECT_FALSE(workspace().Exists("back.txt"));
  }
};

TEST_F(UndoDropped, AFileOfARolledBackStepCannotBeLinkedBack) {
  StartWith(test::SmallTree);
  for (int i = 0; i < kRounds; ++i) {
    Fd file;
    InStep([&] { file = NewFile(); });
    RollBack();
    InStep([&] { ExpectDead(file); });
  }
  EXPECT_THAT(Barriers(), IsEmpty());
}

TEST_F(UndoDropped, AFileOfAnAbortedStepCannotBeLinkedBack) {
  StartWith(test::SmallTree);
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_OK(log().OpenStep({}));
    const Fd file = NewFile();
    EXPECT_OK(log().AbortStep());
    ExpectDead(file);
    EXPECT_OK(log().CloseAmbientStep());
  }
  EXPECT_THAT(Barriers(), IsEmpty());
}

TEST_F(UndoDropped, AFileOfADeniedStepCannotBeLinkedBack) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 1;
  StartWith(test::SmallTree);
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_OK(log().OpenStep({}));
    const Fd file = NewFile();
    EXPECT_CODE(ops().Unlink("small.txt"), Code::kDenied);
    ExpectDead(file);
    EXPECT_OK(log().CloseAmbientStep());
  }
}

TEST_F(UndoDropped, AFileThatHasOnlyNamesOutsideCannotBeLinkedBack) {
  StartWith(test::SmallTree);
  const std::string outside = workspace().root() + "/outside";
  ASSERT_OK(log().OpenStep({}));
  const Fd file = NewFile();
  ASSERT_EQ(::link(workspace().Path("new.txt").c_str(), outside.c_str()), 0);
  EXPECT_OK(log().AbortStep());
  log().WaitForBackground();
  ExpectDead(file);
}

TEST_F(UndoInterceptor, AnOpenFileWithANameLeftCanBeLinkedAgain) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    Result<Fd> file = ops().OpenFile("small.txt", O_RDONLY, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_OK(ops().Rename("small.txt", "renamed.txt"));
    EXPECT_OK(ops().LinkOpenFile(file->get(), "src/again.txt"));
    EXPECT_OK(ops().Unlink("renamed.txt"));
    EXPECT_OK(ops().Append("src/again.txt", "!", WriteVisibility::kUnseen));
  });
}

TEST_F(UndoInterceptor, WritesOfEveryKindAreTakenBack) {
  StartWith(test::SmallTree);
  for (const WriteVisibility visibility : kBothVisibilities) {
    SCOPED_TRACE(visibility == WriteVisibility::kUnseen ? "unseen" : "announced");
    for (const char* path : {"empty.txt", "small.txt", "large.bin"}) {
      SCOPED_TRACE(path);
      ExpectUndone([&] { EXPECT_OK(ops().WriteAt(path, 3, "abc", visibility)); });
      ExpectUndone(
          [&] { EXPECT_OK(ops().WriteAt(path, 1'200'000, "beyond the end", visibility)); });
      ExpectUndone([&] { EXPECT_OK(ops().Append(path, "appended", visibility)); });
    }
  }
  ExpectUndone([&] { EXPECT_OK(ops().MmapWrite("large.bin", 500'000, "through a mapping")); });
  ExpectUndone([&] { EXPECT_OK(ops().MmapWrite("small.txt", 0, "HELLO")); });
}

TEST_F(UndoInterceptor, DeletingAndRecreatingOneNameManyTimesKeepsTheFirst) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().WriteNew("small.txt", fmt::format("version {}", i)));
    }
  });
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoInterceptor, AnInodeNumberUsedAgainDoesNotConfuseIdentities) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(ops().WriteNew("temporary", "born and gone"));
      EXPECT_OK(ops().Unlink("temporary"));
      EXPECT_OK(ops().WriteNew(fmt::format("kept{}", i), "kept"));
      EXPECT_OK(ops().Chmod(fmt::format("kept{}", i), 0600));
    }
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().WriteNew("other", "may have its inode"));
  });
}

TEST_F(UndoInterceptor, WhatAStepMadeAndRemovedItselfIsNoChange) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Mkdir("scratch"));
    EXPECT_OK(ops().WriteNew("scratch/a", "a"));
    EXPECT_OK(ops().RemoveTree("scratch"));
  });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(InfoOf(step).counts.total(), 0u);
  RollBack(1);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, AnAnnouncedRangeMayReachBeyondAllNumbers) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    const Fd file(::openat(ops().root_fd(), "large.bin", O_RDWR | O_CLOEXEC));
    auto ticket = log().interceptor().BeginContent({file.get(), "large.bin"},
                                                   ContentChange::Range(65536, UINT64_MAX));
    ASSERT_OK(ticket);
    EXPECT_EQ(::pwrite(file.get(), "ZZZ", 3, 100'000), 3);
    EXPECT_OK(ticket->Commit(Outcome::Done()));
  });
}

TEST_F(UndoInterceptor, ANameIsOneComponent) {
  StartWith(test::SmallTree);
  const Fd root(::open(workspace().project().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(root.valid());
  ASSERT_OK(log().OpenStep({}));
  for (const char* name : {"", ".", "..", "a/b", "../outside", "/etc/passwd", "a/"}) {
    SCOPED_TRACE(name);
    const NameRef at{{root.get(), ""}, name}, good{{root.get(), ""}, "free"};
    EXPECT_CODE(log().interceptor().BeginCreate(at, NodeType::kFile), Code::kInvalid);
    EXPECT_CODE(log().interceptor().BeginRemove(at), Code::kInvalid);
    EXPECT_CODE(log().interceptor().BeginLink({root.get(), ""}, at), Code::kInvalid);
    EXPECT_CODE(log().interceptor().BeginRename(at, good, RenameMode::kReplace), Code::kInvalid);
    EXPECT_CODE(log().interceptor().BeginRename(good, at, RenameMode::kReplace), Code::kInvalid);
  }
  const NameRef outside{{root.get(), "../elsewhere"}, "x"};
  EXPECT_CODE(log().interceptor().BeginRemove(outside), Code::kInvalid);
  EXPECT_OK(log().CloseStep());
}

}  // namespace
}  // namespace sandglass::undo

// The option that leaves what git ignores out of undo (GI-01..08): no preimage, no record, no restore. What a rename carries
// across the border between ignored and kept is recorded, since the kept side would lose something.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UndoGitignore : public UndoTest {
 protected:
  void SetUp() override { options_.gitignore = GitignoreMode::kSkipIgnored; }

  void Ignore(std::string_view patterns) const { workspace().WriteFile(".gitignore", patterns); }
  void Start() {
    test::AgeTree(workspace().project());
    OpenLog();
  }
  // The trees are equal but for `paths` with all below them.
  void ExpectTreeBut(const TreeSnapshot& wanted, const std::vector<std::string>& paths) const {
    test::CompareOptions options;
    for (const std::string& path : paths) options.exclude.push_back(test::Subtree(path));
    EXPECT_TRUE(test::TreesEqual(wanted, Snapshot(), options));
  }
};

TEST_F(UndoGitignore, GI_01_OffByDefaultIgnoredFilesAreProtected) {
  options_.gitignore = UndoOptions{}.gitignore;
  EXPECT_EQ(options_.gitignore, GitignoreMode::kOff);
  Ignore("*.log\n");
  workspace().WriteFile("app.log", "old");
  Start();
  ExpectUndone([&] {
    EXPECT_OK(ops().Overwrite("app.log", "new"));
    EXPECT_OK(ops().WriteNew("other.log", "created"));
  });
}

TEST_F(UndoGitignore, GI_02_AChangeToAnIgnoredFileIsNeitherCapturedNorRecorded) {
  Ignore("*.log\n");
  workspace().WriteFile("app.log", Noise(5000));
  workspace().WriteFile("app.txt", "kept");
  Start();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("app.log", "new"));
    EXPECT_OK(ops().Chmod("app.log", 0600));
    EXPECT_OK(ops().Overwrite("app.txt", "changed"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified app.txt"));
  EXPECT_LT(InfoOf(step).copied_bytes, 1000u) << "no preimage of the log";
  RollBack();
  EXPECT_EQ(Content("app.log"), "new");
  ExpectTreeBut(before, {"app.log"});
}

TEST_F(UndoGitignore, GI_03_CreatedAndDeletedIgnoredFilesAreNotRecorded) {
  Ignore("*.log\n*.tmp\n");
  workspace().MakeDir("work");
  workspace().WriteFile("work/old.log", "old");
  workspace().WriteFile("kept.txt", "kept");
  Start();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteNew("work/new.tmp", "scratch"));
    EXPECT_OK(ops().Unlink("work/old.log"));
    EXPECT_OK(ops().Overwrite("kept.txt", "changed"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified kept.txt"));
  RollBack();
  EXPECT_TRUE(workspace().Exists("work/new.tmp"));
  EXPECT_FALSE(workspace().Exists("work/old.log"));
  ExpectTreeBut(before, {"work"});
}

TEST_F(UndoGitignore, GI_03_AStepOfIgnoredChangesAloneIsEmpty) {
  Ignore("*.log\n");
  workspace().WriteFile("app.log", "old");
  Start();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("app.log", "new")); });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(InfoOf(step).counts.total(), 0u);
}

TEST_F(UndoGitignore, GI_04_ANestedGitignoreCountsBelowItsDirectoryOnly) {
  workspace().WriteFile("sub/.gitignore", "data\n/anchored\n");
  for (const char* path :
       {"data", "sub/data", "sub/deep/data", "sub/anchored", "sub/deep/anchored"}) {
    workspace().WriteFile(path, "old");
  }
  Start();
  const StepId step = InStep([&] {
    for (const char* path :
         {"data", "sub/data", "sub/deep/data", "sub/anchored", "sub/deep/anchored"}) {
      EXPECT_OK(ops().Overwrite(path, "new"));
    }
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified data", "modified sub/deep/anchored"));
  RollBack();
  EXPECT_EQ(Content("data"), "old");
  EXPECT_EQ(Content("sub/data"), "new");
  EXPECT_EQ(Content("sub/deep/data"), "new");
  EXPECT_EQ(Content("sub/anchored"), "new");
  EXPECT_EQ(Content("sub/deep/anchored"), "old");
}

TEST_F(UndoGitignore, GI_05_GitInfoExcludeCounts) {
  workspace().WriteFile(".git/info/exclude", "# private\nsecret.env\n");
  workspace().WriteFile("secret.env", "old");
  workspace().WriteFile("sub/secret.env", "old");
  workspace().WriteFile("public.env", "old");
  Start();
  const StepId step = InStep([&] {
    for (const char* path : {"secret.env", "sub/secret.env", "public.env"})
      EXPECT_OK(ops().Overwrite(path, "new"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified public.env"));
}

TEST_F(UndoGitignore, GI_05_TheRepositoryItselfIsNeverIgnored) {
  Ignore("*\n");
  workspace().WriteFile(".git/HEAD", "ref: refs/heads/main\n");
  Start();
  const StepId step =
      InStep([&] { EXPECT_OK(ops().Overwrite(".git/HEAD", "ref: refs/heads/other\n")); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified .git/HEAD"));
  RollBack();
  EXPECT_EQ(Content(".git/HEAD"), "ref: refs/heads/main\n");
}

TEST_F(UndoGitignore, GI_05_TheRepositoryIsNotRecordedIfTheOptionsSaySo) {
  options_.unrecorded = {".git/objects/"};
  StartWith([&](const std::string&) {
    workspace().WriteFile(".git/index", "i");
    workspace().WriteFile(".git/objects/1", "o");
    workspace().WriteFile(".git/HEAD", "h");
  });
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite(".git/index", "changed"));
    EXPECT_OK(ops().Overwrite(".git/objects/1", "changed"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified .git/index"));
  CloseLog();
  options_.unrecorded = {".git/"};
  OpenLog();
  EXPECT_THAT(ChangeLines(InStep([&] { EXPECT_OK(ops().Overwrite(".git/HEAD", "again")); })),
              IsEmpty());
}

TEST_F(UndoGitignore, GI_06_ANegatedPatternIsKept) {
  Ignore("*.log\n!keep.log\n");
  workspace().WriteFile("drop.log", "old");
  workspace().WriteFile("keep.log", "old");
  workspace().WriteFile("sub/keep.log", "old");
  Start();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("drop.log", "new"));
    EXPECT_OK(ops().Overwrite("keep.log", "new"));
    EXPECT_OK(ops().Unlink("sub/keep.log"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("deleted sub/keep.log", "modified keep.log"));
  RollBack();
  EXPECT_EQ(Content("drop.log"), "new");
  EXPECT_EQ(Content("keep.log"), "old");
  EXPECT_EQ(Content("sub/keep.log"), "old");
}

TEST_F(UndoGitignore, GI_07_EverythingBelowAnIgnoredDirectoryIsLeftOut) {
  Ignore("build/\n!build/keep.txt\n");
  workspace().WriteFile("build/out.o", "old");
  workspace().WriteFile("build/deep/more.o", "old");
  workspace().WriteFile("src/build.cc", "old");
  Start();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().RemoveTree("build"));
    EXPECT_OK(ops().Mkdir("build"));
    EXPECT_OK(ops().WriteNew("build/keep.txt",
                             "nothing below an ignored directory can be included again"));
    EXPECT_OK(ops().Mkdir("build/new"));
    EXPECT_OK(ops().WriteNew("build/new/out.o", "new"));
    EXPECT_OK(ops().Overwrite("src/build.cc", "new"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified src/build.cc"));
  RollBack();
  EXPECT_TRUE(workspace().Exists("build/new/out.o"));
  EXPECT_FALSE(workspace().Exists("build/out.o"));
  EXPECT_EQ(Content("src/build.cc"), "old");
  ExpectTreeBut(before, {"build", ""});
}

TEST_F(UndoGitignore, GI_08_RenamesAmongIgnoredFilesAreNotRecorded) {
  Ignore("*.log\n");
  workspace().WriteFile("app.log", "old");
  Start();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("app.log", "app.1.log")); });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
}

TEST_F(UndoGitignore, GI_08_AKeptFileRenamedToAnIgnoredNameComesBack) {
  Ignore("*.bak\n");
  workspace().WriteFile("config.toml", "precious");
  Start();
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Rename("config.toml", "config.toml.bak")); });
  RollBack();
  EXPECT_EQ(Content("config.toml"), "precious");
  ExpectTree(before);
}

// How editors save: write a scratch file beside, then rename it over the real one.
TEST_F(UndoGitignore, GI_08_AnIgnoredFileRenamedOverAKeptOneIsTakenBack) {
  Ignore("*.tmp\n");
  workspace().WriteFile("document.txt", "old text");
  Start();
  InStep([&] {
    EXPECT_OK(ops().WriteNew("document.txt.tmp", "new text"));
    EXPECT_OK(ops().Rename("document.txt.tmp", "document.txt"));
  });
  EXPECT_EQ(Content("document.txt"), "new text");
  RollBack();
  EXPECT_EQ(Content("document.txt"), "old text");
}

TEST_F(UndoGitignore, GI_08_AnIgnoredFileRenamedToAKeptNameIsNotLostByARollback) {
  Ignore("*.log\n");
  workspace().WriteFile("app.log", "only copy");
  Start();
  InStep([&] { EXPECT_OK(ops().Rename("app.log", "report.txt")); });
  RollBack();
  const bool at_old = workspace().Exists("app.log") && Content("app.log") == "only copy";
  const bool at_new = workspace().Exists("report.txt") && Content("report.txt") == "only copy";
  EXPECT_TRUE(at_old || at_new);
}

// What was kept when the step began comes back as it was, wherever the step takes it first.
class UndoGitignoreCarried : public UndoGitignore {
 protected:
  void SetUp() override {
    UndoGitignore::SetUp();
    Ignore("build/\n*.o\n");
    workspace().MakeDir("build");
    workspace().WriteFile("src.txt", "precious");
    workspace().WriteFile("d/src.txt", "precious");
    workspace().WriteFile("d/src.o", "ignored");
    Start();
  }
};

TEST_F(UndoGitignoreCarried, AKeptFileMovedToAnIgnoredFolderAndDeletedThereComesBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Rename("src.txt", "build/src.txt"));
    EXPECT_OK(ops().Rename("build/src.txt", "build/again.txt"));
    EXPECT_OK(ops().Unlink("build/again.txt"));
  });
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoGitignoreCarried, AKeptFileMovedToAnIgnoredFolderAndDeletedThereByTheNextStepComesBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Rename("src.txt", "build/src.txt")); });
  const TreeSnapshot moved = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("build/src.txt", "ruined")); });
  InStep([&] { EXPECT_OK(ops().Unlink("build/src.txt")); });
  RollBack(2);
  ExpectTree(moved);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoGitignoreCarried, AKeptFileMovedToAnIgnoredFolderAndOverwrittenThereComesBack) {
  ExpectUndone([&] {
    EXPECT_OK(ops().Rename("src.txt", "build/src.txt"));
    EXPECT_OK(ops().Overwrite("build/src.txt", "ruined"));
    EXPECT_OK(ops().Chmod("build/src.txt", 0600));
  });
}

TEST_F(UndoGitignoreCarried, AKeptFileMovedToAnIgnoredFolderAndReplacedThereComesBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Rename("src.txt", "build/src.txt"));
    EXPECT_OK(ops().WriteNew("build/out", "out"));
    EXPECT_OK(ops().Rename("build/out", "build/src.txt"));
  });
  RollBack();
  ExpectTreeBut(before, {"build"});
}

TEST_F(UndoGitignoreCarried, AKeptFolderMovedToAnIgnoredOneAndDeletedThereComesBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Rename("d", "build/d"));
    EXPECT_OK(ops().WriteNew("build/d/new.txt", "new"));
    EXPECT_OK(ops().RemoveTree("build/d"));
  });
  RollBack();
  ExpectTreeBut(before, {"d/src.o"});
}

TEST_F(UndoGitignoreCarried, WhatIsMadeInAKeptFolderInAnIgnoredPlaceDoesNotComeBackWithIt) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Rename("d", "build/d"));
    EXPECT_OK(ops().WriteNew("build/d/new.txt", "new"));
    EXPECT_OK(ops().Overwrite("build/d/src.txt", "ruined"));
    EXPECT_OK(ops().WriteNew("build/other", "ignored"));
  });
  RollBack();
  EXPECT_EQ(Content("build/other"), "ignored");
  ExpectTreeBut(before, {"build"});
}

TEST_F(UndoGitignoreCarried, WhatIsWrittenThroughAnIgnoredLinkOfAKeptFileIsTakenBack) {
  ExpectUndone([&] {
    EXPECT_OK(ops().Link("src.txt", "build/link"));
    EXPECT_OK(ops().WriteAt("build/link", 0, "ruined!!", WriteVisibility::kUnseen));
  });
  ASSERT_EQ(0, ::link(workspace().Path("src.txt").c_str(), workspace().Path("build/link").c_str()));
  InStep([&] {
    EXPECT_OK(ops().WriteAt("build/link", 0, "ruined!!", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Unlink("build/link"));
  });
  RollBack();
  EXPECT_EQ(Content("src.txt"), "precious");
}

TEST_F(UndoGitignoreCarried, AnIgnoredLinkOfAKeptFileIsNoEditOfThat) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("src.txt", "changed")); });
  InStep([&] { EXPECT_OK(ops().Link("src.txt", "build/link")); });
  EXPECT_THAT(RollBack(2).steps, ::testing::Contains(step));
  EXPECT_EQ(Content("src.txt"), "precious");
}

// Each of these moves the ctime of the kept file.
TEST_F(UndoGitignoreCarried, WhatHappensToAnIgnoredLinkOfAKeptFileIsNoEditOfThat) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("src.txt", "changed"));
    EXPECT_OK(ops().Link("src.txt", "build/link"));
  });
  InStep([&] { EXPECT_OK(ops().Rename("build/link", "build/renamed")); });
  InStep([&] { EXPECT_OK(ops().Unlink("build/renamed")); });
  InStep([&] {
    const Fd file(::open(workspace().Path("src.txt").c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_OK(ops().LinkOpenFile(file.get(), "build/opened"));
  });
  EXPECT_THAT(Barriers(), IsEmpty());
  RollBack(4);
  ExpectTree(before);
}

TEST_F(UndoGitignoreCarried, AnIgnoredLinkThatWasThereBeforeCanGoWithoutLookingLikeAnEdit) {
  ASSERT_EQ(0, ::link(workspace().Path("src.txt").c_str(), workspace().Path("build/link").c_str()));
  InStep([&] { EXPECT_OK(ops().Overwrite("src.txt", "changed")); });
  InStep([&] { EXPECT_OK(ops().Unlink("build/link")); });
  RollBack(2);
  EXPECT_EQ(Content("src.txt"), "precious");
}

TEST_F(UndoGitignoreCarried, WhatWasDroppedCannotBeLinkedToAnIgnoredNameEither) {
  const std::string outside = workspace().root() + "/outside";
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("new", "to be dropped"));
  const Fd file(::open(workspace().Path("new").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(0, ::link(workspace().Path("new").c_str(), outside.c_str()));
  EXPECT_OK(log().AbortStep());
  EXPECT_CODE(ops().LinkOpenFile(file.get(), "build/back"), Code::kNotFound);
}

TEST_F(UndoGitignore, ARulesFileWrittenByACommandDoesNotHideItsChanges) {
  workspace().WriteFile("precious.txt", "old");
  Start();
  ExpectUndone([&] {
    EXPECT_OK(ops().WriteNew(".gitignore", "*\n"));
    EXPECT_OK(ops().Overwrite("precious.txt", "new"));
    EXPECT_OK(ops().Unlink("precious.txt"));
  });
}

TEST_F(UndoGitignore, AnIgnoredFileDeletedWithItsKeptDirectoryDoesNotDisturbTheRest) {
  Ignore("*.o\n");
  workspace().WriteFile("lib/code.c", "kept");
  workspace().WriteFile("lib/code.o", "ignored");
  Start();
  InStep([&] { EXPECT_OK(ops().RemoveTree("lib")); });
  RollBack();
  EXPECT_EQ(Content("lib/code.c"), "kept");
  EXPECT_FALSE(workspace().Exists("lib/code.o"));
}

}  // namespace
}  // namespace sandglass::undo

#include "session/files/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "session/files/read_file.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "undo/undo_log.h"

namespace sandglass::session::files {
namespace {

class WriteWholeFileTest : public testing::Test {
 protected:
  void Open(const undo::UndoOptions& options = {}) {
    log_ = test::Must(undo::UndoLog::Open(
        {.project = workspace_.project(), .store = workspace_.store()}, options));
    root_ = Fd(::open(workspace_.project().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  // As one step.
  Result<WrittenFile> Write(const WriteRequest& request) {
    TRY(log_->OpenStep({.kind = undo::StepKind::kApi, .label = "write"}));
    auto written = WriteWholeFile(root_.get(), log_->interceptor(), request);
    TRY(log_->CloseStep());
    return written;
  }
  Code Failure(const WriteRequest& request) {
    const auto before = workspace_.Snapshot();
    const auto written = Write(request);
    EXPECT_FALSE(written.ok()) << request.path;
    EXPECT_TREE_EQ(before, workspace_.Snapshot());
    return written.ok() ? Code::kVersion : written.error().code();
  }
  void Undo() { test::Must(log_->Rollback(1, undo::Force::kNo)); }

  test::TempWorkspace workspace_;
  std::unique_ptr<undo::UndoLog> log_;
  Fd root_;
};

TEST_F(WriteWholeFileTest, MakesANewFileThatUndoTakesAway) {
  Open();
  const auto before = workspace_.Snapshot();
  const auto written = Write({.path = "a/b/c.txt", .content = "new", .parents = Parents::kMade});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_EQ(written->kind, WriteKind::kCreated);
  EXPECT_EQ(workspace_.ReadFile("a/b/c.txt"), "new");
  EXPECT_EQ(written->version, ReadWholeFile(root_.get(), "a/b/c.txt", 10)->version);
  Undo();
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

TEST_F(WriteWholeFileTest, ReplacesAFileKeepsWhatBelongsToItAndUndoBringsItBack) {
  workspace_.WriteFile("a", "old");
  const std::string path = workspace_.Path("a");
  test::MustCall(::chmod(path.c_str(), 04751), "chmod");
  test::MustCall(::setxattr(path.c_str(), "user.note", "mine", 4, 0), "setxattr");
  if (::geteuid() == 0) {
    test::MustCall(::chown(path.c_str(), 1234, 4321), "chown");
    test::MustCall(::chmod(path.c_str(), 04751), "chmod");
  }
  const struct stat old = workspace_.Stat("a");
  Open();
  const auto before = workspace_.Snapshot();
  const auto written = Write({.path = "a", .content = "new content"});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_EQ(written->kind, WriteKind::kReplaced);
  EXPECT_EQ(workspace_.ReadFile("a"), "new content");
  const struct stat now = workspace_.Stat("a");
  EXPECT_NE(now.st_ino, old.st_ino);
  EXPECT_EQ(now.st_mode, old.st_mode);
  EXPECT_EQ(now.st_uid, old.st_uid);
  EXPECT_EQ(now.st_gid, old.st_gid);
  char note[8] = {};
  EXPECT_EQ(::getxattr(path.c_str(), "user.note", note, sizeof(note)), 4);
  EXPECT_STREQ(note, "mine");
  Undo();
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

TEST_F(WriteWholeFileTest, AFileWithOtherNamesStaysOneFile) {
  workspace_.WriteFile("a", "old");
  test::MustCall(::link(workspace_.Path("a").c_str(), workspace_.Path("b").c_str()), "link");
  Open();
  const auto before = workspace_.Snapshot();
  EXPECT_EQ(Write({.path = "a", .content = "new"})->kind, WriteKind::kRewritten);
  EXPECT_EQ(workspace_.ReadFile("b"), "new");
  EXPECT_EQ(workspace_.Stat("a").st_ino, workspace_.Stat("b").st_ino);
  Undo();
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

// Whoever calls may have a umask that is made for its own files, as the bridge has.
TEST_F(WriteWholeFileTest, WhatIsNewBelongsToTheFoldersOwnerAndCanBeRead) {
  workspace_.MakeDir("theirs");
  if (::geteuid() == 0)
    test::MustCall(::chown(workspace_.Path("theirs").c_str(), 1234, 4321), "chown");
  const struct stat owner = workspace_.Stat("theirs");
  Open();
  const auto before = workspace_.Snapshot();
  const mode_t umask_before = ::umask(077);
  const auto written = Write({.path = "theirs/sub/new", .content = "x", .parents = Parents::kMade});
  ::umask(umask_before);
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  for (const char* made : {"theirs/sub", "theirs/sub/new"}) {
    EXPECT_EQ(workspace_.Stat(made).st_uid, owner.st_uid) << made;
    EXPECT_EQ(workspace_.Stat(made).st_gid, owner.st_gid) << made;
  }
  EXPECT_EQ(workspace_.Stat("theirs/sub").st_mode & 07777, 0755u);
  EXPECT_EQ(workspace_.Stat("theirs/sub/new").st_mode & 07777, 0644u);
  Undo();
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

TEST_F(WriteWholeFileTest, ReplacesOnlyWhatWasRead) {
  workspace_.WriteFile("a", "old");
  Open();
  const FileVersion read = ReadWholeFile(root_.get(), "a", 10)->version;
  ASSERT_TRUE(Write({.path = "a", .content = "mine", .expected = read}).ok());
  EXPECT_EQ(Failure({.path = "a", .content = "again", .expected = read}), Code::kConflict);
  EXPECT_EQ(workspace_.ReadFile("a"), "mine");
  EXPECT_EQ(Failure({.path = "gone", .content = "x", .expected = read}), Code::kConflict);
}

TEST_F(WriteWholeFileTest, RefusesAndLeavesEverythingAsItWas) {
  workspace_.WriteFile("file", "x");
  workspace_.MakeDir("folder");
  test::MustCall(::symlink("file", workspace_.Path("link").c_str()), "symlink");
  test::MustCall(::symlink("/tmp", workspace_.Path("out").c_str()), "symlink");
  test::MustCall(::mkfifo(workspace_.Path("fifo").c_str(), 0600), "mkfifo");
  Open();
  EXPECT_EQ(Failure({.path = "folder", .content = "x"}), Code::kInvalid);
  EXPECT_EQ(Failure({.path = "link", .content = "x"}), Code::kInvalid);
  EXPECT_EQ(Failure({.path = "fifo", .content = "x"}), Code::kInvalid);
  EXPECT_EQ(Failure({.path = "", .content = "x"}), Code::kInvalid);
  EXPECT_EQ(Failure({.path = "../x", .content = "x"}), Code::kOutsideRoot);
  EXPECT_EQ(Failure({.path = "out/x", .content = "x"}), Code::kOutsideRoot);
  EXPECT_EQ(Failure({.path = "none/x", .content = "x"}), Code::kNotFound);
  EXPECT_EQ(Failure({.path = "file", .content = "x", .if_there = IfThere::kRefused}),
            Code::kExists);
}

TEST_F(WriteWholeFileTest, LongNamesWork) {
  Open();
  const std::string name(255, 'n');
  ASSERT_TRUE(Write({.path = name, .content = "1"}).ok());
  ASSERT_TRUE(Write({.path = name, .content = "2"}).ok());
  EXPECT_EQ(workspace_.ReadFile(name), "2");
}

// The name under which the content is made is recorded although the file itself is not: undo must not lose the file for that.
TEST_F(WriteWholeFileTest, AnUnrecordedFileSurvivesUndo) {
  workspace_.WriteFile(".gitignore", "cache*\n");
  workspace_.WriteFile("cache.bin", "old");
  Open({.gitignore = undo::GitignoreMode::kSkipIgnored});
  ASSERT_TRUE(Write({.path = "cache.bin", .content = "new"}).ok());
  (void)log_->Rollback(1, undo::Force::kNo);
  EXPECT_TRUE(workspace_.Exists("cache.bin"));
  EXPECT_NE(workspace_.ReadFile("cache.bin"), "");
}

}  // namespace
}  // namespace sandglass::session::files

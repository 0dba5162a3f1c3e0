// Tickets that do not end in order (failed, cancelled, dropped), and objects that come without a path.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include "base/io.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace {

// Takes the place of the call in this program: folders may refuse to have their times set.
bool& FoldersRefuseTimes() {
  static bool refuse = false;
  return refuse;
}

// Happens once, when the identity of an object is asked for through a descriptor of it.
std::function<void()>& WhileAnObjectIsIdentified() {
  static std::function<void()> event;
  return event;
}

}  // namespace

extern "C" int name_to_handle_at(int dir, const char* name, file_handle* handle, int* mount_id,
                                 int flags) noexcept {
  struct stat info{};
  if (WhileAnObjectIsIdentified() && ::fstatat(dir, name, &info, flags) == 0 &&
      S_ISREG(info.st_mode))
    std::exchange(WhileAnObjectIsIdentified(), nullptr)();
  return static_cast<int>(::syscall(SYS_name_to_handle_at, dir, name, handle, mount_id, flags));
}

extern "C" int utimensat(int dir, const char* path, const timespec times[2], int flags) noexcept {
  struct stat info{};
  if (FoldersRefuseTimes() && ::fstatat(dir, path, &info, 0) == 0 && S_ISDIR(info.st_mode)) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_utimensat, dir, path, times, flags));
}

namespace sandglass::undo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UndoTicket : public UndoTest {};

TEST_F(UndoTicket, AFailedOperationLeavesNoChange) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    const Status removed = ops().Rmdir("src");
    ASSERT_FALSE(removed.ok());
    EXPECT_EQ(removed.error().sys_errno(), ENOTEMPTY);
    EXPECT_FALSE(ops().Create("small.txt").ok());
    EXPECT_FALSE(ops().Mkdir("src").ok());
    EXPECT_FALSE(ops().Unlink("missing.txt").ok());
    EXPECT_FALSE(ops().Rename("src", "src/components/inside_itself").ok());
  });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoTicket, ACancelledTicketIsNoChangeAndHoldsNothing) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    Result<Ticket> cancelled =
        log().interceptor().BeginCreate({{ops().root_fd(), ""}, "never"}, NodeType::kFile);
    ASSERT_OK(cancelled);
    cancelled->Cancel();
    {
      Result<Ticket> dropped =
          log().interceptor().BeginCreate({{ops().root_fd(), ""}, "never"}, NodeType::kFile);
      ASSERT_OK(dropped);
    }
    EXPECT_OK(ops().WriteNew("real", "the name is free again"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created real"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoTicket, WhatAPersonMakesUnderACancelledNameIsNotTakenAway) {
  StartWith(test::SmallTree);
  InStep([&] {
    log()
        .interceptor()
        .BeginCreate({{ops().root_fd(), ""}, "later.txt"}, NodeType::kFile)
        ->Cancel();
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
  });
  workspace().WriteFile("later.txt", "a person's");
  RollBack();
  EXPECT_EQ(Content("later.txt"), "a person's");
}

TEST_F(UndoTicket, WhatAPersonMakesUnderACancelledNameWithinTheStepIsNotTakenAwayEither) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    const NameRef created{{ops().root_fd(), ""}, "created"},
        linked{{ops().root_fd(), ""}, "linked"};
    const Fd small(::openat(ops().root_fd(), "small.txt", O_PATH | O_CLOEXEC));
    log().interceptor().BeginCreate(created, NodeType::kFile)->Cancel();
    EXPECT_OK(log().interceptor().BeginLink({small.get(), "small.txt"}, linked));  // and dropped
    workspace().WriteFile("created", "a person's");
    workspace().WriteFile("linked", "a person's");
    EXPECT_OK(ops().Overwrite("medium.txt", "changed"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified medium.txt"));
  RollBack();
  EXPECT_EQ(Content("created"), "a person's");
  EXPECT_EQ(Content("linked"), "a person's");
}

// A removal or a rename that was given up, after which a person does the same within the step.
TEST_F(UndoTicket, WhatAPersonDoesAfterACancelledTicketIsNoChangeOfTheStep) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    const NameRef small{{ops().root_fd(), ""}, "small.txt"},
        medium{{ops().root_fd(), ""}, "medium.txt"}, moved{{ops().root_fd(), ""}, "moved.txt"};
    log().interceptor().BeginRemove(small)->Cancel();
    log().interceptor().BeginRename(medium, moved, RenameMode::kReplace)->Cancel();
    EXPECT_EQ(::unlinkat(ops().root_fd(), "small.txt", 0), 0);
    EXPECT_EQ(::renameat(ops().root_fd(), "medium.txt", ops().root_fd(), "moved.txt"), 0);
    EXPECT_OK(ops().WriteNew("made.txt", "x"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created made.txt"));
  RollBack(1, Force::kYes);  // the person's doing is a conflict, and stays
  EXPECT_EQ(Content("small.txt"), "(missing)");
  EXPECT_EQ(Content("medium.txt"), "(missing)");
}

// A bridge that gives up between the operation and its commit: what is on disk decides.
TEST_F(UndoTicket, WhatHappenedBeforeTheTicketWasDroppedIsAChange) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    {
      const auto dropped =
          log().interceptor().BeginCreate({{ops().root_fd(), ""}, "made"}, NodeType::kFile);
      workspace().WriteFile("made", "before the ticket was dropped");
    }
    const auto removed = log().interceptor().BeginRemove({{ops().root_fd(), ""}, "small.txt"});
    EXPECT_EQ(::unlinkat(ops().root_fd(), "small.txt", 0), 0);
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created made", "deleted small.txt"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoTicket, ACancelledRemovalIsNeitherAChangeNorAConflict) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    log().interceptor().BeginRemove({{ops().root_fd(), ""}, "small.txt"})->Cancel();
    EXPECT_OK(ops().WriteNew("made.txt", "x"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created made.txt"));
  workspace().WriteFile("other.txt", "a person's");
  RollBack();
  EXPECT_EQ(Content("other.txt"), "a person's");
}

// The target belongs to someone else, so it cannot be linked (protected_hardlinks) and is moved aside instead.
TEST_F(UndoTicket, AFailedRenameLeavesTheTargetThatWasMovedAside) {
  workspace().WriteFile("from.txt", "from");
  GiveToOrdinaryUser(workspace());
  workspace().WriteFile("to.txt", "to");
  RunForked(
      [&] {
        OpenLog();
        InStep([&] {
          const NameRef from{{ops().root_fd(), ""}, "from.txt"},
              to{{ops().root_fd(), ""}, "to.txt"};
          Result<Ticket> failed = log().interceptor().BeginRename(from, to, RenameMode::kReplace);
          ASSERT_OK(failed);
          EXPECT_OK(failed->Commit(Outcome::Failed(EIO)));
          EXPECT_EQ(Content("to.txt"), "to");
          log().interceptor().BeginRename(from, to, RenameMode::kReplace)->Cancel();
          EXPECT_EQ(Content("to.txt"), "to");
        });
      },
      Who::kOrdinaryUser);
}

TEST_F(UndoTicket, AFailedTruncationLeavesTheContent) {
  const std::string content = Noise(2 << 20);
  workspace().WriteFile("big.bin", content);
  OpenLog();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    for (const bool cancel : {false, true}) {
      const Fd file(::open((workspace().project() + "/big.bin").c_str(), O_PATH | O_CLOEXEC));
      Result<Ticket> ticket = log().interceptor().BeginOpenForWrite(
          {file.get(), "big.bin"}, Truncate::kYes, WriteVisibility::kUnseen);
      ASSERT_OK(ticket);
      if (cancel) {
        ticket->Cancel();
      } else {
        EXPECT_OK(ticket->Commit(Outcome::Failed(EACCES)));
      }
      EXPECT_EQ(Content("big.bin"), content);
    }
  });
  ExpectTree(before);
  EXPECT_THAT(ChangeLines(step), IsEmpty());
}

TEST_F(UndoTicket, ARefusedTruncationLeavesTheContent) {
  const std::string content = Noise(2 << 20);
  workspace().WriteFile("big.bin", content);
  OpenLog();
  if (!log().abilities().exchange || !log().abilities().leases)
    GTEST_SKIP() << "exchange, lease: not supported by " << FileSystemName(workspace().project());
  const StepId step = InStep([&] {
    FoldersRefuseTimes() = true;
    EXPECT_FALSE(ops().TruncateTo("big.bin", 0).ok());
    FoldersRefuseTimes() = false;
    EXPECT_EQ(Content("big.bin"), content);
    EXPECT_THAT(FilesBelow(OpenStepFolder(workspace()) + "/anchors"), IsEmpty());
  });
  EXPECT_EQ(Content("big.bin"), content);
  EXPECT_THAT(ChangeLines(step), IsEmpty());
}

// Its times are not the user's to set, so names in it must not move for a truncation.
TEST_F(UndoTicket, ABigFileInAnothersFolderIsTruncatedAndComesBack) {
  if (!RunningAsRoot()) GTEST_SKIP() << "foreign owners: need root";
  const std::string content = Noise(2 << 20);
  TreeBuilder(workspace().project()).Dir("shared");
  workspace().WriteFile("shared/big.bin", content);
  GiveToOrdinaryUser(workspace());
  const std::string folder = workspace().Path("shared");
  ASSERT_EQ(::chown(folder.c_str(), 0, kOrdinaryUid), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0775), 0);
  test::AgeTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunForked(
      [&] {
        OpenLog();
        InStep([&] { EXPECT_OK(ops().TruncateTo("shared/big.bin", 0)); });
        EXPECT_EQ(Content("shared/big.bin"), "");
        RollBack();
      },
      Who::kOrdinaryUser);
  ExpectTree(before);
}

TEST_F(UndoTicket, AnOperationWhoseTicketWasDroppedIsStillTakenBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    {
      Result<Ticket> create =
          log().interceptor().BeginCreate({{ops().root_fd(), ""}, "made"}, NodeType::kFile);
      ASSERT_OK(create);
      workspace().WriteFile("made", "without a commit");
    }
    Result<Ticket> remove = log().interceptor().BeginRemove({{ops().root_fd(), ""}, "small.txt"});
    ASSERT_OK(remove);
    if (!remove->performed()) EXPECT_EQ(::unlinkat(ops().root_fd(), "small.txt", 0), 0);
  });
}

// A file below `depth` folders, opened by a name at the top that is gone by now: only a search finds the one that is left.
Fd OpenByALostName(const TempWorkspace& workspace, int depth) {
  workspace.WriteFile("top", "original");
  Fd dir(::open(workspace.project().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd root(::openat(dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    EXPECT_EQ(::mkdirat(dir.get(), "d", 0755), 0);
    dir = Fd(::openat(dir.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  Fd file(::openat(root.get(), "top", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::linkat(root.get(), "top", dir.get(), "deep", 0), 0);
  EXPECT_EQ(::unlinkat(root.get(), "top", 0), 0);
  return file;
}

TEST_F(UndoTicket, AFileBelowSevenHundredFoldersIsFoundWithoutItsPath) {
  const Fd file = OpenByALostName(workspace(), 700);
  OpenLog();
  ASSERT_OK(log().OpenStep({}));
  {
    auto ticket = log().interceptor().BeginContent({file.get()}, ContentChange::Whole());
    ASSERT_OK(ticket);
    ASSERT_EQ(::pwrite(file.get(), "CHANGED!", 8, 0), 8);
    EXPECT_OK(ticket->Commit(Outcome::Done()));
    auto chmod = log().interceptor().BeginMetadata({file.get()});
    ASSERT_OK(chmod);
    ASSERT_EQ(::fchmod(file.get(), 0600), 0);
    EXPECT_OK(chmod->Commit(Outcome::Done()));
  }
  struct stat before{};
  EXPECT_OK(log().CloseStep());
  RollBack();
  ASSERT_EQ(::fstat(file.get(), &before), 0);
  EXPECT_EQ(before.st_mode & 0777, 0644u);
  char text[9] = {};
  EXPECT_EQ(::pread(file.get(), text, 8, 0), 8);
  EXPECT_STREQ(text, "original");
}

TEST_F(UndoTicket, WhatMayHaveANameInAFolderThatCannotBeSearchedIsRefused) {
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        const Fd file = OpenByALostName(workspace(), 2);
        OpenLog();
        ASSERT_EQ(::chmod(workspace().Path("d").c_str(), 0000), 0);
        ASSERT_OK(log().OpenStep({}));
        EXPECT_CODE(log().interceptor().BeginContent({file.get()}, ContentChange::Whole()),
                    Code::kUnsupported);
        EXPECT_CODE(log().interceptor().BeginMetadata({file.get()}), Code::kUnsupported);
        EXPECT_CODE(log().interceptor().BeginLink({file.get()}, {{ops().root_fd(), ""}, "again"}),
                    Code::kUnsupported);
        ASSERT_EQ(::chmod(workspace().Path("d").c_str(), 0755), 0);
        EXPECT_OK(log().interceptor().BeginContent({file.get()}, ContentChange::Whole()));
        CloseLog();
      },
      Who::kOrdinaryUser);
}

// Another thread's write that ends between the look-up of a name and the moment when its object is held.
TEST_F(UndoTicket, WhatLosesItsNameIsKeptAsItIsOnceItIsHeld) {
  StartWith([&](const std::string&) {
    for (const char* path : {"removed", "replaced"}) workspace().WriteFile(path, Noise(300'000));
    workspace().WriteFile("other", "x");
  });
  const TreeSnapshot before = Snapshot();
  for (const char* path : {"removed", "replaced"}) {
    // Open for writing meanwhile, so that its content is kept beside the inode.
    const Fd writer(::open(workspace().Path(path).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    InStep([&] {
      EXPECT_OK(ops().WriteAt(path, 0, "a range", WriteVisibility::kAnnounced));
      WhileAnObjectIsIdentified() = [&] {
        const ObjectRef object{writer.get(), path};
        auto ticket = log().interceptor().BeginContent(object, ContentChange::Range(300'000, 5000));
        ASSERT_OK(ticket);
        EXPECT_OK(WriteFully(writer.get(), AsBytes(Noise(5000))));
        EXPECT_OK(ticket->Commit(Outcome::Done()));
      };
      EXPECT_OK(path == std::string("removed") ? ops().Unlink(path) : ops().Rename("other", path));
      EXPECT_FALSE(WhileAnObjectIsIdentified());
    });
  }
  RollBack(2);
  ExpectTree(before);
}

// A bridge has a folder open that is removed before it says what it will do there, and maybe made again.
class UndoDeadFolder : public UndoTest {
 protected:
  void SetUp() override {
    StartWith(test::SmallTree);
    before_ = Snapshot();
  }
  Fd OpenFolder() const {
    return Fd(::open(workspace().Path("made").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void ExpectRefused(const Fd& dead) {
    const NameRef at{{dead.get(), "made"}, "x"}, small{{ops().root_fd(), ""}, "small.txt"};
    Interceptor& interceptor = log().interceptor();
    EXPECT_CODE(interceptor.BeginCreate(at, NodeType::kFile), Code::kNotFound);
    EXPECT_CODE(interceptor.BeginRemove(at), Code::kNotFound);
    EXPECT_CODE(interceptor.BeginRename(small, at, RenameMode::kReplace), Code::kNotFound);
    const Fd file(::openat(ops().root_fd(), "small.txt", O_PATH | O_CLOEXEC));
    EXPECT_CODE(interceptor.BeginLink({file.get(), "small.txt"}, at), Code::kNotFound);
  }
  // A step that does something else as well.
  void TryInAStep(const Fd& dead) {
    const StepId step = InStep([&] {
      EXPECT_OK(ops().TruncateTo("medium.txt", 1));
      ExpectRefused(dead);
    });
    EXPECT_THAT(ChangeLines(step), ElementsAre("modified medium.txt"));
    EXPECT_THAT(Barriers(), IsEmpty());
  }

  TreeSnapshot before_;
};

TEST_F(UndoDeadFolder, OneThatARollbackTookAwayIsRefused) {
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  const Fd dead = OpenFolder();
  RollBack();
  TryInAStep(dead);
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoDeadFolder, OneThatARollbackTookAwayIsNotTakenForItsSuccessor) {
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  const Fd dead = OpenFolder();
  RollBack();
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  TryInAStep(dead);
  RollBack(2);
  ExpectTree(before_);
}

TEST_F(UndoDeadFolder, OneThatTheStepBeforeRemovedIsRefused) {
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  const Fd dead = OpenFolder();
  InStep([&] { EXPECT_OK(ops().Rmdir("made")); });
  TryInAStep(dead);
  RollBack(3);
  ExpectTree(before_);
}

TEST_F(UndoDeadFolder, OneThatTheStepBeforeRemovedIsNotTakenForItsSuccessor) {
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  const Fd dead = OpenFolder();
  InStep([&] {
    EXPECT_OK(ops().Rmdir("made"));
    EXPECT_OK(ops().Mkdir("made"));
  });
  TryInAStep(dead);
  RollBack(3);
  ExpectTree(before_);
}

TEST_F(UndoDeadFolder, OneThatTheStepItselfRemovedIsRefused) {
  InStep([&] {
    EXPECT_OK(ops().WriteNew("lasting", "a change"));
    for (int i = 0; i < 2; ++i) {
      EXPECT_OK(ops().Mkdir("made"));
      const Fd dead = OpenFolder();
      EXPECT_OK(ops().WriteNew("made/x", "seen alive"));
      EXPECT_OK(ops().Unlink("made/x"));
      EXPECT_OK(ops().Rmdir("made"));
      ExpectRefused(dead);
      EXPECT_OK(ops().Mkdir("made"));
      ExpectRefused(dead);
      EXPECT_OK(ops().WriteNew("made/y", "in its successor"));
      const Fd replaced = OpenFolder();
      EXPECT_OK(ops().Unlink("made/y"));
      EXPECT_OK(ops().Mkdir("other"));
      EXPECT_OK(ops().Rename("other", "made"));
      ExpectRefused(replaced);
      EXPECT_OK(ops().Rmdir("made"));
    }
  });
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoDeadFolder, OneThatAPersonMovedAwayIsRefused) {
  const std::string outside = workspace().root() + "/outside";
  workspace().MakeDir("made");
  const Fd moved = OpenFolder();
  ASSERT_EQ(::rename(workspace().Path("made").c_str(), outside.c_str()), 0);
  before_ = Snapshot();
  TryInAStep(moved);
  RollBack();
  ExpectTree(before_);
}

}  // namespace
}  // namespace sandglass::undo

// Everything about a file but its bytes: undo brings it back exactly, for root and for an ordinary user.
//
// Each test builds a tree, changes it in a step, rolls back, redoes and rolls back again, each in a process of its own that
// reopens the log; the comparison is done by the test's process, which can read what the ordinary user cannot.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "tests/support/inode_flags.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::MustCall;
using ::testing::IsEmpty;

class UndoMetadata : public UndoTest {
 protected:
  using Build = std::function<void(const TreeBuilder& tree)>;

  void SetUp() override {
    umask_ = ::umask(022);
    GiveToOrdinaryUser(workspace());
  }
  void TearDown() override { ::umask(umask_); }

  virtual Who who() const { return Who::kSelf; }
  void Fork(const std::function<void()>& body) const { RunForked(body, who()); }

  // `build` makes the tree, whose times are then made old; `finish` does what must come after that.
  void ExpectExact(const Build& build, const std::function<void()>& change,
                   const Build& finish = {}) {
    Fork([&] {
      const TreeBuilder tree(workspace().project());
      build(tree);
      test::AgeTree(workspace().project());
      if (finish) finish(tree);
    });
    ExpectExact(change);
  }

  // The same for a tree that exists.
  void ExpectExact(const std::function<void()>& change) {
    const TreeSnapshot before = Snapshot();
    Fork([&] {
      OpenLog();
      InStep(change);
    });
    const TreeSnapshot after = Snapshot();
    EXPECT_FALSE(test::Diff(before, after).empty()) << "the step did nothing";
    Rewind([&] { RollBack(); }, before);
    Rewind([&] { RedoSteps(); }, after);
    Rewind([&] { RollBack(); }, before);
  }

  void Rewind(const std::function<void()>& rewind, const TreeSnapshot& wanted) {
    Fork([&] {
      OpenLog();
      rewind();
    });
    test::CompareOptions options;
    // Without root's rights, what the owner locked away cannot be seen.
    if (!RunningAsRoot()) options.check_unreadable = test::Check::kNo;
    EXPECT_TRUE(test::TreesEqual(wanted, Snapshot(), options));
  }

  // The reason of a skip when a probe on a scratch file in the store's parent says no.
  std::optional<std::string> WhyNot(const char* what,
                                    const std::function<int(const TreeBuilder&)>& probe) const {
    const TreeBuilder scratch(workspace().root());
    scratch.File("probe", "");
    const int refused = probe(scratch);
    scratch.ClearFlags("probe", FS_IMMUTABLE_FL | FS_APPEND_FL);
    scratch.Remove("probe");
    if (refused == 0) return std::nullopt;
    return fmt::format("{}: not supported by {}", what, FileSystemName(workspace().root()));
  }
  std::optional<std::string> WhyNoUserXattrs() const {
    return WhyNot("user xattrs",
                  [](const TreeBuilder& tree) { return tree.Xattr("probe", "user.test", "x"); });
  }
  std::optional<std::string> WhyNoAcls() const {
    return WhyNot("ACLs", [](const TreeBuilder& tree) {
      return tree.Xattr("probe", "system.posix_acl_access", test::SampleAcl());
    });
  }
  std::optional<std::string> WhyNoFlags(uint32_t flags) const {
    return WhyNot("inode flags",
                  [flags](const TreeBuilder& tree) { return tree.AddFlags("probe", flags); });
  }

 private:
  mode_t umask_ = 022;
};

// Runs as root and as an ordinary user.
class UndoMetadataForAll : public UndoMetadata, public ::testing::WithParamInterface<Who> {
 protected:
  Who who() const override { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(, UndoMetadataForAll, ::testing::Values(Who::kSelf, Who::kOrdinaryUser),
                         [](const auto& info) {
                           return info.param == Who::kSelf ? "Self" : "OrdinaryUser";
                         });

void Nested(const TreeBuilder& tree) {
  tree.Dir("dir", 0750);
  tree.Dir("dir/inner", 0711);
  tree.Dir("other");
  tree.File("file", "content", 0640);
  tree.File("dir/file", "content of dir/file", 0604);
  tree.File("dir/inner/file", "content of dir/inner/file");
}

TEST_P(UndoMetadataForAll, DirectoriesGetTheirModeAndTimesBack) {
  ExpectExact(Nested, [&] {
    EXPECT_OK(ops().Chmod("dir", 0700));
    EXPECT_OK(ops().Chmod("dir/inner", 0777));
    EXPECT_OK(ops().SetMtime("dir/inner", 1'700'000'000'123'456'789));
    EXPECT_OK(ops().WriteNew("dir/new", "x"));
    EXPECT_OK(ops().Unlink("dir/inner/file"));
  });
}

TEST_P(UndoMetadataForAll, TheProjectsRootGetsItsMetadataBack) {
  ExpectExact(Nested, [&] {
    EXPECT_OK(ops().Chmod("", 0711));
    EXPECT_OK(ops().WriteNew("new", "x"));
    EXPECT_OK(ops().SetMtime("", 1'700'000'000'000'000'001));
  });
}

TEST_P(UndoMetadataForAll, TheRootsXattrsComeBack) {
  if (const auto why = WhyNoUserXattrs()) GTEST_SKIP() << *why;
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        MustCall(tree.Xattr(".", "user.old", "value") == 0 ? 0 : -1, "setxattr");
      },
      [&] {
        EXPECT_OK(ops().SetXattr("", "user.old", "changed"));
        EXPECT_OK(ops().SetXattr("", "user.new", "value"));
      });
}

TEST_P(UndoMetadataForAll, BothParentsOfARenameGetTheirTimesBack) {
  ExpectExact(Nested, [&] {
    EXPECT_OK(ops().Rename("dir/inner/file", "other/file"));
    EXPECT_OK(ops().Rename("dir/inner", "other/inner"));
    EXPECT_OK(ops().Rename("file", "other/inner/file"));
  });
}

TEST_P(UndoMetadataForAll, ADeletedTreeGetsEveryDirectorysTimesBack) {
  ExpectExact(Nested, [&] { EXPECT_OK(ops().RemoveTree("dir")); });
}

TEST_P(UndoMetadataForAll, MtimesAreExactToTheNanosecond) {
  const Build set_odd_times = [](const TreeBuilder& tree) {
    tree.Mtime("file", {.sec = -86'401, .nsec = 123'456'789});
    tree.Mtime("dir/file", {.sec = 1'234'567'890, .nsec = 1});
    tree.Mtime("dir/inner/file", {.sec = 2'114'380'800, .nsec = 999'999'999});
    tree.Mtime("other", {.sec = 5, .nsec = 999'999'999});
  };
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().Overwrite("file", "new"));
        EXPECT_OK(ops().WriteAt("dir/file", 3, "x", WriteVisibility::kAnnounced));
        EXPECT_OK(ops().Unlink("dir/inner/file"));
        EXPECT_OK(ops().WriteNew("other/new", "x"));
        EXPECT_OK(ops().SetMtime("dir", 42));
      },
      set_odd_times);
}

TEST_P(UndoMetadataForAll, XattrsOfFilesAndDirectoriesComeBack) {
  if (const auto why = WhyNoUserXattrs()) GTEST_SKIP() << *why;
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        for (const char* path : {"file", "dir", "dir/file", "dir/inner/file"}) {
          MustCall(tree.Xattr(path, "user.first", std::string("bin\0ary\xff", 8)) == 0 ? 0 : -1,
                   "setxattr");
          MustCall(tree.Xattr(path, "user.empty", "") == 0 ? 0 : -1, "setxattr");
        }
      },
      [&] {
        EXPECT_OK(ops().SetXattr("file", "user.first", "changed"));
        EXPECT_OK(ops().SetXattr("file", "user.second", "added"));
        EXPECT_OK(ops().RemoveXattr("dir", "user.empty"));
        EXPECT_OK(ops().Overwrite("dir/file", "content changes too"));
        EXPECT_OK(ops().RemoveXattr("dir/file", "user.first"));
        EXPECT_OK(ops().RemoveTree("dir/inner"));
      });
}

TEST_P(UndoMetadataForAll, AclsAndDefaultAclsComeBack) {
  if (const auto why = WhyNoAcls()) GTEST_SKIP() << *why;
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        MustCall(tree.Xattr("file", "system.posix_acl_access", test::SampleAcl()) == 0 ? 0 : -1,
                 "set ACL");
        MustCall(tree.Xattr("dir", "system.posix_acl_default", test::SampleAcl()) == 0 ? 0 : -1,
                 "set default ACL");
      },
      [&] {
        EXPECT_OK(ops().Chmod("file", 0600));  // changes the mask of the ACL
        EXPECT_OK(ops().SetXattr("dir/file", "system.posix_acl_access", test::SampleAcl()));
        EXPECT_OK(ops().RemoveXattr("dir", "system.posix_acl_default"));
        EXPECT_OK(ops().SetXattr("other", "system.posix_acl_default", test::SampleAcl()));
        EXPECT_OK(ops().WriteNew("other/inherits", "x"));
      });
}

// What is made again below a directory with a default ACL inherits it, unless that is taken off again.
TEST_P(UndoMetadataForAll, WhatComesBackBelowADefaultAclInheritsNothing) {
  if (const auto why = WhyNoAcls()) GTEST_SKIP() << *why;
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        MustCall(tree.Xattr("dir", "system.posix_acl_default", test::SampleAcl()) == 0 ? 0 : -1,
                 "set default ACL");
      },
      [&] {
        EXPECT_OK(ops().RemoveTree("dir/inner"));
        EXPECT_OK(ops().Unlink("dir/file"));
      });
}

TEST_P(UndoMetadataForAll, ASetgidDirectoryDoesNotLeaveItsMarkOnWhatComesBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        tree.Mode("dir", 02770);
      },
      [&] {
        EXPECT_OK(ops().RemoveTree("dir/inner"));
        EXPECT_OK(ops().Mkdir("dir/made"));
        EXPECT_OK(ops().Unlink("dir/file"));
      });
}

TEST_P(UndoMetadataForAll, InodeFlagsComeBack) {
  if (const auto why = WhyNoFlags(FS_NODUMP_FL)) GTEST_SKIP() << *why;
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().SetFlags("file", 0));
        EXPECT_OK(ops().SetFlags("dir/file", FS_NODUMP_FL));
        EXPECT_OK(ops().SetFlags("other", FS_NODUMP_FL));
        EXPECT_OK(ops().RemoveTree("dir/inner"));
      },
      [](const TreeBuilder& tree) {
        for (const char* path : {"file", "dir/inner", "dir/inner/file"}) {
          MustCall(tree.AddFlags(path, FS_NODUMP_FL) == 0 ? 0 : -1, "set flags");
        }
      });
}

TEST_P(UndoMetadataForAll, SparseFilesStaySparse) {
  constexpr uint64_t kSize = 64u << 20;
  ExpectExact(
      [](const TreeBuilder& tree) {
        for (const char* path : {"truncated", "overwritten", "in_place", "deleted", "grown"}) {
          tree.SparseFile(path, kSize, 33'000'000, "data between two holes");
        }
      },
      [&] {
        EXPECT_OK(ops().TruncateTo("truncated", 5));
        EXPECT_OK(ops().Overwrite("overwritten", "short"));
        EXPECT_OK(ops().WriteAt("in_place", 33'000'005, "DATA", WriteVisibility::kUnseen));
        EXPECT_OK(ops().Unlink("deleted"));
        EXPECT_OK(ops().WriteAt("grown", kSize + 1000, "more", WriteVisibility::kAnnounced));
      });
  for (const char* path : {"truncated", "overwritten", "in_place", "deleted", "grown"}) {
    EXPECT_LT(StatOf(path).st_blocks * 512, 4 << 20) << path;
  }
}

TEST_P(UndoMetadataForAll, FifosAndSocketsComeBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        tree.Fifo("fifo");
        tree.Socket("dir/socket");
        tree.Fifo("dir/inner/fifo");
      },
      [&] {
        EXPECT_OK(ops().Unlink("fifo"));
        EXPECT_OK(ops().Rename("dir/socket", "socket"));
        EXPECT_OK(ops().Chmod("socket", 0600));
        EXPECT_OK(ops().RemoveTree("dir/inner"));
        EXPECT_OK(ops().Mknod("other/fifo", NodeType::kFifo, 0622));
        EXPECT_OK(ops().Mknod("other/socket", NodeType::kSocket, 0600));
      });
}

TEST_P(UndoMetadataForAll, SetuidSetgidAndStickyComeBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        tree.File("setuid", "program", 04755);
        tree.File("setgid", "program", 02755);
        tree.File("all", "program", 07777);
        tree.Dir("sticky", 01777);
      },
      [&] {
        EXPECT_OK(ops().Overwrite("setuid", "writing takes the bit off unless root does it"));
        EXPECT_OK(ops().Chmod("setgid", 0755));
        EXPECT_OK(ops().Unlink("all"));
        EXPECT_OK(ops().Rmdir("sticky"));
        EXPECT_OK(ops().Chmod("file", 06777));
        EXPECT_OK(ops().WriteNew("new", "x", 04711));
      });
}

TEST_P(UndoMetadataForAll, FilesOfMode000ComeBack) {
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().Unlink("dir/file"));
        EXPECT_OK(ops().Chmod("file", 0600));
        EXPECT_OK(ops().Overwrite("file", "opened, changed"));
        EXPECT_OK(ops().Chmod("file", 0));
        EXPECT_OK(ops().Rename("dir/inner/file", "moved"));
        EXPECT_OK(ops().WriteNew("new", "x", 0));
      },
      [](const TreeBuilder& tree) {
        for (const char* path : {"file", "dir/file", "dir/inner/file"}) tree.Mode(path, 0);
      });
}

TEST_P(UndoMetadataForAll, DirectoriesOfMode0555ComeBack) {
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().Chmod("dir/inner", 0755));
        EXPECT_OK(ops().Unlink("dir/inner/file"));
        EXPECT_OK(ops().WriteNew("dir/inner/new", "x"));
        EXPECT_OK(ops().Chmod("dir/inner", 0555));
        EXPECT_OK(ops().Overwrite("dir/file", "a file in a read-only directory"));
      },
      [](const TreeBuilder& tree) {
        tree.Mode("dir/inner", 0555);
        tree.Mode("dir", 0555);
      });
}

TEST_P(UndoMetadataForAll, AReadOnlyFileInAReadOnlyDirectoryComesBack) {
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().Chmod("dir/file", 0644));
        EXPECT_OK(ops().Overwrite("dir/file", "written and closed again"));
        EXPECT_OK(ops().Chmod("dir/file", 0444));
      },
      [](const TreeBuilder& tree) {
        tree.Mode("dir/file", 0444);
        tree.Mode("dir", 0555);
      });
}

TEST_P(UndoMetadataForAll, ADirectoryThatTheStepClosedIsStillTakenBack) {
  ExpectExact(Nested, [&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/file", "x"));
    EXPECT_OK(ops().Mkdir("made/deep"));
    EXPECT_OK(ops().WriteNew("made/deep/file", "x"));
    EXPECT_OK(ops().Chmod("made/deep", 0));
    EXPECT_OK(ops().Chmod("made", 0555));
    EXPECT_OK(ops().WriteNew("dir/inner/new", "x"));
    EXPECT_OK(ops().Unlink("dir/inner/file"));
    EXPECT_OK(ops().Chmod("dir/inner", 0555));
    EXPECT_OK(ops().Chmod("dir", 0));
  });
}

TEST_P(UndoMetadataForAll, ADeletedTreeOfReadOnlyDirectoriesComesBack) {
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().Chmod("dir", 0755));
        EXPECT_OK(ops().Chmod("dir/inner", 0755));
        EXPECT_OK(ops().RemoveTree("dir"));
      },
      [](const TreeBuilder& tree) {
        tree.Mode("dir/inner/file", 0444);
        tree.Mode("dir/inner", 0555);
        tree.Mode("dir", 0555);
      });
}

const std::string kOddNames[] = {
    std::string(255, 'n'), "new\nline", "invalid\xff\xfe\x80utf8", " space ", "-rf", "*", "...",
    "back\\slash",         "\x01",
};

TEST_P(UndoMetadataForAll, OddNamesComeBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        tree.Dir("names");
        for (const std::string& name : kOddNames) {
          tree.File("names/" + name, "content of " + name);
          tree.Dir(name);
          tree.File(name + "/" + name, name);
        }
      },
      [&] {
        int i = 0;
        for (const std::string& name : kOddNames) {
          const std::string path = "names/" + name;
          switch (i++ % 3) {
            case 0:
              EXPECT_OK(ops().Unlink(path));
              break;
            case 1:
              EXPECT_OK(ops().Overwrite(path, "changed"));
              break;
            default:
              EXPECT_OK(ops().Rename(path, name + "/moved"));
              break;
          }
          if (i % 2 == 0) EXPECT_OK(ops().RemoveTree(name));
        }
        EXPECT_OK(ops().WriteNew("names/created\xff\n" + std::string(240, 'c'), "x"));
        EXPECT_OK(ops().Symlink("odd\xff\ntarget", "names/link\n"));
      });
}

TEST_P(UndoMetadataForAll, PathsLongerThanPathMaxWork) {
  Fork([&] { test::WeirdTree(workspace().project(), test::LockedFiles::kOmit); });
  const std::string bottom = test::WeirdTreeLongPath();
  const std::string dir = bottom.substr(0, bottom.rfind('/'));
  ASSERT_GT(dir.size(), 4096u);
  ExpectExact([&] {
    EXPECT_OK(ops().Overwrite(bottom, "changed at depth"));
    EXPECT_OK(ops().Chmod(dir + "/linked_1", 0600));
    EXPECT_OK(ops().Unlink(dir + "/symlink"));
    EXPECT_OK(ops().Rename(dir + "/empty", dir + "/renamed"));
    EXPECT_OK(ops().WriteNew(dir + "/renamed/new", "new at depth"));
    EXPECT_OK(ops().Unlink(dir + "/linked_2"));
  });
  ExpectExact([&] { EXPECT_OK(ops().RemoveTree("long")); });
}

TEST_P(UndoMetadataForAll, AWholeTreeOfOdditiesIsDeletedAndComesBack) {
  Fork([&] { test::WeirdTree(workspace().project(), test::LockedFiles::kOmit); });
  ExpectExact([&] {
    for (const char* path : {"closed/dir_0555/sub", "closed/dir_0555", "closed/dir_0000"}) {
      EXPECT_OK(ops().Chmod(path, 0755));
    }
    for (const std::string& name : NamesIn(workspace().project()))
      EXPECT_OK(ops().RemoveTree(name)) << name;
    EXPECT_THAT(NamesIn(workspace().project()), IsEmpty());
  });
}

TEST_P(UndoMetadataForAll, EveryEntryOfATreeOfOdditiesGetsItsMetadataBack) {
  Fork([&] { test::WeirdTree(workspace().project(), test::LockedFiles::kOmit); });
  ExpectExact([&] {
    int changed = 0;
    const TreeSnapshot tree = Snapshot();
    for (const test::EntrySnapshot& entry : tree.entries()) {
      if (entry.path.starts_with("closed/")) continue;
      changed += ops().SetMtime(entry.path, 1'650'000'000'000'000'007).ok() ? 1 : 0;
      if (!S_ISLNK(entry.mode))
        changed += ops().Chmod(entry.path, S_ISDIR(entry.mode) ? 0711 : 0604).ok() ? 1 : 0;
    }
    EXPECT_GT(changed, 100);
  });
}

TEST_P(UndoMetadataForAll, XattrsOfFilesThatTheirOwnerMayNotReadComeBack) {
  if (const auto why = WhyNoUserXattrs()) GTEST_SKIP() << *why;
  ExpectExact(
      [](const TreeBuilder& tree) {
        for (const char* path : {"closed", "readonly", "opened", "renamed", "removed", "written"}) {
          tree.File(path, "content");
          MustCall(tree.Xattr(path, "user.a", "1") == 0 ? 0 : -1, "set xattr");
        }
        for (const char* path : {"opened", "renamed", "removed", "written"}) tree.Mode(path, 0);
      },
      [&] {
        EXPECT_OK(ops().SetXattr("closed", "user.a", "2"));
        EXPECT_OK(ops().Chmod("closed", 0));
        EXPECT_OK(ops().SetXattr("readonly", "user.a", "2"));
        EXPECT_OK(ops().SetXattr("readonly", "user.b", "3"));
        EXPECT_OK(ops().Chmod("readonly", 0444));
        EXPECT_OK(ops().Chmod("opened", 0600));
        EXPECT_OK(ops().SetXattr("opened", "user.a", "2"));
        EXPECT_OK(ops().Rename("renamed", "elsewhere"));
        EXPECT_OK(ops().Unlink("removed"));
        EXPECT_OK(ops().Chmod("written", 0200));
        EXPECT_OK(ops().Overwrite("written", "new content"));
      });
}

// Only root can set these up.

class UndoMetadataOfRoot : public UndoMetadata {
 protected:
  void SetUp() override {
    if (!RunningAsRoot()) GTEST_SKIP() << "foreign owners: need root";
    UndoMetadata::SetUp();
  }
};

TEST_F(UndoMetadataOfRoot, OwnersComeBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        tree.Symlink("link", "file");
        for (const char* path : {"file", "link", "dir/file", "dir/inner", "dir/inner/file"}) {
          MustCall(tree.Owner(path, 12345, 54321) == 0 ? 0 : -1, "chown");
        }
      },
      [&] {
        EXPECT_OK(ops().Chown("file", 1, 2));
        EXPECT_OK(ops().Chown("link", 3, 4));
        EXPECT_OK(ops().Chown("dir", 5, 6));
        EXPECT_OK(ops().Overwrite("dir/file", "changed"));
        EXPECT_OK(ops().RemoveTree("dir/inner"));
      });
}

TEST_F(UndoMetadataOfRoot, DeviceNodesComeBack) {
  ExpectExact(
      [](const TreeBuilder& tree) {
        Nested(tree);
        MustCall(tree.Device("null", S_IFCHR, 1, 3) == 0 ? 0 : -1, "mknod");
        MustCall(tree.Device("dir/disk", S_IFBLK, 7, 300) == 0 ? 0 : -1, "mknod");
      },
      [&] {
        EXPECT_OK(ops().Unlink("null"));
        EXPECT_OK(ops().RemoveTree("dir"));
        EXPECT_OK(ops().Mknod("zero", NodeType::kCharDevice, 0666, makedev(1, 5)));
      });
}

TEST_F(UndoMetadataOfRoot, TrustedXattrsAndCapabilitiesComeBack) {
  if (const auto why = WhyNot("security.capability", [](const TreeBuilder& tree) {
        return tree.Xattr("probe", "security.capability", test::SampleCapability());
      })) {
    GTEST_SKIP() << *why;
  }
  ExpectExact(
      [](const TreeBuilder& tree) {
        for (const char* path : {"written", "truncated", "deleted", "chowned"}) {
          tree.File(path, "program", 0755);
          MustCall(tree.Xattr(path, "security.capability", test::SampleCapability()) == 0 ? 0 : -1,
                   "set capability");
          MustCall(tree.Xattr(path, "trusted.note", "only for root") == 0 ? 0 : -1,
                   "set trusted xattr");
        }
      },
      [&] {
        EXPECT_OK(ops().WriteAt("written", 0, "the kernel takes the capability off",
                                WriteVisibility::kUnseen));
        EXPECT_OK(ops().Overwrite("truncated", "here too"));
        EXPECT_OK(ops().Unlink("deleted"));
        EXPECT_OK(ops().Chown("chowned", 1, 1));
      });
}

TEST_F(UndoMetadataOfRoot, ImmutableAndAppendOnlyComeBack) {
  if (const auto why = WhyNoFlags(FS_IMMUTABLE_FL)) GTEST_SKIP() << *why;
  ExpectExact(
      Nested,
      [&] {
        EXPECT_OK(ops().SetFlags("file", 0));
        EXPECT_OK(ops().Overwrite("file", "unlocked and changed"));
        EXPECT_OK(ops().SetFlags("dir/file", 0));
        EXPECT_OK(ops().Unlink("dir/file"));
        EXPECT_OK(ops().WriteNew("made", "locked by the step"));
        EXPECT_OK(ops().SetFlags("made", FS_IMMUTABLE_FL));
        EXPECT_OK(ops().SetFlags("dir/inner/file", FS_APPEND_FL));
        EXPECT_OK(ops().WriteNew("other/new", "x"));
        EXPECT_OK(ops().SetFlags("other", FS_IMMUTABLE_FL));
      },
      [](const TreeBuilder& tree) {
        MustCall(tree.AddFlags("file", FS_IMMUTABLE_FL) == 0 ? 0 : -1, "set flags");
        MustCall(tree.AddFlags("dir/file", FS_APPEND_FL) == 0 ? 0 : -1, "set flags");
      });
}

// The ordinary user in a folder of theirs that holds files of others.
class UndoForeignFiles : public UndoMetadataOfRoot {
 protected:
  void SetUp() override {
    UndoMetadataOfRoot::SetUp();
    if (IsSkipped()) return;
    Fork([&] { Nested(TreeBuilder(workspace().project())); });
    const TreeBuilder tree(workspace().project());
    tree.File("roots", "root's file", 0644);
    tree.File("shared", "anyone may write", 0666);
    MustCall(tree.Owner("roots", 0, 0) == 0 ? 0 : -1, "chown");
    MustCall(tree.Owner("shared", 0, 0) == 0 ? 0 : -1, "chown");
    test::AgeTree(workspace().project());
  }
  Who who() const override { return Who::kOrdinaryUser; }
};

// A link to another's file is refused (protected_hardlinks), so it has to come and go by rename.
TEST_F(UndoForeignFiles, AnothersFileIsDeletedAndComesBackWithItsOwner) {
  ExpectExact([&] {
    EXPECT_OK(ops().Unlink("roots"));
    EXPECT_OK(ops().Rename("file", "shared"));
  });
  const TreeSnapshot now = Snapshot();
  ASSERT_TRUE(now.Find("roots") != nullptr && now.Find("shared") != nullptr);
  EXPECT_EQ(now.Find("roots")->uid, 0u);
  EXPECT_EQ(now.Find("shared")->uid, 0u);
}

TEST_F(UndoForeignFiles, AnothersFileIsWrittenAndComesBackInPlace) {
  const ino_t inode = StatOf("shared").st_ino;
  const TreeSnapshot before = Snapshot();
  Fork([&] {
    OpenLog();
    // Its times cannot be put back by someone who may only write to it: then the write is refused, and nothing happens.
    ASSERT_OK(log().OpenStep({}));
    const Status written = ops().Overwrite("shared", "by another user");
    if (!written.ok()) EXPECT_CODE(written, Code::kNotRestorable);
    EXPECT_OK(log().CloseStep());
    if (written.ok()) RollBack();
  });
  ExpectTree(before);
  EXPECT_EQ(StatOf("shared").st_ino, inode);
}

TEST_F(UndoForeignFiles, WhatTheUserCouldNotRestoreIsRefusedAndStays) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    const std::string options = fmt::format("size=64m,uid={0},gid={0},mode=0700", kOrdinaryUid);
    MustCall(::mount("none", workspace().store().c_str(), "tmpfs", 0, options.c_str()),
             "mount tmpfs");
    const TreeSnapshot before = Snapshot();
    RunForked(
        [&] {
          OpenLog();
          ASSERT_OK(log().OpenStep({}));
          // Neither link nor rename reaches this store, and a copy would belong to the user.
          EXPECT_CODE(ops().Unlink("roots"), Code::kNotRestorable);
          EXPECT_CODE(ops().Rename("file", "shared"), Code::kNotRestorable);
          EXPECT_OK(log().CloseStep());
        },
        Who::kOrdinaryUser);
    ExpectTree(before);
  });
}

TEST_F(UndoForeignFiles, AFolderWithAnAttributeOfRootsIsNotRemoved) {
  const TreeBuilder tree(workspace().project());
  if (tree.Xattr("dir/inner", "security.sandglass", "root's") != 0)
    GTEST_SKIP() << "security.*: not supported by " << FileSystemName(workspace().project());
  const TreeSnapshot before = Snapshot();
  Fork([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Unlink("dir/inner/file"));
    EXPECT_CODE(ops().Rmdir("dir/inner"), Code::kNotRestorable);
    EXPECT_OK(log().CloseStep());
    RollBack();
  });
  ExpectTree(before);
}

TEST_F(UndoForeignFiles, AProgramWithCapabilitiesIsNotOpenedForWriting) {
  const TreeBuilder tree(workspace().project());
  if (tree.Xattr("dir/file", "security.capability", test::SampleCapability()) != 0) {
    GTEST_SKIP() << "security.capability: not supported by "
                 << FileSystemName(workspace().project());
  }
  const TreeSnapshot before = Snapshot();
  Fork([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    // Writing takes the capability off, and only root could put it back.
    EXPECT_CODE(ops().Overwrite("dir/file", "x"), Code::kNotRestorable);
    EXPECT_CODE(ops().WriteAt("dir/file", 0, "x", WriteVisibility::kUnseen), Code::kNotRestorable);
    EXPECT_OK(log().CloseStep());
  });
  ExpectTree(before);
}

}  // namespace
}  // namespace sandglass::undo

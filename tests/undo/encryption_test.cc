// Encrypted folders (fscrypt), on an ext4 image of our own: kept content never leaves the project's encryption.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fscrypt.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "base/fd.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kKeyBytes = 64;

void RunCommand(const std::string& command) {
  if (std::system(command.c_str()) != 0) test::SetupFailed(Error(Code::kIo, command));
}

Fd OpenDir(const std::string& path) {
  return Fd(MustCall(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open " + path));
}

// Gives a key (64 times `byte`) to the file system of `dir`, and makes the empty folder `dir` encrypted with it.
void Encrypt(const std::string& dir, uint8_t byte) {
  const Fd fd = OpenDir(dir);
  union {
    fscrypt_add_key_arg arg;
    uint8_t room[sizeof(fscrypt_add_key_arg) + kKeyBytes];
  } key{};
  key.arg.key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
  key.arg.raw_size = kKeyBytes;
  std::memset(key.room + sizeof(key.arg), byte, kKeyBytes);
  MustCall(::ioctl(fd.get(), FS_IOC_ADD_ENCRYPTION_KEY, &key.arg), "add a key");
  fscrypt_policy_v2 policy{};
  policy.version = FSCRYPT_POLICY_V2;
  policy.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS;
  policy.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS;
  policy.flags = FSCRYPT_POLICY_FLAGS_PAD_32;
  std::memcpy(policy.master_key_identifier, key.arg.key_spec.u.identifier,
              sizeof(policy.master_key_identifier));
  MustCall(::ioctl(fd.get(), FS_IOC_SET_ENCRYPTION_POLICY, &policy), "encrypt " + dir);
}

class UndoEncryption : public UndoTest {
 protected:
  void SetUp() override {
    if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
    if (::access("/dev/loop-control", F_OK) != 0) GTEST_SKIP() << "no loop device";
    if (::access("/sys/fs/ext4/features/encryption", F_OK) != 0)
      GTEST_SKIP() << "encrypted folders: not supported by this kernel";
  }

  std::string At(const std::string& name) const { return workspace().root() + "/mnt/" + name; }

  // Runs `body` where "one" and "other" are encrypted, each with its key, and "plain" is not.
  void WithEncryptedFolders(const std::function<void()>& body) {
    RunWithPrivateMounts([&] {
      const std::string image = workspace().root() + "/image", top = At("");
      MustCall(::mkdir(top.c_str(), 0755), "mkdir");
      RunCommand(
          fmt::format("truncate -s 64M '{0}' && mkfs.ext4 -q -F -b 4096 -O encrypt '{0}' && "
                      "mount -o loop '{0}' '{1}'",
                      image, top));
      for (const char* name : {"one", "other", "plain"})
        MustCall(::mkdir(At(name).c_str(), 0755), "mkdir");
      Encrypt(At("one"), 1);
      Encrypt(At("other"), 2);
      body();
    });
  }

  UndoPaths MakeProject(const std::string& project, const std::string& store) const {
    MustCall(::mkdir(At(project).c_str(), 0755), "mkdir");
    test::SmallTree(At(project));
    return {.project = At(project), .store = At(store)};
  }

  // Something of everything can be taken back.
  void ExpectUndoWorks(const UndoPaths& where) {
    const TreeSnapshot before = Must(TreeSnapshot::Capture(where.project));
    auto log = UndoLog::Open(where, options_);
    ASSERT_OK(log);
    ProjectOps ops(**log, where.project);
    ASSERT_OK((*log)->OpenStep({}));
    EXPECT_OK(ops.Overwrite("small.txt", "new content"));
    EXPECT_OK(ops.WriteAt("large.bin", 1000, "in the middle", WriteVisibility::kUnseen));
    EXPECT_OK(ops.Unlink("medium.txt"));
    EXPECT_OK(ops.RemoveTree("src"));
    EXPECT_OK((*log)->CloseStep());
    EXPECT_OK((*log)->Rollback(1));
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(where.project)));
  }
  void ExpectRefused(const UndoPaths& where) {
    const bool existed = ::access(where.store.c_str(), F_OK) == 0;
    const auto opened = UndoLog::Open(where, options_);
    ASSERT_CODE(opened, Code::kUnsupported);
    EXPECT_THAT(opened.error().message(),
                AllOf(HasSubstr(where.store), HasSubstr("leave the encrypted area"),
                      HasSubstr("name a store inside the same encrypted folder tree")));
    struct stat st{};
    if (existed)
      EXPECT_THAT(NamesIn(where.store), IsEmpty());
    else
      EXPECT_NE(::stat(where.store.c_str(), &st), 0) << "a folder was left behind";
  }
};

TEST_F(UndoEncryption, AStoreUnderTheSamePolicyWorks) {
  WithEncryptedFolders([&] { ExpectUndoWorks(MakeProject("one/project", "one/store")); });
}

TEST_F(UndoEncryption, AStoreThatIsNotEncryptedIsRefused) {
  WithEncryptedFolders([&] { ExpectRefused(MakeProject("one/project", "plain/store")); });
}

TEST_F(UndoEncryption, AStoreUnderAnotherPolicyIsRefused) {
  WithEncryptedFolders([&] { ExpectRefused(MakeProject("one/project", "other/store")); });
}

TEST_F(UndoEncryption, AStoreOnAFileSystemWithoutEncryptionIsRefused) {
  WithEncryptedFolders([&] {
    const UndoPaths where = MakeProject("one/project", "");
    ExpectRefused({.project = where.project, .store = workspace().store()});
  });
}

// The kernel links no plain file into an encrypted folder.
TEST_F(UndoEncryption, APlainProjectMayHaveAnEncryptedStoreAndIsCopied) {
  WithEncryptedFolders([&] {
    const UndoPaths where = MakeProject("plain/project", "one/store");
    ExpectUndoWorks(where);
    EXPECT_FALSE(Must(UndoLog::Open(where, options_))->abilities().links);
  });
}

// Whatever undo keeps of what is in there would leave its encryption.
TEST_F(UndoEncryption, AnEncryptedFolderInAPlainProjectIsReadOnly) {
  WithEncryptedFolders([&] {
    const UndoPaths where = MakeProject("plain/project", "plain/store");
    MustCall(::mkdir((where.project + "/secret").c_str(), 0755), "mkdir");
    Encrypt(where.project + "/secret", 3);
    TreeBuilder(where.project).File("secret/file", "not for others");
    TreeBuilder(where.project).File("secret/second", "neither");
    const TreeSnapshot before = Must(TreeSnapshot::Capture(where.project));
    auto log = UndoLog::Open(where, options_);
    ASSERT_OK(log);
    ProjectOps ops(**log, where.project);
    ASSERT_OK((*log)->OpenStep({}));
    const Status refused = ops.Overwrite("secret/file", "changed");
    ASSERT_CODE(refused, Code::kUnsupported);
    EXPECT_THAT(refused.error().message(),
                AllOf(HasSubstr("secret/file is encrypted"), HasSubstr("a project of its own")));
    EXPECT_CODE(ops.Append("secret/file", "more", WriteVisibility::kAnnounced), Code::kUnsupported);
    EXPECT_CODE(ops.Unlink("secret/file"), Code::kUnsupported);
    EXPECT_CODE(ops.Rename("secret/file", "secret/second"), Code::kUnsupported);
    EXPECT_CODE(ops.Rename("secret/file", "outside"), Code::kUnsupported);
    EXPECT_CODE(ops.Chmod("secret/file", 0600), Code::kUnsupported);
    EXPECT_CODE(ops.WriteNew("secret/new", "new"), Code::kUnsupported);
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(where.project)));
    EXPECT_OK(ops.Overwrite("small.txt", "the rest of the project works"));
    EXPECT_OK((*log)->CloseStep());
    EXPECT_OK((*log)->Rollback(1));
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(where.project)));
  });
}

TEST_F(UndoEncryption, AnEncryptedFolderInAPlainProjectMayBeKeptUnderItsOwnPolicy) {
  WithEncryptedFolders([&] {
    const UndoPaths where = MakeProject("plain/project", "one/store");
    MustCall(::mkdir((where.project + "/secret").c_str(), 0755), "mkdir");
    Encrypt(where.project + "/secret", 1);
    TreeBuilder(where.project).File("secret/file", "not for others");
    const TreeSnapshot before = Must(TreeSnapshot::Capture(where.project));
    auto log = UndoLog::Open(where, options_);
    ASSERT_OK(log);
    ProjectOps ops(**log, where.project);
    ASSERT_OK((*log)->OpenStep({}));
    EXPECT_OK(ops.Overwrite("secret/file", "changed"));
    EXPECT_OK(ops.Unlink("secret/file"));
    EXPECT_OK((*log)->CloseStep());
    EXPECT_OK((*log)->Rollback(1));
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(where.project)));
  });
}

TEST_F(UndoEncryption, TheUsualStoreOfAnEncryptedProjectIsUnderItsPolicy) {
  WithEncryptedFolders([&] {
    MakeProject("one/project", "");
    MakeProject("plain/project", "");
    // The state folder is on the same file system, but not encrypted.
    ASSERT_EQ(::setenv("SANDGLASS_HOME", At("plain/state").c_str(), 1), 0);
    EXPECT_THAT(Must(StoreLocationFor(At("one/project"))),
                HasSubstr(At("one/.project.sandglass-")));
    EXPECT_THAT(Must(StoreLocationFor(At("plain/project"))), HasSubstr(At("plain/state/")));
    ASSERT_EQ(::setenv("SANDGLASS_HOME", At("one/state").c_str(), 1), 0);
    EXPECT_THAT(Must(StoreLocationFor(At("one/project"))), HasSubstr(At("one/state/")));
    ExpectUndoWorks({.project = At("one/project"), .store = ""});
  });
}

// The top of an encrypted tree has no neighbours under its policy.
TEST_F(UndoEncryption, AProjectThatIsTheTopOfItsEncryptedTreeIsRefusedWithARemedy) {
  WithEncryptedFolders([&] {
    ASSERT_EQ(::setenv("SANDGLASS_HOME", At("plain/state").c_str(), 1), 0);
    const auto opened = UndoLog::Open({.project = At("one"), .store = ""}, options_);
    ASSERT_CODE(opened, Code::kUnsupported);
    EXPECT_THAT(opened.error().message(), HasSubstr("move it into a folder there"));
  });
}

TEST_F(UndoEncryption, AStoreThatIsRefusedCanBeDiscarded) {
  WithEncryptedFolders(
      [&] { EXPECT_OK(UndoLog::Discard(MakeProject("one/project", "plain/store"))); });
}

}  // namespace
}  // namespace sandglass::undo

// How content is kept: each strategy where its condition holds, and a fallback that is as exact where it does not.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kBig = 32 * kMiB;  // far beyond what the pack takes

class UndoCapture : public UndoTest {
 protected:
  // A big file with content and a small one, both long on disk.
  void SetUp() override {
    options_.compression = Compression::kOff;
    const std::string chunk = Noise(kMiB);
    const Fd big = OpenPlain("big.bin", O_WRONLY | O_CREAT);
    for (uint64_t at = 0; at < kBig; at += kMiB)
      Must(PWriteFully(big.get(), AsBytes(chunk), static_cast<off_t>(at)));
    workspace().WriteFile("small.txt", Noise(5000, 2));
    workspace().WriteFile("other.txt", "other");
    test::AgeTree(workspace().project());
    ::sync();
    OpenLog();
    before_ = Snapshot();
  }

  // As a person or a foreign program would, behind the interceptor's back.
  Fd OpenPlain(std::string_view path, int flags) const {
    return Fd(MustCall(::open(workspace().Path(path).c_str(), flags | O_CLOEXEC, 0644), "open"));
  }
  ino_t InodeOf(std::string_view path) const { return StatOf(path).st_ino; }
  std::string ReadThrough(int fd, uint64_t offset, size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t got = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }
  // The store grows by at most `bytes`, besides inodes that were the project's, in this step, which is then taken back.
  void ExpectCheapAndExact(uint64_t bytes, const std::function<void()>& change) {
    constexpr uint64_t kRoomForTheJournal = 256 * 1024;
    const std::set<uint64_t> inodes = InodesBelow(workspace().project());
    const uint64_t usage = DiskUsage(workspace().store(), inodes);
    const StepId step = InStep(change);
    EXPECT_LE(InfoOf(step).copied_bytes, bytes);
    // The blocks of a reflink count for both files, so there the size on disk says nothing.
    if (!log().abilities().reflinks) {
      EXPECT_LE(DiskUsage(workspace().store(), inodes), usage + bytes + kRoomForTheJournal);
    }
    RollBack();
    ExpectTree(before_);
  }
  bool CanAnchor() {
    return log().abilities().links && log().abilities().handles && log().abilities().leases;
  }
  std::string Here() const { return FileSystemName(workspace().project()); }

  TreeSnapshot before_;
};

TEST_F(UndoCapture, TheAbilitiesSayWhatThisPlaceCanDo) {
  const StoreAbilities& can = log().abilities();
  EXPECT_EQ(can.file_system, Here());
  EXPECT_TRUE(can.handles);
  EXPECT_TRUE(can.links);
  EXPECT_TRUE(can.leases);
  EXPECT_EQ(can.reflinks, Here() == "btrfs" || Here() == "xfs");
}

// Anchors.

TEST_F(UndoCapture, DeletingTheLastNameKeepsTheInodeAndCopiesNothing) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  const ino_t big = InodeOf("big.bin");
  const ino_t small = InodeOf("small.txt");
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("big.bin"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u);
  EXPECT_GE(InfoOf(step).retained_bytes, kBig);
  EXPECT_EQ(log().stats().anchor_link + log().stats().anchor_rename, 2u);
  RollBack();
  EXPECT_EQ(InodeOf("big.bin"), big);
  EXPECT_EQ(InodeOf("small.txt"), small);
  ExpectTree(before_);
}

TEST_F(UndoCapture, RenamingOverKeepsTheInodeThatLostItsName) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  const ino_t big = InodeOf("big.bin");
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("other.txt", "big.bin")); });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u);
  RollBack();
  EXPECT_EQ(InodeOf("big.bin"), big);
  ExpectTree(before_);
}

TEST_F(UndoCapture, OneOfTwoNamesNeedsNoContentAtAll) {
  TreeBuilder(workspace().project()).Link("big.bin", "second.bin");
  test::AgeTree(workspace().project());
  before_ = Snapshot();
  ExpectCheapAndExact(0, [&] { EXPECT_OK(ops().Unlink("big.bin")); });
}

// The anchored inode would change under us, so its content is copied while it is still the old one.
TEST_F(UndoCapture, AFileThatAWriterHasOpenIsStillRestoredExactly) {
  for (const char* path : {"small.txt", "big.bin"}) {
    SCOPED_TRACE(path);
    const Fd writer = OpenPlain(path, O_RDWR);
    InStep([&] {
      EXPECT_OK(ops().Unlink(path));
      EXPECT_EQ(::pwrite(writer.get(), "overwritten after the unlink", 28, 100), 28);
    });
    EXPECT_EQ(::pwrite(writer.get(), "and after the step", 18, 0), 18);
    RollBack();
    ExpectTree(before_);
  }
  EXPECT_GE(log().stats().writer_copy + log().stats().anchor_copy, 2u);
}

TEST_F(UndoCapture, AMappingThatOutlivesItsDescriptorIsAWriterToo) {
  Fd writer = OpenPlain("small.txt", O_RDWR);
  void* map = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  writer.Reset();
  InStep([&] {
    EXPECT_OK(ops().Unlink("small.txt"));
    std::memcpy(map, "through the mapping", 19);
  });
  ::munmap(map, 4096);
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoCapture, AReaderDoesNotDisturbAnAnchorAndGoesOnReading) {
  const Fd reader = OpenPlain("small.txt", O_RDONLY);
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  EXPECT_EQ(ReadThrough(reader.get(), 0, 5000), Noise(5000, 2));
  RollBack();
  ExpectTree(before_);
}

// The limit of a step counts what is copied, and an inode that is kept is not copied.
TEST_F(UndoCapture, DeletingMoreThanAStepMayCopyIsUndoable) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  Fd huge = OpenPlain("huge.bin", O_WRONLY | O_CREAT);
  MustCall(::ftruncate(huge.get(), off_t{1} << 30), "truncate");
  Must(PWriteFully(huge.get(), AsBytes("at the end"), (off_t{1} << 30) - 10));
  huge.Reset();  // an open writer would have to be copied
  ASSERT_GT(uint64_t{1} << 30, UndoOptions{}.limits.max_step_copied_bytes);
  before_ = Snapshot();
  ExpectCheapAndExact(0, [&] { EXPECT_OK(ops().Unlink("huge.bin")); });
}

TEST_F(UndoCapture, AnAnchoredInodeIsFrozen) {
  const Fd reader = OpenPlain("small.txt", O_RDONLY);
  InStep([&] {
    EXPECT_OK(ops().Unlink("small.txt"));
    // The descriptor that is left over could be opened anew through /proc: the bridge asks for that as for any open.
    for (const Truncate truncate : {Truncate::kNo, Truncate::kYes}) {
      Result<Ticket> ticket =
          log().interceptor().BeginOpenForWrite({reader.get()}, truncate, WriteVisibility::kUnseen);
      if (!ticket.ok()) {
        EXPECT_CODE(ticket, Code::kFrozen);
        continue;
      }
      const std::string again = fmt::format("/proc/self/fd/{}", reader.get());
      const Fd writer(
          ::open(again.c_str(), O_WRONLY | O_CLOEXEC | (truncate == Truncate::kYes ? O_TRUNC : 0)));
      EXPECT_EQ(::pwrite(writer.get(), "changed", 7, 0), 7);
      EXPECT_OK(ticket->Commit(Outcome::Done()));
    }
    Result<Ticket> chmod = log().interceptor().BeginMetadata({reader.get()});
    if (chmod.ok()) {
      EXPECT_EQ(::fchmod(reader.get(), 0600), 0);
      EXPECT_OK(chmod->Commit(Outcome::Done()));
    } else {
      EXPECT_CODE(chmod, Code::kFrozen);
    }
    EXPECT_CODE(ops().LinkOpenFile(reader.get(), "back.txt"), Code::kNotFound);
  });
  RollBack();
  ExpectTree(before_);
}

// As package managers have it, which link files of a project from a store of their own.
TEST_F(UndoCapture, AnAnchoredInodeIsFrozenAlsoIfItHasANameOutside) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  const std::string outside = workspace().root() + "/outside";
  for (const char* path : {"small.txt", "big.bin"}) {
    MustCall(::link(workspace().Path(path).c_str(), outside.c_str()), "link");
    const Fd reader = OpenPlain(path, O_RDONLY);
    Interceptor& interceptor = log().interceptor();
    InStep([&] {
      EXPECT_OK(ops().Unlink(path));
      for (const Truncate truncate : {Truncate::kNo, Truncate::kYes}) {
        EXPECT_CODE(
            interceptor.BeginOpenForWrite({reader.get()}, truncate, WriteVisibility::kUnseen),
            Code::kFrozen);
      }
      EXPECT_CODE(interceptor.BeginMetadata({reader.get()}), Code::kFrozen);
    });
    InStep([&] {
      EXPECT_CODE(interceptor.BeginContent({reader.get()}, ContentChange::Whole()), Code::kFrozen)
          << "in a later step";
      EXPECT_OK(ops().WriteNew("unrelated", "x"));
    });
    RollBack(2);
    ExpectTree(before_);
    InStep([&] { EXPECT_OK(interceptor.BeginMetadata({reader.get()})) << "it has a name again"; });
    MustCall(::unlink(outside.c_str()), "unlink");
  }
}

TEST_F(UndoCapture, AnAnchorGivenBackCanBeAnchoredAgain) {
  for (int i = 0; i < 3; ++i) {
    InStep([&] { EXPECT_OK(ops().Unlink("big.bin")); });
    RollBack();
    ExpectTree(before_);
    RedoSteps();
    EXPECT_FALSE(workspace().Exists("big.bin"));
    RollBack();
    ExpectTree(before_);
  }
}

// Reflink and pack.

TEST_F(UndoCapture, WhereReflinksWorkABigFileCostsNoCopy) {
  if (!log().abilities().reflinks) GTEST_SKIP() << "reflink: not supported by " << Here();
  ExpectCheapAndExact(kMiB, [&] {
    EXPECT_OK(ops().WriteAt("big.bin", 5 * kMiB, "changed", WriteVisibility::kUnseen));
  });
  EXPECT_GE(log().stats().reflink, 1u);
  EXPECT_EQ(log().stats().blob_copy, 0u);
}

TEST_F(UndoCapture, ASmallFileIsAppendedToThePack) {
  const StepId step =
      InStep([&] { EXPECT_OK(ops().WriteAt("small.txt", 0, "x", WriteVisibility::kUnseen)); });
  EXPECT_LE(InfoOf(step).copied_bytes, 5000u);
  EXPECT_EQ(InfoOf(step).retained_bytes, 0u);
  EXPECT_EQ(InfoOf(step).copied_bytes, 5000u) << "for so little a reflink would not be cheaper";
  EXPECT_EQ(log().stats().pack, 1u);
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoCapture, ManySmallFilesShareOnePack) {
  for (int i = 0; i < 50; ++i) workspace().WriteFile(fmt::format("many/{}", i), Noise(3000, i));
  test::AgeTree(workspace().project());
  before_ = Snapshot();
  const StepId step = InStep([&] {
    for (int i = 0; i < 50; ++i) EXPECT_OK(ops().Overwrite(fmt::format("many/{}", i), "new"));
  });
  EXPECT_LE(FilesBelow(StepFolder(workspace(), step)).size(), 5u) << "not one file per preimage";
  RollBack();
  ExpectTree(before_);
}

// Ranges.

TEST_F(UndoCapture, FourKiBInABigFileCostAtMostOneMiB) {
  ExpectCheapAndExact(kMiB, [&] {
    EXPECT_OK(
        ops().WriteAt("big.bin", 10 * kMiB + 777, Noise(4096, 9), WriteVisibility::kAnnounced));
  });
  EXPECT_GE(log().stats().range + log().stats().reflink, 1u);
  EXPECT_EQ(log().stats().blob_copy, 0u);
}

TEST_F(UndoCapture, RangesThatTouchManyBlocksOverlapAndReachBeyondTheEnd) {
  ExpectCheapAndExact(3 * kMiB, [&] {
    const auto write = [&](uint64_t offset, size_t size) {
      EXPECT_OK(ops().WriteAt("big.bin", offset, Noise(size, offset), WriteVisibility::kAnnounced));
    };
    write(65'536 - 10, 20);     // across a block's border
    write(65'536, 65'536);      // one block exactly
    write(100'000, 300'000);    // over blocks that are kept already
    write(0, 1);                // the first byte
    write(kBig - 1, 1);         // the last byte
    write(kBig - 10, 100);      // over the end
    write(kBig + 500'000, 10);  // beyond the end, leaving a hole
    write(100'000, 10);         // again
  });
}

TEST_F(UndoCapture, CuttingTheTailKeepsOnlyTheTail) {
  ExpectCheapAndExact(kMiB, [&] { EXPECT_OK(ops().TruncateTo("big.bin", kBig - 100'000)); });
}

TEST_F(UndoCapture, AppendingToABigFileCostsNothing) {
  ExpectCheapAndExact(kMiB, [&] {
    EXPECT_OK(ops().Append("big.bin", Noise(200'000), WriteVisibility::kAnnounced));
  });
}

// Only a file system without blocks of its own has files so large.
TEST_F(UndoCapture, ARangeOfAHugeFileCostsNoMoreThanTheRange) {
  uint64_t size = (1ull << 63) - 4096;
  InStep([&] {
    EXPECT_OK(ops().Create("sparse"));
    while (size > 1 && !ops().TruncateTo("sparse", size).ok()) size /= 2;
  });
  const auto rss = [] {
    struct rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = rss();
  InStep([&] {
    EXPECT_OK(ops().WriteAt("sparse", 0, "x", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().WriteAt("sparse", size - 10, "y", WriteVisibility::kAnnounced));
  });
  EXPECT_LT(rss() - before, 16 << 10) << "KiB";
  RollBack();
  const Fd file(::open(workspace().Path("sparse").c_str(), O_RDONLY | O_CLOEXEC));
  for (const uint64_t at : {uint64_t{0}, size - 10}) {
    char byte = 'z';
    EXPECT_EQ(::pread(file.get(), &byte, 1, static_cast<off_t>(at)), 1);
    EXPECT_EQ(byte, 0) << at;
  }
}

TEST_F(UndoCapture, RangesThatMeetInAnyOrderAreKeptOnce) {
  constexpr uint64_t kBlock = 64 << 10;
  const std::string content = Noise(20 * kBlock + 100);
  workspace().WriteFile("large", content);
  const StepId step = InStep([&] {
    for (const uint64_t block : {4, 2, 3, 9, 7, 20, 0, 8, 2, 4}) {
      EXPECT_OK(
          ops().WriteAt("large", block * kBlock + 50, "changed", WriteVisibility::kAnnounced));
    }
    EXPECT_OK(ops().WriteAt("large", 1 * kBlock, std::string(9 * kBlock, 'x'),
                            WriteVisibility::kAnnounced));
  });
  EXPECT_EQ(Steps().back().id, step);
  EXPECT_EQ(Steps().back().copied_bytes, 10 * kBlock + 100) << "blocks 0 to 9 and the last one";
  RollBack();
  EXPECT_EQ(Content("large"), content);
}

TEST_F(UndoCapture, ARangeThenACutThenGrowthRestoresTheFirstState) {
  ExpectCheapAndExact(3 * kMiB, [&] {
    EXPECT_OK(
        ops().WriteAt("big.bin", kBig - 200'000, Noise(50'000, 1), WriteVisibility::kAnnounced));
    EXPECT_OK(ops().TruncateTo("big.bin", kBig - kMiB));
    EXPECT_OK(ops().TruncateTo("big.bin", kBig + kMiB));
    EXPECT_OK(
        ops().WriteAt("big.bin", kBig - 200'000, Noise(50'000, 2), WriteVisibility::kAnnounced));
    EXPECT_OK(ops().PunchHole("big.bin", 3 * kMiB, 100'000));
  });
}

TEST_F(UndoCapture, ARangeThenAnUnseenWriteIsStillExact) {
  InStep([&] {
    EXPECT_OK(ops().WriteAt("big.bin", 1000, "announced", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().WriteAt("big.bin", 7 * kMiB, "unseen", WriteVisibility::kUnseen));
    EXPECT_OK(ops().WriteAt("big.bin", 9 * kMiB, "announced", WriteVisibility::kAnnounced));
  });
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoCapture, ARangeThenADeletionIsStillExact) {
  InStep([&] {
    EXPECT_OK(ops().WriteAt("big.bin", 1000, "announced", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Unlink("big.bin"));
  });
  RollBack();
  ExpectTree(before_);
}

// Moving the inode.

TEST_F(UndoCapture, TruncatingABigFileThatNobodyHasOpenMovesItsInode) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  const ino_t inode = InodeOf("big.bin");
  ExpectCheapAndExact(kMiB, [&] {
    EXPECT_OK(ops().Overwrite("big.bin", "short"));
    EXPECT_EQ(Content("big.bin"), "short");
    EXPECT_EQ(StatOf("big.bin").st_mode & 07777, 0644u);
  });
  EXPECT_EQ(InodeOf("big.bin"), inode);
  EXPECT_GE(log().stats().inode_move + log().stats().reflink, 1u);
}

TEST_F(UndoCapture, TheFreshInodeHasTheOldMetadata) {
  const TreeBuilder tree(workspace().project());
  tree.Mode("big.bin", 0751);
  const bool xattrs = tree.Xattr("big.bin", "user.note", "kept") == 0;
  before_ = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("big.bin", "short"));
    const TreeSnapshot inside = Snapshot();
    EXPECT_EQ(inside.Find("big.bin")->mode & 07777, 0751u);
    EXPECT_EQ(inside.Find("big.bin")->xattrs, before_.Find("big.bin")->xattrs);
    EXPECT_EQ(inside.Find("big.bin")->xattrs.empty(), !xattrs);
  });
  RollBack();
  ExpectTree(before_);
}

// Truncation must be seen through descriptors that others hold, so the inode has to stay.
TEST_F(UndoCapture, TruncatingABigFileThatSomebodyHasOpenCopiesIt) {
  const ino_t inode = InodeOf("big.bin");
  const Fd reader = OpenPlain("big.bin", O_RDONLY);
  InStep([&] { EXPECT_OK(ops().Overwrite("big.bin", "short")); });
  EXPECT_EQ(InodeOf("big.bin"), inode);
  EXPECT_EQ(ReadThrough(reader.get(), 0, 100), "short");
  EXPECT_EQ(log().stats().inode_move, 0u);
  EXPECT_GE(log().stats().blob_copy + log().stats().reflink, 1u);
  RollBack();
  ExpectTree(before_);
  EXPECT_EQ(ReadThrough(reader.get(), 0, 1000), Noise(kMiB).substr(0, 1000)) << "restored in place";
}

TEST_F(UndoCapture, TruncatingABigFileWithTwoNamesCopiesIt) {
  TreeBuilder(workspace().project()).Link("big.bin", "second.bin");
  test::AgeTree(workspace().project());
  before_ = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("big.bin", "short"));
    EXPECT_EQ(Content("second.bin"), "short");
  });
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoCapture, ASmallFileIsTruncatedInPlace) {
  const ino_t inode = InodeOf("small.txt");
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  EXPECT_EQ(InodeOf("small.txt"), inode);
  RollBack();
  EXPECT_EQ(InodeOf("small.txt"), inode);
  ExpectTree(before_);
}

TEST_F(UndoCapture, TruncatingToZeroByPathIsCheapToo) {
  if (!CanAnchor()) GTEST_SKIP() << "anchors: not supported by " << Here();
  ExpectCheapAndExact(kMiB, [&] { EXPECT_OK(ops().TruncateTo("big.bin", 0)); });
}

// Provisional copies.

TEST_F(UndoCapture, ACopyForAnOpenThatChangedNothingIsDropped) {
  const uint64_t usage = DiskUsage(workspace().store());
  const StepId step =
      InStep([&] { EXPECT_OK(ops().OpenFile("big.bin", O_RDWR, WriteVisibility::kUnseen)); });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u);
  EXPECT_LE(DiskUsage(workspace().store()), usage + kMiB);
  EXPECT_GE(log().stats().provisional_dropped, 1u);
  ExpectTree(before_);
}

TEST_F(UndoCapture, AnOpenOfASparseFileThatChangesNothingComparesNoHoles) {
  constexpr uint64_t kSize = 8ull << 30;
  InStep([&] {
    EXPECT_OK(ops().Create("sparse"));
    EXPECT_OK(ops().WriteAt("sparse", kMiB, "data", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().TruncateTo("sparse", kSize));
  });
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().OpenFile("sparse", O_WRONLY, WriteVisibility::kUnseen));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_OK(log().CloseStep());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(Steps().back().counts.total(), 0u);
  const StepId step = InStep([&] {
    Result<Fd> file = ops().OpenFile("sparse", O_WRONLY, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_EQ(::pwrite(file->get(), "x", 1, kSize / 2), 1) << "in a hole";
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified sparse"));
}

TEST_F(UndoCapture, ACopyForAnOpenThatChangedSomethingIsKept) {
  const StepId step = InStep([&] {
    Result<Fd> file = ops().OpenFile("big.bin", O_RDWR, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_EQ(::pwrite(file->get(), "x", 1, 20 * kMiB), 1);
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified big.bin"));
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoCapture, AWriteThatKeepsSizeAndMtimeIsNoticed) {
  const struct stat st = StatOf("small.txt");
  const StepId step = InStep([&] {
    Result<Fd> file = ops().OpenFile("small.txt", O_RDWR, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_EQ(::pwrite(file->get(), "XYZ", 3, 1000), 3);
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, st.st_mtim};
    EXPECT_EQ(::futimens(file->get(), times), 0);
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified small.txt"));
  RollBack();
  ExpectTree(before_);
}

// A file that the file system does not clone although it clones others.
class UndoNocow : public UndoCapture {
 protected:
  static constexpr uint64_t kSize = 2 * kMiB;

  void SetUp() override {
    workspace().WriteFile("nocow.bin", "");
    if (TreeBuilder(workspace().project()).AddFlags("nocow.bin", FS_NOCOW_FL) != 0)
      GTEST_SKIP() << "nocow: not supported by " << Here();
    workspace().WriteFile("nocow.bin", Noise(kSize, 3));
    UndoCapture::SetUp();
  }
  void WriteUnseen() {
    Result<Fd> file = ops().OpenFile("nocow.bin", O_RDWR, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_EQ(::pwrite(file->get(), "x", 1, kMiB), 1);
  }
};

TEST_F(UndoNocow, ACopyInsteadOfACloneIsCounted) {
  const StepId step = InStep([&] { WriteUnseen(); });
  EXPECT_EQ(InfoOf(step).copied_bytes, kSize);
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoNocow, ACopyInsteadOfACloneThatIsDroppedIsNotCounted) {
  const StepId step =
      InStep([&] { EXPECT_OK(ops().OpenFile("nocow.bin", O_RDWR, WriteVisibility::kUnseen)); });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u);
}

TEST_F(UndoNocow, ACopyInsteadOfACloneIsLimited) {
  options_.limits.max_step_copied_bytes = kMiB;
  options_.on_oversize = OversizePolicy::kRefuse;
  OpenLog();
  InStep([&] {
    EXPECT_CODE(ops().OpenFile("nocow.bin", O_RDWR, WriteVisibility::kUnseen), Code::kLimit);
  });
  ExpectTree(before_);
}

TEST_F(UndoNocow, AFileThatIsTooLargeToBeCopiedForItsWriterStaysBusy) {
  ASSERT_OK(log().OpenStep({}));
  Fd daemon = Must(ops().OpenFile("nocow.bin", O_RDWR, WriteVisibility::kUnseen));
  ASSERT_EQ(::ftruncate(daemon.get(), 300 << 20), 0);
  const ObjectRef live[] = {{daemon.get(), "nocow.bin"}};
  EXPECT_OK(log().CloseStep(live));
  EXPECT_THAT(FilesBelow(workspace().store() + "/shadows"), IsEmpty());
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  daemon.Reset();
  RollBack();
  ExpectTree(before_);
}

// Live writers: descriptors that outlive the step they were given out in.

class UndoLiveWriter : public UndoCapture, public ::testing::WithParamInterface<const char*> {
 protected:
  // Opens the file for a daemon in step 1, which also writes to it there.
  Fd StartDaemon() {
    EXPECT_OK(log().OpenStep({.label = "start the daemon"}));
    Fd daemon = Must(ops().OpenFile(GetParam(), O_RDWR, WriteVisibility::kUnseen));
    EXPECT_EQ(::pwrite(daemon.get(), "one", 3, 0), 3);
    CloseWithWriter(daemon.get());
    return daemon;
  }
  void CloseWithWriter(int fd) {
    const ObjectRef live[] = {{fd, GetParam()}};
    EXPECT_OK(log().CloseStep(live));
  }
};

INSTANTIATE_TEST_SUITE_P(, UndoLiveWriter, ::testing::Values("small.txt", "big.bin"),
                         [](const auto& info) {
                           return std::string(info.param) == "small.txt" ? "Small" : "Big";
                         });

TEST_P(UndoLiveWriter, EachIntervalsWritesBelongToItsStep) {
  Fd daemon = StartDaemon();
  const TreeSnapshot after_first = Snapshot();
  ASSERT_OK(log().OpenStep({.label = "another command"}));
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 1000), 3);  // nobody asks for this one
  CloseWithWriter(daemon.get());
  const TreeSnapshot after_second = Snapshot();
  EXPECT_THAT(ChangeLines(StepId{2}), Contains(std::string("modified ") + GetParam()));
  EXPECT_GE(log().stats().shadow, 2u);
  ASSERT_OK(log().OpenStep({.label = "a third"}));
  EXPECT_EQ(::pwrite(daemon.get(), "three", 5, 2000), 5);
  daemon.Reset();
  EXPECT_OK(log().CloseStep());

  RollBack();
  ExpectTree(after_second);
  RollBack();
  ExpectTree(after_first);
  RollBack();
  ExpectTree(before_);
}

TEST_P(UndoLiveWriter, AWriterThatStaysQuietMakesNoChange) {
  Fd daemon = StartDaemon();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("new.txt", "x"));
  CloseWithWriter(daemon.get());
  EXPECT_THAT(ChangeLines(StepId{2}), ElementsAre("created new.txt"));
}

TEST_P(UndoLiveWriter, RollbackOfWhatAWriterHasOpenIsBusy) {
  Fd daemon = StartDaemon();
  const TreeSnapshot after = Snapshot();
  const Result<RewindReport> refused = log().Rollback(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().code(), ::testing::AnyOf(Code::kBusy, Code::kConflict));
  ExpectTree(after);
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kBusy, GetParam()));
  daemon.Reset();
  RollBack();
  ExpectTree(before_);
}

// That object is unprotected, never the step: it closes, and a rewind that touches the object is refused.
TEST_P(UndoLiveWriter, AFileThatGrewTooLargeToBeWatchedStaysBusy) {
  if (log().abilities().reflinks) GTEST_SKIP() << "reflink: nothing is too large";
  RecordingObserver observer;
  options_.observer = &observer;
  OpenLog();
  Fd daemon = StartDaemon();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("new.txt", "x"));
  ASSERT_EQ(::ftruncate(daemon.get(), 300 << 20), 0);
  CloseWithWriter(daemon.get());
  EXPECT_THAT(observer.unprotected(), Contains(StepId{2}));
  EXPECT_EQ(InfoOf(StepId{2}).protection, Protection::kFull);
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kBusy, GetParam()));
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  // What it writes now nobody sees, but nobody takes it back by accident either.
  EXPECT_EQ(::pwrite(daemon.get(), "unseen", 6, 100), 6);
  daemon.Reset();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  RollBack(2, Force::kYes);
  ExpectTree(before_);
}

TEST_P(UndoLiveWriter, AFileThatCannotBeWatchedStaysBusyAndLeavesNoCopy) {
  const std::string shadows = workspace().store() + "/shadows";
  // No note can be written there, whether or not the folder is there already.
  ASSERT_TRUE(::mkdir(shadows.c_str(), 0700) == 0 || errno == EEXIST);
  MustCall(::mkdir((shadows + "/0.note").c_str(), 0700), "mkdir");
  Fd daemon = StartDaemon();
  EXPECT_THAT(FilesBelow(shadows), IsEmpty());
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kBusy, GetParam()));
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  daemon.Reset();
  RollBack();
  ExpectTree(before_);
}

TEST_P(UndoLiveWriter, APlanCountsWhatAWriterDidSinceTheLastStep) {
  Fd daemon = StartDaemon();
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 1000), 3);
  daemon.Reset();
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_THAT(plan->steps, ElementsAre(StepId{-1}));
  EXPECT_EQ(RollBack().steps, plan->steps);
}

TEST_P(UndoLiveWriter, AWriterThatIsGoneDoesNotKeepARedoBusy) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Rename(GetParam(), "renamed"));
  Fd daemon = Must(ops().OpenFile("renamed", O_RDWR, WriteVisibility::kUnseen));
  const ObjectRef live[] = {{daemon.get(), "renamed"}};
  EXPECT_OK(log().CloseStep(live));
  const TreeSnapshot after = Snapshot();
  RollBack(1, Force::kYes);
  ExpectTree(before_);
  daemon.Reset();
  RedoSteps();
  ExpectTree(after);
}

TEST_P(UndoLiveWriter, WhatAForcedRollbackWroteIsNotTakenForTheWritersDoing) {
  Fd daemon = StartDaemon();
  const TreeSnapshot after = Snapshot();
  RollBack(1, Force::kYes);
  ExpectTree(before_);
  daemon.Reset();
  RedoSteps();
  ExpectTree(after);
}

TEST_P(UndoLiveWriter, AWriterWhoseNameIsGoneIsWatchedUnderTheOneThatIsLeft) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("new", Content(GetParam())));
  const Fd daemon = Must(ops().OpenFile("new", O_RDWR, WriteVisibility::kUnseen));
  EXPECT_OK(ops().Link("new", "other"));
  EXPECT_OK(ops().Unlink("new"));
  const ObjectRef live[] = {{daemon.get(), {}}};
  EXPECT_OK(log().CloseStep(live));
  const TreeSnapshot after = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 1000), 3);
  EXPECT_OK(log().AbortStep());
  ExpectTree(after);
}

TEST_P(UndoLiveWriter, WhatARollbackDidIsNotTakenForTheDoingOfAWriterThatIsGone) {
  ASSERT_OK(log().OpenStep({}));
  Fd daemon = Must(ops().OpenFile(GetParam(), O_RDWR, WriteVisibility::kUnseen));
  EXPECT_OK(ops().Link(GetParam(), "second"));
  EXPECT_OK(ops().Unlink(GetParam()));
  EXPECT_OK(ops().LinkOpenFile(daemon.get(), GetParam()));
  EXPECT_EQ(::pwrite(daemon.get(), "relinked", 8, 0), 8);
  CloseWithWriter(daemon.get());
  daemon.Reset();
  RollBack();
  ExpectTree(before_);
  EXPECT_CODE(log().PlanRollback(1), Code::kNotFound);
}

TEST_P(UndoLiveWriter, AnAmbientStepDoesNotEndTheWatchOverAWriter) {
  Fd daemon = StartDaemon();
  const TreeSnapshot after_first = Snapshot();
  EXPECT_OK(ops().WriteNew("ambient.txt", "by nobody's command"));
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 1000), 3);
  ASSERT_OK(log().OpenStep({.label = "a command"}));  // closes the ambient step
  const TreeSnapshot before_second = Snapshot();
  EXPECT_EQ(::pwrite(daemon.get(), "three", 5, 2000), 5);
  daemon.Reset();
  EXPECT_OK(log().CloseStep());
  EXPECT_THAT(ChangeLines(StepId{2}), ElementsAre(std::string("modified ") + GetParam()));
  RollBack();
  ExpectTree(before_second);
  RollBack();
  ExpectTree(after_first);
}

TEST_P(UndoLiveWriter, AWriterOfADeletedFileDoesNoHarm) {
  Fd daemon = StartDaemon();
  const TreeSnapshot after_first = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Unlink(GetParam()));
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 500), 3);
  daemon.Reset();
  EXPECT_OK(log().CloseStep());
  RollBack();
  ExpectTree(after_first);
  RollBack();
  ExpectTree(before_);
}

}  // namespace
}  // namespace sandglass::undo

#include "bridge/supervise/decode.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sys/socket.h>

#include <cerrno>

namespace sandglass::bridge {
namespace {

Bytes Words(std::initializer_list<int64_t> words) {
  ByteWriter out;
  for (const int64_t word : words) out.Put(word);
  return out.bytes();
}

template <class T>
int ErrnoOf(const Result<T>& result) {
  return result.ok() ? 0 : ErrnoFor(result.error());
}

Bytes Acl(uint32_t version, std::initializer_list<uint16_t> tags) {
  ByteWriter out;
  out.Put(version);
  for (const uint16_t tag : tags) {
    out.Put(tag);
    out.Put(uint16_t{6});
    out.Put(~uint32_t{0});
  }
  return out.bytes();
}

TEST(IsModeAsAcl, OnlyIfOwnerGroupAndOthersAreAllThereIs) {
  EXPECT_TRUE(IsModeAsAcl(Acl(2, {1, 4, 0x20})));
  EXPECT_FALSE(IsModeAsAcl(Acl(2, {1, 2, 4, 0x10, 0x20})));  // a named user, and the mask
  EXPECT_FALSE(IsModeAsAcl(Acl(2, {1, 4})));
  EXPECT_FALSE(IsModeAsAcl(Acl(2, {1, 4, 0x20, 0x20})));
  EXPECT_FALSE(IsModeAsAcl(Acl(2, {})));
  EXPECT_FALSE(IsModeAsAcl(Acl(1, {1, 4, 0x20})));
  Bytes cut = Acl(2, {1, 4, 0x20});
  cut.pop_back();
  EXPECT_FALSE(IsModeAsAcl(cut));
  EXPECT_FALSE(IsModeAsAcl({}));
}

TEST(DecodeOpenHow, TakesNewerStructuresWhoseTailIsZero) {
  EXPECT_EQ(DecodeOpenHow(Words({O_WRONLY, 0, RESOLVE_BENEATH}))->resolve,
            uint64_t{RESOLVE_BENEATH});
  EXPECT_EQ(ErrnoOf(DecodeOpenHow(Words({0, 0, 0, 0}))), 0);
  EXPECT_EQ(ErrnoOf(DecodeOpenHow(Words({0, 0, 0, 1}))), E2BIG);
  EXPECT_EQ(ErrnoOf(DecodeOpenHow(Words({0, 0}))), EINVAL);
}

TEST(DecodeOpenHow, RefusesWhatTheKernelRefuses) {
  EXPECT_EQ(ErrnoOf(CheckOpenHow({O_WRONLY, 0600, 0})), EINVAL);
  EXPECT_EQ(ErrnoOf(CheckOpenHow({O_WRONLY | O_CREAT, 0600, 0})), 0);
  EXPECT_EQ(ErrnoOf(CheckOpenHow({O_WRONLY | O_CREAT, 0200000, 0})), EINVAL);
  EXPECT_EQ(ErrnoOf(CheckOpenHow({1ull << 40, 0, 0})), EINVAL);
  EXPECT_EQ(ErrnoOf(CheckOpenHow({O_RDWR, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT})), EINVAL);
  EXPECT_EQ(ErrnoOf(CheckOpenHow({O_RDWR, 0, 1ull << 30})), EINVAL);
}

TEST(DecodeTimes, KnowsAllLayouts) {
  const auto seconds = DecodeTimes(Words({5, 6}), TimeLayout::kSeconds);
  EXPECT_EQ((*seconds)[1].tv_sec, 6);
  EXPECT_EQ((*seconds)[1].tv_nsec, 0);
  const auto micro = DecodeTimes(Words({5, 7, 6, 8}), TimeLayout::kTimeval);
  EXPECT_EQ((*micro)[0].tv_nsec, 7000);
  const auto nano = DecodeTimes(Words({5, UTIME_OMIT, 6, 8}), TimeLayout::kTimespec);
  EXPECT_EQ((*nano)[0].tv_nsec, UTIME_OMIT);
  EXPECT_EQ(ErrnoOf(DecodeTimes(Words({5, 1'000'000, 6, 8}), TimeLayout::kTimeval)), EINVAL);
  EXPECT_FALSE(DecodeTimes(Words({5}), TimeLayout::kTimespec).ok());
}

Bytes Address(sa_family_t family, std::string_view path) {
  ByteWriter out;
  out.Put(family);
  out.PutBytes(AsBytes(path));
  return out.bytes();
}

TEST(DecodeUnixPath, EndsAtTheFirstZeroOrTheEnd) {
  EXPECT_EQ(DecodeUnixPath(Address(AF_UNIX, "a/b")), "a/b");
  EXPECT_EQ(DecodeUnixPath(Address(AF_UNIX, std::string_view("a\0b", 3))), "a");
  EXPECT_EQ(DecodeUnixPath(Address(AF_UNIX, std::string(200, 'x')))->size(), 108u);
  EXPECT_EQ(DecodeUnixPath(Address(AF_UNIX, std::string_view("\0abstract", 9))), std::nullopt);
  EXPECT_EQ(DecodeUnixPath(Address(AF_UNIX, "")), std::nullopt);
  EXPECT_EQ(DecodeUnixPath(Address(AF_INET, "abcdef")), std::nullopt);
  EXPECT_EQ(DecodeUnixPath({}), std::nullopt);
}

TEST(DecodeStatus, ReadsIdentityAndInnerPids) {
  const TaskStatus status = DecodeStatus(
      "Name:\tx\nUmask:\t0027\nTgid:\t70\nNStgid:\t70\t7\nNSpid:\t71\t8\nThreads:\t3\nUid:"
      "\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
      "Groups:\t10 20 \nCapPrm:\t00000000000000ff\nCapEff:\t000000000000001f\n");
  EXPECT_EQ(status.umask, 027u);
  EXPECT_EQ(status.tgid, 70);
  EXPECT_EQ(status.inner_tgid, 7);
  EXPECT_EQ(status.inner_tid, 8);
  EXPECT_EQ(status.threads, 3u);
  EXPECT_EQ(status.real_uid, 1u);
  EXPECT_EQ(status.fs_uid, 4u);
  EXPECT_EQ(status.fs_gid, 8u);
  EXPECT_EQ(status.groups, (std::vector<gid_t>{10, 20}));
  EXPECT_EQ(status.effective, 0x1fu);
}

TEST(DecodeMountInfo, UnescapesAndLeavesNonsenseOut) {
  const auto mounts = DecodeMountInfo(
      "36 35 98:0 /a\\040b /mnt/x\\134 rw - ext3 x rw\nnonsense\n\n7 1 0:5 / / rw - t t rw");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].id, 36u);
  EXPECT_EQ(mounts[0].root, "/a b");
  EXPECT_EQ(mounts[0].point, "/mnt/x\\");
  EXPECT_EQ(mounts[1].device, "0:5");
}

TEST(DecodeFileSizeLimit, IsNoneWhenUnlimited) {
  EXPECT_EQ(DecodeFileSizeLimit("Limit  Soft\nMax file size             1024                 "
                                "unlimited            bytes\n"),
            1024u);
  EXPECT_EQ(DecodeFileSizeLimit(
                "Max file size             unlimited            unlimited            bytes\n"),
            std::nullopt);
}

}  // namespace
}  // namespace sandglass::bridge

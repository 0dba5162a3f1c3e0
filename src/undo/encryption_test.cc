#include "undo/encryption.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/fd.h"

namespace sandglass::undo {
namespace {

TEST(Encryption, AStoreMayKeepContentOnlyUnderTheProjectsPolicy) {
  const std::optional<EncryptionPolicy> none, one = EncryptionPolicy{2, 1, 4, 3},
                                              other = EncryptionPolicy{2, 1, 4, 7},
                                              longer = EncryptionPolicy{2, 1, 4, 3, 0};
  EXPECT_TRUE(MayKeep(none, none));
  EXPECT_TRUE(MayKeep(one, one));
  EXPECT_TRUE(MayKeep(none, one)) << "it loses nothing by being encrypted";
  EXPECT_FALSE(MayKeep(one, none));
  EXPECT_FALSE(MayKeep(one, other));
  EXPECT_FALSE(MayKeep(one, longer));
  EXPECT_FALSE(MayKeep(longer, one));
}

TEST(Encryption, AFileSystemThatDoesNotKnowTheQuestionIsNotEncrypted) {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(proc.valid());
  const auto policy = EncryptionPolicyOf(proc.get());
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(*policy, std::nullopt);
}

TEST(Encryption, WhatCannotBeAskedIsAnError) { EXPECT_FALSE(EncryptionPolicyOf(-1).ok()); }

}  // namespace
}  // namespace sandglass::undo

#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace sandglass {
namespace {

constexpr Code kAllCodes[] = {
    Code::kInvalid, Code::kNotFound,    Code::kExists,    Code::kDenied,      Code::kConflict,
    Code::kCorrupt, Code::kBusy,        Code::kLocked,    Code::kUnsupported, Code::kNoSpace,
    Code::kLimit,   Code::kIo,          Code::kVersion,   Code::kUnprotected, Code::kNotRestorable,
    Code::kFrozen,  Code::kOutsideRoot, Code::kCancelled, Code::kForeign,
};

TEST(Error, EveryCodeHasItsOwnNameAndAnErrno) {
  std::set<std::string_view> names;
  for (const Code code : kAllCodes) {
    names.insert(CodeName(code));
    EXPECT_NE(ErrnoFor(Error(code, "x")), 0) << CodeName(code);
  }
  EXPECT_EQ(names.size(), std::size(kAllCodes));
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, SaysCodeAndMessage) {
  EXPECT_EQ(Error(Code::kNotFound, "no step 7").ToString(), "not_found: no step 7");
}

TEST(Error, FromErrnoKeepsTheKernelsAnswer) {
  const Error error = Error::FromErrno(ENOENT, "open a");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.sys_errno(), ENOENT);
  EXPECT_EQ(error.message(), "open a: No such file or directory");
  EXPECT_EQ(ErrnoFor(Error::FromErrno(EDQUOT, "write")), EDQUOT);
}

TEST(Error, ErrnosFallIntoTheirCodes) {
  const std::pair<int, Code> expected[] = {{ENOTDIR, Code::kNotFound}, {EEXIST, Code::kExists},
                                           {EACCES, Code::kDenied},    {EROFS, Code::kDenied},
                                           {EBUSY, Code::kBusy},       {ENOSPC, Code::kNoSpace},
                                           {EINVAL, Code::kInvalid},   {EXDEV, Code::kUnsupported},
                                           {EIO, Code::kIo},           {ELIBBAD, Code::kIo}};
  for (const auto& [sys_errno, code] : expected) {
    EXPECT_EQ(Error::FromErrno(sys_errno, "call").code(), code) << sys_errno;
  }
}

TEST(Error, ContextGoesInFrontAndKeepsTheRest) {
  const Error error = Error::FromErrno(EACCES, "open b").WithContext("rollback of step 3");
  EXPECT_EQ(error.code(), Code::kDenied);
  EXPECT_EQ(error.sys_errno(), EACCES);
  EXPECT_EQ(error.message(), "rollback of step 3: open b: Permission denied");
}

}  // namespace
}  // namespace sandglass

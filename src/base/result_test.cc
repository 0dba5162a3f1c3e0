#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace sandglass {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Error(Code::kInvalid, "odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  TRY_ASSIGN(const int half, Half(number));
  return Half(half);
}

Status OnlyEven(int number) {
  TRY(Half(number));
  return Ok();
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_TRUE(Half(4).ok());
  EXPECT_TRUE(static_cast<bool>(Half(4)));
  EXPECT_EQ(*Half(4), 2);
  EXPECT_FALSE(Half(3).ok());
  EXPECT_EQ(Half(3).error().code(), Code::kInvalid);
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_EQ(Quarter(5).error().message(), "odd");
  EXPECT_TRUE(OnlyEven(2).ok());
  EXPECT_EQ(OnlyEven(1).error().code(), Code::kInvalid);
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, ReachesIntoItsValue) {
  Result<std::string> text(std::string("abc"));
  text->push_back('d');
  *text += 'e';
  EXPECT_EQ(std::as_const(text)->size(), 5U);
}

TEST(Status, IsOkUnlessItHoldsAnError) {
  EXPECT_TRUE(Ok().ok());
  const Status failed = Error(Code::kBusy, "later");
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kBusy);
}

TEST(ResultDeathTest, TakingWhatIsNotThereIsACallersBug) {
  EXPECT_DEATH((void)Half(3).value(), "CHECK failed");
  EXPECT_DEATH((void)Half(4).error(), "CHECK failed");
  EXPECT_DEATH((void)Ok().error(), "CHECK failed");
}

}  // namespace
}  // namespace sandglass

#include "api/api_error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sandglass::api {
namespace {

TEST(ApiErrorTable, EveryCodeHasANameOfItsOwnAMeaningAndANumber) {
  std::set<std::string_view> names;
  for (const ApiCode code : AllApiCodes()) {
    EXPECT_TRUE(names.insert(NameOf(code)).second) << NameOf(code);
    EXPECT_FALSE(MeaningOf(code).empty()) << NameOf(code);
    EXPECT_LE(JsonRpcNumber(code), -32000) << NameOf(code);
    EXPECT_GE(JsonRpcNumber(code), -32768) << NameOf(code);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(ApiCode::kSessionLost) + 1);
}

TEST(ApiErrorTable, AnErrorFromBelowKeepsItsMessage) {
  const ApiError error = FromError(Error(Code::kConflict, "somebody edited a.txt"));
  EXPECT_EQ(WriteJson(ToJson(error)),
            R"({"code":"conflict","message":"somebody edited a.txt","data":{}})");
}

}  // namespace
}  // namespace sandglass::api

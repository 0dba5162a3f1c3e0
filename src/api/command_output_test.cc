#include "api/command_output.h"

#include <gtest/gtest.h>

namespace sandglass::api {
namespace {

TEST(OutputPiece, TextStaysText) {
  const OutputPiece piece = NextPiece("h\xc3\xa9llo\n");
  EXPECT_EQ(piece.bytes, 7u);
  EXPECT_EQ(piece.data, "h\xc3\xa9llo\n");
  EXPECT_FALSE(piece.is_base64);
}

TEST(OutputPiece, ACharacterThatIsNotCompleteWaits) {
  EXPECT_EQ(NextPiece("ab\xe2\x82").bytes, 2u);
  EXPECT_EQ(NextPiece("ab\xf0\x9f\x98").data, "ab");
  EXPECT_EQ(NextPiece("\xc3").bytes, 0u);
}

TEST(OutputPiece, OtherBytesComeAsBase64) {
  const OutputPiece piece = NextPiece("\xff\xfe");
  EXPECT_TRUE(piece.is_base64);
  EXPECT_EQ(piece.bytes, 2u);
  EXPECT_EQ(piece.data, "//4=");
}

TEST(OutputPiece, IsNeverLargerThanAnEventMayBe) {
  EXPECT_EQ(NextPiece(std::string(1 << 20, 'x')).bytes, size_t{64} << 10);
}

}  // namespace
}  // namespace sandglass::api

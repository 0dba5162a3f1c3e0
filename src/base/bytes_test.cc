#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace sandglass {
namespace {

TEST(Bytes, WhatTheWriterPutsTheCursorTakes) {
  ByteWriter writer;
  writer.Put(uint32_t{0x01020304});
  writer.PutText("name\n\xff");
  writer.Put(int64_t{-5});
  writer.PutBytes(AsBytes("tail"));
  EXPECT_EQ(writer.bytes()[0], 4);  // little-endian

  ByteCursor cursor(writer.bytes());
  EXPECT_EQ(cursor.Take<uint32_t>().value(), 0x01020304U);
  EXPECT_EQ(cursor.TakeText(100).value(), "name\n\xff");
  EXPECT_EQ(cursor.Take<int64_t>().value(), -5);
  EXPECT_EQ(cursor.remaining(), 4U);
  EXPECT_EQ(AsText(cursor.TakeBytes(4).value()), "tail");
  EXPECT_TRUE(cursor.empty());
}

TEST(ByteCursor, AShortInputIsCorruptAndMovesNothing) {
  ByteCursor cursor(AsBytes("abc"));
  EXPECT_EQ(cursor.Take<uint32_t>().error().code(), Code::kCorrupt);
  EXPECT_EQ(cursor.TakeBytes(4).error().code(), Code::kCorrupt);
  EXPECT_EQ(cursor.remaining(), 3U);
  EXPECT_EQ(cursor.Take<uint8_t>().value(), 'a');
}

TEST(ByteCursor, TextLongerThanAllowedOrThanTheInputIsCorrupt) {
  ByteWriter writer;
  writer.PutText("12345");
  EXPECT_TRUE(ByteCursor(writer.bytes()).TakeText(5).ok());
  EXPECT_EQ(ByteCursor(writer.bytes()).TakeText(4).error().code(), Code::kCorrupt);
  const ByteView cut = ByteView(writer.bytes()).first(8);
  EXPECT_EQ(ByteCursor(cut).TakeText(5).error().code(), Code::kCorrupt);
  writer.Clear();
  writer.Put(UINT32_MAX);
  EXPECT_EQ(ByteCursor(writer.bytes()).TakeText(SIZE_MAX).error().code(), Code::kCorrupt);
}

TEST(ByteCursor, AnEmptyInputIsFine) {
  ByteCursor cursor({});
  EXPECT_TRUE(cursor.empty());
  EXPECT_TRUE(cursor.TakeBytes(0).ok());
  EXPECT_FALSE(cursor.Take<uint8_t>().ok());
}

}  // namespace
}  // namespace sandglass

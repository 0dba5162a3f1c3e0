#include "undo/pack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "base/io.h"

namespace sandglass::undo {
namespace {

Fd InMemory() { return Fd(::memfd_create("pack", MFD_CLOEXEC)); }

TEST(Pack, WhatWasCompressedReadsBackFromAnyOffset) {
  Bytes raw(3 * kPackChunkBytes + 17);
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<uint8_t>(i * 31 / 7);
  const Fd from = InMemory();
  ASSERT_TRUE(PWriteFully(from.get(), raw, 0).ok());
  Fd to = InMemory();
  ASSERT_TRUE(WriteCompressedPack(from.get(), raw.size(), to.get()).ok());
  auto reader = PackReader::Open(std::move(to));
  ASSERT_TRUE(reader.ok());
  auto all = reader->Read(0, raw.size());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, raw);
  auto part = reader->Read(kPackChunkBytes - 5, 10);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(*part, Bytes(raw.begin() + kPackChunkBytes - 5, raw.begin() + kPackChunkBytes + 5));
  EXPECT_EQ(reader->Read(1, raw.size()).error().code(), Code::kCorrupt);
}

// Each end in the index stands for a whole chunk, also one without a frame.
TEST(Pack, AnIndexThatPromisesMoreThanItsFramesHoldTakesNoMemory) {
  constexpr uint64_t kChunks = 1 << 22;
  const PackIndex forged{.raw_bytes = kChunks * kPackChunkBytes,
                         .ends = std::vector<uint64_t>(kChunks, 0)};
  Fd file = InMemory();
  ASSERT_TRUE(PWriteFully(file.get(), forged.Encode(), 0).ok());
  auto reader = PackReader::Open(std::move(file));
  ASSERT_TRUE(reader.ok());
  const auto read = reader->Read(0, forged.raw_bytes);  // a tebibyte
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sandglass::undo

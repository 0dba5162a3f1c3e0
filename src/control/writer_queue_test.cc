#include "control/writer_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sandglass::control {
namespace {

constexpr Watermarks kSmall{.low = 4, .high = 10, .capacity = 20};

Code PushCode(WriterQueue& queue, std::string_view line, LineKind kind) {
  const Status status = queue.Push(line, kind);
  return status.ok() ? Code::kIo : status.error().code();
}

TEST(WriterQueue, GivesBackLinesInOrder) {
  WriterQueue queue;
  ASSERT_TRUE(queue.Push("one", LineKind::kBulk).ok());
  ASSERT_TRUE(queue.Push("two", LineKind::kUrgent).ok());
  EXPECT_EQ(queue.Front(), "one\ntwo\n");
  queue.Consume(2);
  EXPECT_EQ(queue.Front(), "e\ntwo\n");
  ASSERT_TRUE(queue.Push("three", LineKind::kBulk).ok());
  EXPECT_EQ(queue.Front(), "e\ntwo\nthree\n");
  queue.Consume(queue.size());
  EXPECT_TRUE(queue.empty());
}

TEST(WriterQueue, PausesAtTheHighMarkAndGoesOnAtTheLowOne) {
  WriterQueue queue(kSmall);
  ASSERT_TRUE(queue.Push("12345678", LineKind::kBulk).ok());
  EXPECT_FALSE(queue.paused());
  ASSERT_TRUE(queue.Push("", LineKind::kBulk).ok());
  EXPECT_TRUE(queue.paused());
  queue.Consume(5);
  EXPECT_TRUE(queue.paused());
  EXPECT_EQ(PushCode(queue, "x", LineKind::kBulk), Code::kBusy);
  queue.Consume(1);
  EXPECT_FALSE(queue.paused());
  EXPECT_TRUE(queue.Push("x", LineKind::kBulk).ok());
}

TEST(WriterQueue, WhileItIsPausedACommandsEndStillPasses) {
  WriterQueue queue(kSmall);
  ASSERT_TRUE(queue.Push("123456789", LineKind::kBulk).ok());
  ASSERT_TRUE(queue.paused());
  EXPECT_TRUE(queue.Push("ended", LineKind::kUrgent).ok());
  EXPECT_EQ(queue.Front(), "123456789\nended\n");
  EXPECT_EQ(PushCode(queue, "1234", LineKind::kUrgent), Code::kLimit);
  EXPECT_TRUE(queue.Push("123", LineKind::kUrgent).ok());
}

TEST(WriterQueue, ACommandThatPrintsWithoutEndDoesNotGrowMemory) {
  WriterQueue queue;
  const std::string line(32 << 10, 'y');
  std::mt19937 random(3);
  size_t pushed = 0, taken = 0;
  while (pushed < size_t{256} << 20) {
    while (queue.Push(line, LineKind::kBulk).ok()) pushed += line.size() + 1;
    ASSERT_LE(queue.held_bytes(), size_t{2} << 20);
    const size_t count = random() % (queue.size() + 1);
    queue.Consume(count);
    taken += count;
  }
  EXPECT_EQ(pushed - taken, queue.size());
}

}  // namespace
}  // namespace sandglass::control

#include "base/thread_annotations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sandglass {
namespace {

class Counter {
 public:
  void Add() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++value_;
    changed_.NotifyAll();
  }
  void AwaitAtLeast(int wanted) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (value_ < wanted) changed_.Wait(mutex_);
  }
  bool AwaitChange(std::chrono::milliseconds time) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, time);
  }
  int value() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int value_ GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, ProtectsACounterOfManyThreads) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counter.Add();
    });
  }
  counter.AwaitAtLeast(4000);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 4000);
}

TEST(Mutex, TryLockFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  mutex.Lock();
  std::thread([&] {
    const bool locked = mutex.TryLock();
    EXPECT_FALSE(locked);
    if (locked) mutex.Unlock();
  }).join();
  mutex.Unlock();
  const bool locked = mutex.TryLock();
  EXPECT_TRUE(locked);
  if (locked) mutex.Unlock();
}

TEST(CondVar, WaitForEndsWithoutANotification) {
  Counter counter;
  // A spurious wake-up is allowed, but not every time.
  int notified = 0;
  for (int i = 0; i < 5; ++i) notified += counter.AwaitChange(std::chrono::milliseconds(1)) ? 1 : 0;
  EXPECT_LT(notified, 5);
  EXPECT_EQ(counter.value(), 0);
}

TEST(CondVar, NotifyOneWakesAWaiter) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread waiter([&] {
    const MutexLock lock(mutex);
    while (!ready) changed.Wait(mutex);
  });
  {
    const MutexLock lock(mutex);
    ready = true;
  }
  changed.NotifyOne();
  waiter.join();
}

TEST(CondVar, WaitingForEverEndsWithANotificationOnly) {
  Counter counter;
  std::atomic<bool> woken = false;
  std::thread waker([&] {
    while (!woken) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      counter.Add();
    }
  });
  EXPECT_TRUE(counter.AwaitChange(std::chrono::milliseconds::max()));
  woken = true;
  waker.join();
  EXPECT_GE(counter.value(), 1);
}

}  // namespace
}  // namespace sandglass

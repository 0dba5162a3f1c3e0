// Locks that clang can check: with -Wthread-safety, touching a GUARDED_BY field without its Mutex
// does not compile.
//
// Mutex, MutexLock and CondVar are std::mutex, std::lock_guard and std::condition_variable with
// those annotations, which libstdc++ lacks. docs/locks.md gives the order in which locks are taken.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define SANDGLASS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SANDGLASS_THREAD_ATTRIBUTE(x)
#endif

// On a type: it is a lock, or holds one for its lifetime.
#define CAPABILITY(x) SANDGLASS_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY SANDGLASS_THREAD_ATTRIBUTE(scoped_lockable)
// On a field: the lock that protects it, or that protects what it points to.
#define GUARDED_BY(x) SANDGLASS_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) SANDGLASS_THREAD_ATTRIBUTE(pt_guarded_by(x))
// On a lock: its place in the order.
#define ACQUIRED_BEFORE(...) SANDGLASS_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) SANDGLASS_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
// On a function: what the caller must hold, must not hold, or gets and gives by calling it.
#define REQUIRES(...) SANDGLASS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SANDGLASS_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SANDGLASS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SANDGLASS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) SANDGLASS_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) SANDGLASS_THREAD_ATTRIBUTE(assert_capability(x))
#define RETURN_CAPABILITY(x) SANDGLASS_THREAD_ATTRIBUTE(lock_returned(x))
// The checker cannot follow this function: say why beside it.
#define NO_THREAD_SAFETY_ANALYSIS SANDGLASS_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace sandglass {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  bool TryLock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waiting has no predicate, because clang does not see that a lambda runs under the lock: write
// `while (!ready_) changed_.Wait(mutex_);`.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();  // the caller goes on holding it
  }

  // False: the time came without a notification.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_until(held, deadline) == std::cv_status::no_timeout;
    held.release();
    return notified;
  }
  bool WaitFor(Mutex& mutex, std::chrono::milliseconds time) REQUIRES(mutex) {
    return WaitUntil(mutex, SteadyDeadline(time));
  }

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace sandglass

// KeyLocks: many locks for the price of a small table. A key (the identity of a directory or object) maps to one of a fixed
// number of stripes; a Hold takes stripes and gives them back when it dies, on whatever thread that is.
//
// Deadlock: the first set of keys of a Hold is taken in stripe order. Keys that only become known later (what a name refers to) are taken
// by TryAdd, which never waits: on failure the caller drops the Hold and starts over. docs/locks.md has the order among other locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "undo/object.h"

namespace sandglass::undo {

class KeyLocks {
 public:
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold();

    // False: someone else holds that key now.
    bool TryAdd(const ObjectId& key);

   private:
    friend class KeyLocks;
    static constexpr size_t kMaxKeys = 6;
    bool Has(uint16_t stripe) const;
    void Release();

    KeyLocks* owner_ = nullptr;
    std::array<uint16_t, kMaxKeys> stripes_{};
    size_t count_ = 0;
  };

  // Waits until all keys are free and takes them.
  Hold Take(std::initializer_list<ObjectId> keys);
  // Waits until this key was free for a moment: what to do after a failed TryAdd, holding nothing.
  void WaitFor(const ObjectId& key);

 private:
  static constexpr size_t kStripes = 1024;
  static uint16_t StripeOf(const ObjectId& key) { return static_cast<uint16_t>(key.hi % kStripes); }
  void Lock(uint16_t stripe);
  bool TryLock(uint16_t stripe);
  void Unlock(uint16_t stripe);

  std::array<std::atomic<uint32_t>, kStripes> taken_{};
};

}  // namespace sandglass::undo

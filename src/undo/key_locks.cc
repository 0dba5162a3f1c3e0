#include "undo/key_locks.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace sandglass::undo {

KeyLocks::Hold::Hold(Hold&& other) noexcept { *this = std::move(other); }

KeyLocks::Hold& KeyLocks::Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    Release();
    owner_ = std::exchange(other.owner_, nullptr);
    stripes_ = other.stripes_;
    count_ = std::exchange(other.count_, 0);
  }
  return *this;
}

KeyLocks::Hold::~Hold() { Release(); }

void KeyLocks::Hold::Release() {
  for (size_t i = 0; i < count_; ++i) owner_->Unlock(stripes_[i]);
  count_ = 0;
}

bool KeyLocks::Hold::Has(uint16_t stripe) const {
  return std::find(stripes_.begin(), stripes_.begin() + count_, stripe) !=
         stripes_.begin() + count_;
}

bool KeyLocks::Hold::TryAdd(const ObjectId& key) {
  const uint16_t stripe = StripeOf(key);
  if (Has(stripe)) return true;
  CHECK(count_ < kMaxKeys);
  if (!owner_->TryLock(stripe)) return false;
  stripes_[count_++] = stripe;
  return true;
}

KeyLocks::Hold KeyLocks::Take(std::initializer_list<ObjectId> keys) {
  Hold hold;
  hold.owner_ = this;
  CHECK(keys.size() <= Hold::kMaxKeys);
  for (const ObjectId& key : keys) {
    const uint16_t stripe = StripeOf(key);
    if (!hold.Has(stripe)) hold.stripes_[hold.count_++] = stripe;
  }
  std::sort(hold.stripes_.begin(), hold.stripes_.begin() + hold.count_);
  for (size_t i = 0; i < hold.count_; ++i) Lock(hold.stripes_[i]);
  return hold;
}

void KeyLocks::WaitFor(const ObjectId& key) {
  const uint16_t stripe = StripeOf(key);
  Lock(stripe);
  Unlock(stripe);
}

void KeyLocks::Lock(uint16_t stripe) {
  while (!TryLock(stripe)) taken_[stripe].wait(1, std::memory_order_relaxed);
}

bool KeyLocks::TryLock(uint16_t stripe) {
  return taken_[stripe].exchange(1, std::memory_order_acquire) == 0;
}

void KeyLocks::Unlock(uint16_t stripe) {
  taken_[stripe].store(0, std::memory_order_release);
  taken_[stripe].notify_one();
}

}  // namespace sandglass::undo

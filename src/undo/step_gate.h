// StepGate: who may be inside a step. Operations enter together; a boundary (open, close, rollback) or the renaming of a folder, which
// moves every path below it, enters alone. Leaving may happen on another thread than entering. Writers go first.
#pragma once

#include "base/thread_annotations.h"

namespace sandglass::undo {

class StepGate {
 public:
  enum class Way : uint8_t { kNone, kTogether, kAlone };

  // Holds the gate until it dies or is reset. Movable.
  class Pass {
   public:
    Pass() = default;
    Pass(StepGate* gate, Way way) : gate_(gate), way_(way) {}
    Pass(Pass&& other) noexcept : gate_(other.gate_), way_(other.way_) { other.way_ = Way::kNone; }
    Pass& operator=(Pass&& other) noexcept {
      if (this != &other) {
        Reset();
        gate_ = other.gate_;
        way_ = other.way_;
        other.way_ = Way::kNone;
      }
      return *this;
    }
    ~Pass() { Reset(); }
    void Reset() {
      if (way_ != Way::kNone) gate_->Leave(way_);
      way_ = Way::kNone;
    }

   private:
    StepGate* gate_ = nullptr;
    Way way_ = Way::kNone;
  };

  Pass Enter(Way way) {
    MutexLock lock(mutex_);
    if (way == Way::kTogether) {
      while (alone_ || waiting_ > 0) changed_.Wait(mutex_);
      ++inside_;
    } else {
      ++waiting_;
      while (alone_ || inside_ > 0) changed_.Wait(mutex_);
      --waiting_;
      alone_ = true;
    }
    return Pass(this, way);
  }

 private:
  void Leave(Way way) {
    MutexLock lock(mutex_);
    if (way == Way::kTogether) {
      --inside_;
    } else {
      alone_ = false;
    }
    if (alone_ || inside_ > 0) return;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  int inside_ GUARDED_BY(mutex_) = 0;
  int waiting_ GUARDED_BY(mutex_) = 0;
  bool alone_ GUARDED_BY(mutex_) = false;
};

}  // namespace sandglass::undo

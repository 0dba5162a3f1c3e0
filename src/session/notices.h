// Notices: what undo did by itself, or did not let commands do, in words for whoever runs them. Thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.h"
#include "undo/types.h"

namespace sandglass::session {

class Notices : public undo::UndoObserver {
 public:
  void OnEvicted(const std::vector<StepId>& steps) override EXCLUDES(mutex_);
  void OnUnprotected(StepId step, std::string_view why) override EXCLUDES(mutex_);
  // Since they were taken last.
  std::vector<std::string> Take() EXCLUDES(mutex_);
  void Add(std::string text) EXCLUDES(mutex_);
  // Whether that step, the newest, was told to be not recorded in full.
  bool TakeUnprotected(StepId step) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::string> texts_ GUARDED_BY(mutex_);
  std::set<StepId> unprotected_ GUARDED_BY(mutex_);
};

}  // namespace sandglass::session

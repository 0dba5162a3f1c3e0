// The ways of keeping content, as far as the undo library counts them, and which of them a place can use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "undo/undo_log.h"

namespace sandglass::model {

inline constexpr size_t kStrategyCount = 11;

const char* StrategyName(size_t index);
uint64_t TimesUsed(const undo::UndoLog& log, size_t index);
bool IsOffered(const undo::UndoLog& log, size_t index);

}  // namespace sandglass::model

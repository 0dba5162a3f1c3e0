// Strong ids: a StepId cannot be passed where a sequence number is meant. Value types.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace sandglass {

template <class Tag, class Rep>
struct StrongId {
  Rep value{};

  friend auto operator<=>(StrongId, StrongId) = default;
};

// A step of undo. Negative: ambient, i.e. caused by no command.
using StepId = StrongId<struct StepIdTag, int64_t>;

}  // namespace sandglass

template <class Tag, class Rep>
struct std::hash<sandglass::StrongId<Tag, Rep>> {
  size_t operator()(sandglass::StrongId<Tag, Rep> id) const { return std::hash<Rep>{}(id.value); }
};

// What a bridge process asks its session before a step destroys more than was allowed, and what that answers: one frame of JSON each, on
// a channel of their own, because a question comes unasked and its answer may take long. Decoding is pure. Value types; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "undo/types.h"

namespace sandglass::session {

inline constexpr size_t kMaxQuestionBytes = size_t{1} << 20;

// Which question of which project; those of the bridge are numbered within a project.
struct SafeguardKey {
  uint32_t project = 0;  // its place among those that can be written to
  uint64_t question = 0;
  friend auto operator<=>(const SafeguardKey&, const SafeguardKey&) = default;
};

struct SafeguardAsked {
  SafeguardKey key;
  StepId command;  // whose process waits; its step may be another one
  undo::SafeguardQuestion question;
};
struct SafeguardAnswered {
  SafeguardKey key;
  undo::Decision decision = undo::Decision::kDeny;
};

// Kind, step, amount and sample paths.
Json QuestionToJson(const undo::SafeguardQuestion& question);
Result<undo::SafeguardQuestion> QuestionFromJson(const Json& json);

std::string Encode(const SafeguardAsked& asked);
std::string Encode(const SafeguardAnswered& answered);
// kInvalid, kLimit.
Result<SafeguardAsked> DecodeSafeguardAsked(std::string_view frame);
Result<SafeguardAnswered> DecodeSafeguardAnswered(std::string_view frame);

}  // namespace sandglass::session

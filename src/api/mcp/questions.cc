#include "api/mcp/questions.h"

#include <fmt/format.h>

#include <utility>

namespace sandglass::api::mcp {

std::string Questions::Add(Then then) {
  std::string id = fmt::format("question-{}", next_++);
  open_.emplace(id, std::move(then));
  return id;
}

void Questions::Answer(const Json& id, const Json* result) {
  const auto found = id.AsString() != nullptr ? open_.find(*id.AsString()) : open_.end();
  if (found == open_.end()) return;
  const Then then = std::move(found->second);
  open_.erase(found);
  then(result);
}

}  // namespace sandglass::api::mcp

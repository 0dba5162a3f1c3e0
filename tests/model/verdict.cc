#include "tests/model/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sandglass::model {

constexpr size_t kShownDifferences = 12;

std::string Ids(const std::vector<StepId>& ids) {
  std::string text;
  for (const StepId id : ids) text += fmt::format("{}{}", text.empty() ? "" : ", ", id.value);
  return text;
}

std::string Listed(std::vector<std::string> lines) {
  const size_t all = lines.size();
  if (all > kShownDifferences) {
    lines.resize(kShownDifferences);
    lines.push_back(fmt::format("and {} more", all - kShownDifferences));
  }
  return fmt::format("{}", fmt::join(lines, "\n    "));
}

}  // namespace sandglass::model

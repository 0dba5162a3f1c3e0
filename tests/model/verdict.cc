#include "tests/model/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

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

std::string KindOf(const std::string& failure) {
  std::istringstream lines(failure);
  std::string kind;
  std::string line;
  for (int i = 0; i < 2 && std::getline(lines, line); ++i) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.find_first_of("0123456789/\\\n") == std::string::npos) kind += word + " ";
    }
  }
  return kind;
}

}  // namespace sandglass::model

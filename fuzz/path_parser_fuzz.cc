// Fuzzes the parser of paths beneath a root. What it accepts is compared with a second, naive
// reading of the input; what it refuses must have a reason that can be seen in the input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/rel_path.h"
#include "base/result.h"

namespace sandglass {
namespace {

using Names = std::vector<std::string_view>;

Names Split(std::string_view path) {
  Names names;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    names.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

Names MeaningfulNames(std::string_view path) {
  Names names = Split(path);
  std::erase_if(names, [](std::string_view name) { return name.empty() || name == "."; });
  return names;
}

bool IsTooLong(std::string_view name) { return name.size() > kMaxNameBytes; }

void CheckRefusal(std::string_view raw, Code code) {
  const Names names = Split(raw);
  const bool leaves = raw.starts_with('/') || std::ranges::find(names, "..") != names.end();
  const bool unusable = raw.find('\0') != raw.npos || std::ranges::any_of(names, IsTooLong);
  CHECK(code == Code::kOutsideRoot || code == Code::kInvalid);
  CHECK(code != Code::kOutsideRoot || leaves);
  CHECK(code != Code::kInvalid || unusable);
}

void CheckNormalForm(std::string_view path) {
  CHECK(!path.starts_with('/') && !path.ends_with('/'));
  CHECK(path.find('\0') == path.npos);
  if (path.empty()) return;
  for (const std::string_view name : Split(path)) {
    CHECK(!name.empty() && name != "." && name != "..");
    CHECK(!IsTooLong(name));
  }
}

void CheckParts(std::string_view path) {
  CHECK(PathDepth(path) == MeaningfulNames(path).size());
  CHECK(JoinPath(ParentOf(path), BaseName(path)) == path);
  CHECK(IsBeneath(path, "") && IsBeneath(path, path) && IsBeneath(path, ParentOf(path)));
  const std::string below = JoinPath(path, "x");
  CHECK(IsBeneath(below, path) && !IsBeneath(path, below));
  CHECK(ParentOf(below) == path && BaseName(below) == "x");
  // A longer last name is a neighbour, not a child.
  CHECK(path.empty() || !IsBeneath(std::string(path) + "x", path));
}

// The same of absolute paths.
void CheckBelow(std::string_view path) {
  const std::string folder = "/" + std::string(path);
  CHECK(PathBelow(folder, "/") == path && PathBelow(folder, folder) == "");
  CHECK(PathBelow(folder + "/x", folder) == "x");
  CHECK(path.empty() || !PathBelow(folder + "x", folder));
  CHECK(!PathBelow(folder, folder + "/x"));
}

void CheckParse(std::string_view raw) {
  const auto parsed = NormalizeRelPath(raw);
  CHECK(IsNormalRelPath(raw) == (parsed.ok() && *parsed == raw));
  if (!parsed.ok()) return CheckRefusal(raw, parsed.error().code());
  CheckNormalForm(*parsed);
  CHECK(MeaningfulNames(raw) == MeaningfulNames(*parsed));
  const auto again = NormalizeRelPath(*parsed);
  CHECK(again.ok() && *again == *parsed);
  CheckParts(*parsed);
  CheckBelow(*parsed);
}

}  // namespace
}  // namespace sandglass

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sandglass::CheckParse(sandglass::AsText({data, size}));
  return 0;
}

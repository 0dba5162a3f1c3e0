// Parsing and matching of ignore rules. Input: the rules, a NUL, the path. The last NUL counts, so
// rules may hold others.

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "undo/gitignore.h"

namespace {

using sandglass::undo::GitignoreRules;
using sandglass::undo::PathKind;
using sandglass::undo::Verdict;

// The thread's own time, so that a busy machine raises no alarm.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A rule for every name, put last, decides whatever stands before it.
void CheckLastRuleDecides(std::string_view rules, std::string_view path) {
  const bool has_name = !path.empty() && !path.ends_with('/');
  const std::string text(rules);
  CHECK(GitignoreRules::Parse(text + "\n*").Match(path, PathKind::kFile) ==
        (has_name ? Verdict::kIgnored : Verdict::kNone));
  CHECK(GitignoreRules::Parse(text + "\n!*/").Match(path, PathKind::kDir) ==
        (has_name ? Verdict::kIncluded : Verdict::kNone));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxSize = 8192;
  if (size > kMaxSize) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.rfind('\0');
  const std::string_view rules = input.substr(0, nul);
  const std::string_view path = nul == std::string_view::npos ? "a/b" : input.substr(nul + 1);

  const double start = CpuSeconds();
  const GitignoreRules parsed = GitignoreRules::Parse(rules);
  const Verdict as_file = parsed.Match(path, PathKind::kFile);
  const Verdict as_dir = parsed.Match(path, PathKind::kDir);
  CHECK(!parsed.empty() || (as_file == Verdict::kNone && as_dir == Verdict::kNone));
  // What matches a file matches a directory of that name too; only the verdict may differ.
  CHECK(as_file == Verdict::kNone || as_dir != Verdict::kNone);
  CheckLastRuleDecides(rules, path);
  CHECK(CpuSeconds() - start < 2.0);
  return 0;
}

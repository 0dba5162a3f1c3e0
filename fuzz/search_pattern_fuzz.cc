// Patterns of searches: the first byte chooses between a glob and an expression; then the pattern, NUL, the text. The engine must end
// soon whatever they are, and what looks for text first must find exactly what the engine alone finds.
#include <re2/re2.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "session/files/file_scan.h"
#include "session/files/glob_pattern.h"
#include "session/files/line_matcher.h"

namespace files = sandglass::session::files;

namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void TryGlob(std::string_view pattern, std::string_view path) {
  for (const auto anchor : {files::GlobAnchor::kPath, files::GlobAnchor::kNameOrPath}) {
    const auto compiled = files::GlobPattern::Compile(pattern, anchor);
    if (!compiled.ok()) return;
    const bool matches = compiled->Matches(path);
    // Nothing lies outside of the folder that it names.
    const std::string& folder = compiled->literal_folder();
    if (matches && !folder.empty()) CHECK(path.starts_with(folder + "/"));
  }
}

// By the engine alone, line by line.
uint64_t CountSlowly(std::string_view pattern, std::string_view text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);
  const re2::RE2 expression("(?m)" + std::string(pattern), options);
  CHECK(expression.ok());
  uint64_t count = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (expression.Match({text.data(), text.size()}, begin, end, re2::RE2::UNANCHORED, nullptr, 0))
      ++count;
    begin = end + 1;
  }
  return count;
}

void TryExpression(std::string_view pattern, std::string_view text) {
  const auto matcher = files::LineMatcher::Compile({pattern});
  if (!matcher.ok()) return;
  const files::ScanOptions count{.mode = files::GrepMode::kCount};
  files::FileScan counted(*matcher, count);
  counted.Feed(text);
  CHECK(counted.matches() == CountSlowly(pattern, text));
  const files::ScanOptions content{
      .before = 2, .after = 1, .max_matches = 50, .max_line_bytes = 20};
  files::FileScan scan(*matcher, content);
  scan.Feed(text);
  uint64_t last = 0;
  for (const files::GrepLine& line : scan.lines()) {
    CHECK(line.number > last && line.text.size() <= 20);
    last = line.number;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 8192) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t nul = input.find('\0');
  const std::string_view pattern = input.substr(0, nul);
  const std::string_view text = nul == std::string_view::npos ? "a/b\nc" : input.substr(nul + 1);
  const double start = CpuSeconds();
  (data[0] % 2 == 0 ? TryGlob : TryExpression)(pattern, text);
  CHECK(CpuSeconds() - start < 8.0);
  return 0;
}

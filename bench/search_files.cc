// search_files FOLDER PATTERN [count|files|content]: Grep over a folder and nothing else, for tools/bench_files.py to run beside
// ripgrep.
#include <fcntl.h>

#include <cstdio>
#include <string_view>

#include "base/fd.h"
#include "session/files/grep.h"

namespace files = sandglass::session::files;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view mode = argc > 3 ? argv[3] : "files";
  const sandglass::Fd root(::open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC));
  files::GrepRequest request{.pattern = {argv[2]}, .limit = 100'000};
  request.mode = mode == "content" ? files::GrepMode::kContent
                 : mode == "count" ? files::GrepMode::kCount
                                   : files::GrepMode::kFilesWithMatches;
  const auto result = files::Grep(root.get(), request);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
    return 1;
  }
  uint64_t matches = 0;
  for (const files::GrepFile& file : result->files) matches += file.matches;
  std::printf("%zu files, %llu matches, %llu searched\n", result->files.size(),
              static_cast<unsigned long long>(matches),
              static_cast<unsigned long long>(result->counts.searched));
  return 0;
}

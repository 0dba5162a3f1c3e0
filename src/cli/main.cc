#include <fcntl.h>

#include <string_view>
#include <vector>

#include "cli/program.h"

namespace {

// A caller may start us with a standard stream closed. The next file that we open would get its
// number, and an error message would be written into the undo store.
bool OccupyStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!OccupyStandardStreams()) return static_cast<int>(sandglass::cli::ExitCode::kFailed);
  const std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(sandglass::cli::RunProgram(words, {}));
}

// The reader of shell command lines, the classifier and the search for dangers. Whatever the text, they end soon, and a command that
// follows a whole one is found.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/classifier.h"

namespace policy = sandglass::policy;

namespace {

// The thread's own time, so that a busy machine raises no alarm.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxSize = 16 << 10;
  if (size > kMaxSize) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const double start = CpuSeconds();
  const policy::ShellText shell = policy::ReadShell(text);
  CHECK(shell.commands.size() <= policy::kMostCommands);
  const policy::Classification found = policy::Classify(text, policy::DefaultClassifierConfig());
  for (const policy::ClassifiedCommand& command : found.commands)
    CHECK(command.command_class <= found.command_class);
  CHECK(found.certain || found.command_class != policy::CommandClass::kReadOnly);
  for (const policy::Finding& danger : policy::FindDangers(text))
    CHECK(!policy::DangerName(danger.danger).empty() && !danger.detail.empty());
  CHECK(CpuSeconds() - start < 5.0);
  return 0;
}

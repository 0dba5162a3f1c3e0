#include "tests/model/settings.h"

#include <chrono>
#include <cstdlib>

namespace sandglass::model {
namespace {

std::string Text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

uint64_t Number(const char* name, uint64_t otherwise) {
  const std::string text = Text(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

bool FullScale() { return Text("SANDGLASS_SCALE") == "full"; }

// The bulk runs where it is fastest; what only other file systems do needs fewer sequences to show.
uint64_t DefaultSequences(const std::string& file_system) {
  if (!FullScale()) return 60;
  return file_system == "tmpfs" || file_system.empty() ? 20'000 : 2'500;
}

}  // namespace

Settings Settings::FromEnvironment() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Settings settings;
  settings.file_system = Text("SANDGLASS_TEST_FS");
  settings.sequences = Number("SANDGLASS_MODEL_SEQUENCES", DefaultSequences(settings.file_system));
  // The sample of every change is the same each time, so that it fails for what changed; the full run looks further.
  const auto fresh =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()) *
      100'000;
  settings.seed = Number("SANDGLASS_MODEL_SEED", FullScale() ? fresh : 1);
  settings.required = Number("SANDGLASS_MODEL_REQUIRE", 0);
  settings.shrink = Number("SANDGLASS_MODEL_SHRINK", 1) != 0;
  settings.report = Text("SANDGLASS_MODEL_REPORT");
  return settings;
}

}  // namespace sandglass::model

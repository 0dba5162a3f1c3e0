// sandglass.toml, as a user's and as a project's. A project's file must never change what only its user may.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/config/config.h"

namespace config = sandglass::session::config;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::Config user, project;
  std::vector<config::Setting> user_settings, project_settings;
  if (config::ApplyText(text, config::Origin::kUserFile, user, user_settings).ok()) {
    // What is shown can be read again.
    for (const config::Setting& setting : user_settings) {
      const std::string line = "x = " + config::TomlText(setting.value);
      const auto again = config::ParseToml(line);
      CHECK(again.ok() && again->size() == 1);
    }
  }
  const auto applied =
      config::ApplyText(text, config::Origin::kProjectFile, project, project_settings);
  for (const config::Setting& setting : project_settings)
    CHECK(setting.key->trust != config::Trust::kUserOnly);
  CHECK(project.sandbox.read_write.empty() && project.unrecorded.empty());
  CHECK(project.gitignore == sandglass::undo::GitignoreMode::kOff);
  (void)applied;
  return 0;
}

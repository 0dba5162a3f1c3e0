// sandglass.toml, as a user's and as a project's; after a NUL comes what the project says on top of its user's. A project's file must
// never change what only its user may.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/config/config.h"

namespace config = sandglass::session::config;

namespace {

// What is shown can be read again.
void CheckShown(const std::vector<config::Setting>& settings) {
  for (const config::Setting& setting : settings) {
    const std::string line = "x = " + config::TomlText(setting.value);
    const auto again = config::ParseToml(line);
    CHECK(again.ok() && again->size() == 1);
    CHECK(!config::OriginName(setting.origin).empty());
  }
}

void CheckProjectAlone(std::string_view text) {
  config::Config project;
  std::vector<config::Setting> settings;
  (void)config::ApplyText(text, config::Origin::kProjectFile, project, settings);
  for (const config::Setting& setting : settings)
    CHECK(setting.key->trust != config::Trust::kUserOnly);
  CHECK(project.sandbox.read_write.empty() && project.unrecorded.empty());
  CHECK(project.gitignore == sandglass::undo::GitignoreMode::kOff);
  CHECK(project.safeguards.enabled && project.safeguards.delete_count.value_or(1) <= 50);
}

// A limit of the user's only ever becomes stricter.
void CheckBoth(std::string_view user, std::string_view project) {
  config::Config config;
  std::vector<config::Setting> settings;
  (void)config::ApplyText(user, config::Origin::kUserFile, config, settings);
  const auto memory = config.sandbox.memory_bytes;
  const auto cpus = config.sandbox.cpus;
  (void)config::ApplyText(project, config::Origin::kProjectFile, config, settings);
  CHECK(!memory || config.sandbox.memory_bytes <= memory);
  CHECK(!cpus || config.sandbox.cpus <= cpus);
  CheckShown(settings);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckProjectAlone(text);
  const size_t user = text.find('\0');
  CheckBoth(text.substr(0, user), user == std::string_view::npos ? "" : text.substr(user + 1));
  return 0;
}

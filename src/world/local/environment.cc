#include "world/local/environment.h"

#include <fmt/format.h>

#include <cstdlib>

#include "world/local/mount_plan.h"

namespace sandglass::world {
namespace {

struct Variable {
  const char* name;
  const char* otherwise;  // null: left out
};
constexpr Variable kFromHost[] = {
    {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    {"USER", nullptr},
    {"LOGNAME", nullptr},
    {"SHELL", "/bin/sh"},
    {"LANG", nullptr},
    {"TERM", nullptr},
    {"TZ", nullptr},
};

}  // namespace

std::string VisibleFolders(std::string_view path, const std::vector<MountEntry>& mounts) {
  std::string visible;
  while (true) {
    const std::string folder(path.substr(0, path.find(':')));
    if (!IsHidden(mounts, folder)) visible += (visible.empty() ? "" : ":") + folder;
    if (folder.size() == path.size()) return visible;
    path.remove_prefix(folder.size() + 1);
  }
}

std::vector<std::string> WorldEnvironment(const std::string& home,
                                          const std::vector<MountEntry>& mounts) {
  std::vector<std::string> environment{fmt::format("HOME={}", home), "SANDGLASS=1"};
  for (const Variable& variable : kFromHost) {
    const char* value = ::getenv(variable.name);
    if (value == nullptr) value = variable.otherwise;
    if (value == nullptr) continue;
    std::string kept = value;
    if (std::string_view(variable.name) == "PATH") kept = VisibleFolders(value, mounts);
    if (kept.empty() && variable.otherwise != nullptr) kept = variable.otherwise;
    environment.push_back(fmt::format("{}={}", variable.name, kept));
  }
  return environment;
}

}  // namespace sandglass::world

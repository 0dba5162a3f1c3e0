#include "world/local/environment.h"

#include <fmt/format.h>

#include <cstdlib>

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

std::vector<std::string> WorldEnvironment(const std::string& home) {
  std::vector<std::string> environment{fmt::format("HOME={}", home), "SANDGLASS=1"};
  for (const Variable& variable : kFromHost) {
    const char* value = ::getenv(variable.name);
    if (value == nullptr) value = variable.otherwise;
    if (value != nullptr) environment.push_back(fmt::format("{}={}", variable.name, value));
  }
  return environment;
}

}  // namespace sandglass::world

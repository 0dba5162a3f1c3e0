#include "api/mcp/random_name.h"

#include <fmt/format.h>
#include <sys/random.h>

#include "base/result.h"

namespace sandglass::api::mcp {

std::string RandomName() {
  unsigned char chance[16];
  CHECK(::getrandom(chance, sizeof(chance), 0) == sizeof(chance));
  std::string name;
  for (const unsigned char byte : chance) name += fmt::format("{:02x}", byte);
  return name;
}

}  // namespace sandglass::api::mcp

// Probe: what a command can do in the place where this code runs. `doctor` runs it in a world, where almost nothing must work; each try
// is the thing itself and not a look at a setting.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sandglass::session {

// Things of the host that the probe reaches for.
struct ProbeTargets {
  pid_t host_process = 0;
  uint16_t loopback_port = 0;   // somebody listens there
  std::string abstract_socket;  // and there; without the leading zero
  std::string socket_file;      // and there
  std::string secret_file;      // in the home folder of the host's user
  std::string store_file;       // of the undo store
  std::string system_file;      // in a folder of the system; nobody has it yet
  std::string new_file;         // in the project; the one thing that should work
};
std::string WriteTargets(const ProbeTargets& targets);
Result<ProbeTargets> ParseTargets(std::string_view text);

// One line for each try: its name, and whether it worked.
std::string RunProbe(const ProbeTargets& targets);
using ProbeReport = std::map<std::string, bool, std::less<>>;
Result<ProbeReport> ParseProbeReport(std::string_view text);

}  // namespace sandglass::session

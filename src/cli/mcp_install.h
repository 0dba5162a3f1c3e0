// `sandglass mcp install CLIENT`: writes an entry for this program into the configuration of an MCP client, or removes it.
#pragma once

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/option_table.h"

namespace sandglass::cli {

inline constexpr Option kRemoveOption{.name = "remove", .help = "take the entry out again"};
// kInvalid: the file that is there cannot be understood, or nobody can be asked. It is left as it is then.
Status InstallMcp(const Arguments& arguments, Console& console);

}  // namespace sandglass::cli

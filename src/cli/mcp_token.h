// The token by which clients of `sandglass mcp` show that they may talk to it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/option_table.h"

namespace sandglass::cli {

inline constexpr Option kTokenFileOption{
    .name = "token-file",
    .value = ValueKind::kPath,
    .value_name = "FILE",
    .help =
        "the file that holds the token MCP clients need, readable by its owner only; made if it "
        "does not exist. A Unix socket has none without it, and --http makes one up"};

// From a file that only its owner can read; one that does not exist is made, with a new token. kDenied: others can read it. kInvalid: what
// is in there is no token.
Result<std::string> TokenFromFile(const std::string& path);

}  // namespace sandglass::cli

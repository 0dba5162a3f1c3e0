// MCP clients whose configuration we can write: where it is, and what our entry in it looks like. A row for each; paths come from the
// environment of the user. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/config_splice.h"

namespace sandglass::cli {

enum class ConfigFormat : uint8_t { kJson, kToml };
// How a client says for which folder it starts a server.
enum class ProjectFrom : uint8_t {
  kWorkingFolder,    // it starts the server there
  kWorkspaceFolder,  // by a variable that it replaces
  kNowhere,          // so the entry names one
};

struct McpClientFile {
  std::string_view name;   // as in kMcpClients
  std::string_view title;  // for people
  ConfigFormat format;
  EntryName entry;
  ProjectFrom project;
  // From the environment: the variable that replaces the folder, if it is set; else the folder under the user's home.
  std::string_view folder_variable;
  std::string_view folder;
  std::string_view file;
  bool says_type = false;  // "type": "stdio"
};

std::span<const McpClientFile> AllMcpClientFiles();
const McpClientFile& FindMcpClientFile(std::string_view name);

// kNotFound: the user has no home.
Result<std::string> PathOf(const McpClientFile& client);

// What the client runs.
struct McpEntry {
  std::string program;
  std::string project;  // "": the one that the client works on
};
// As it stands in the file: the value of a member of JSON, or the lines of a section of TOML.
std::string EntryText(const McpClientFile& client, const McpEntry& entry);

}  // namespace sandglass::cli

#include "cli/mcp_client_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/json.h"
#include "cli/option_table.h"

namespace sandglass::cli {
namespace {

constexpr std::string_view kWorkspaceVariable = "${workspaceFolder}";

constexpr McpClientFile kClients[] = {
    {.name = "claude-code",
     .title = "Claude Code",
     .format = ConfigFormat::kJson,
     .entry = {"mcpServers", "sandglass"},
     .project = ProjectFrom::kWorkingFolder,
     .folder_variable = "CLAUDE_CONFIG_DIR",
     .folder = "",
     .file = ".claude.json",
     .says_type = true},
    {.name = "claude-desktop",
     .title = "Claude Desktop",
     .format = ConfigFormat::kJson,
     .entry = {"mcpServers", "sandglass"},
     .project = ProjectFrom::kNowhere,
     .folder_variable = "XDG_CONFIG_HOME",
     .folder = ".config",
     .file = "Claude/claude_desktop_config.json"},
    {.name = "cursor",
     .title = "Cursor",
     .format = ConfigFormat::kJson,
     .entry = {"mcpServers", "sandglass"},
     .project = ProjectFrom::kWorkspaceFolder,
     .folder_variable = "",
     .folder = ".cursor",
     .file = "mcp.json"},
    {.name = "vscode",
     .title = "Visual Studio Code",
     .format = ConfigFormat::kJson,
     .entry = {"servers", "sandglass"},
     .project = ProjectFrom::kWorkspaceFolder,
     .folder_variable = "XDG_CONFIG_HOME",
     .folder = ".config",
     .file = "Code/User/mcp.json",
     .says_type = true},
    {.name = "codex",
     .title = "Codex",
     .format = ConfigFormat::kToml,
     .entry = {"mcp_servers", "sandglass"},
     .project = ProjectFrom::kWorkingFolder,
     .folder_variable = "CODEX_HOME",
     .folder = ".codex",
     .file = "config.toml"},
};
static_assert(std::ranges::equal(kClients, kMcpClients, {}, &McpClientFile::name));

std::string Variable(std::string_view name) {
  const char* value = name.empty() ? nullptr : std::getenv(std::string(name).c_str());
  return value != nullptr ? value : "";
}

std::vector<std::string> WordsOf(const McpClientFile& client, const McpEntry& entry) {
  std::vector<std::string> words = {"mcp"};
  const bool by_variable = entry.project.empty() && client.project == ProjectFrom::kWorkspaceFolder;
  const std::string project = by_variable ? std::string(kWorkspaceVariable) : entry.project;
  if (!project.empty()) words.insert(words.end(), {"-p", project});
  return words;
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);  // its escapes are those of TOML, too
  return out;
}

}  // namespace

std::span<const McpClientFile> AllMcpClientFiles() { return kClients; }

const McpClientFile& FindMcpClientFile(std::string_view name) {
  const auto* found = std::ranges::find(kClients, name, &McpClientFile::name);
  CHECK(found != std::end(kClients));
  return *found;
}

Result<std::string> PathOf(const McpClientFile& client) {
  if (const std::string folder = Variable(client.folder_variable); folder.starts_with('/'))
    return fmt::format("{}/{}", folder, client.file);
  const std::string home = Variable("HOME");
  if (!home.starts_with('/')) return Error(Code::kNotFound, "HOME is not set");
  if (client.folder.empty()) return fmt::format("{}/{}", home, client.file);
  return fmt::format("{}/{}/{}", home, client.folder, client.file);
}

std::string EntryText(const McpClientFile& client, const McpEntry& entry) {
  std::string words;
  for (const std::string& word : WordsOf(client, entry))
    words += fmt::format("{}{}", words.empty() ? "" : ", ", Quoted(word));
  if (client.format == ConfigFormat::kToml)
    return fmt::format("command = {}\nargs = [{}]\n", Quoted(entry.program), words);
  return fmt::format("{{\n{}  \"command\": {},\n  \"args\": [{}]\n}}",
                     client.says_type ? "  \"type\": \"stdio\",\n" : "", Quoted(entry.program),
                     words);
}

}  // namespace sandglass::cli

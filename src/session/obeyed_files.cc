#include "session/obeyed_files.h"

#include <algorithm>

namespace sandglass::session {
namespace {

// A pattern is a number of names at the end of a path, in whatever folder. "*" is any one name, "*.x" one that ends so, and "**" at
// the end everything below. The first row that fits counts; what build tools do when they are called is not in it.
struct Row {
  std::string_view pattern;
  std::string_view who;  // "": nobody after all
};

constexpr Row kRows[] = {
    {".git/hooks/*.sample", ""},
    {".git/hooks/**", "git runs it"},
    {".git/config", "git obeys it, and it can name programs"},
    {".git/config.worktree", "git obeys it, and it can name programs"},
    {".git/modules/*/hooks/*.sample", ""},
    {".git/modules/*/hooks/**", "git runs it"},
    {".git/modules/*/config", "git obeys it, and it can name programs"},
    {".gitmodules", "git obeys it"},
    {".husky/**", "git runs it, through husky"},
    {"lefthook.yml", "git runs it, through lefthook"},
    {".pre-commit-config.yaml", "git runs it, through pre-commit"},
    {".github/workflows/**", "GitHub runs it once it is pushed"},
    {".gitlab-ci.yml", "GitLab runs it once it is pushed"},
    {".envrc", "direnv runs it"},
    {".vscode/**", "VS Code obeys it"},
    {"*.code-workspace", "VS Code obeys it"},
    {".devcontainer/**", "VS Code obeys it"},
    {".devcontainer.json", "VS Code obeys it"},
    {".idea/**", "JetBrains editors obey it"},
    {".exrc", "vim runs it"},
    {".nvim.lua", "Neovim runs it"},
    {".dir-locals.el", "Emacs obeys it"},
    {".mcp.json", "coding agents start it"},
    {".claude/**", "Claude Code obeys it"},
    {"CLAUDE.md", "Claude Code obeys it"},
    {"CLAUDE.local.md", "Claude Code obeys it"},
    {"AGENTS.md", "coding agents obey it"},
    {".codex/**", "Codex obeys it"},
    {"GEMINI.md", "Gemini obeys it"},
    {".gemini/**", "Gemini obeys it"},
    {".cursor/**", "Cursor obeys it"},
    {".cursorrules", "Cursor obeys it"},
    {".windsurf/**", "Windsurf obeys it"},
    {".windsurfrules", "Windsurf obeys it"},
    {".github/copilot-instructions.md", "Copilot obeys it"},
    {".aider.conf.yml", "Aider obeys it"},
    {"sandglass.toml", "sandglass obeys it, as far as a project may say"},
};

constexpr std::string_view kAllBelow = "/**";

bool NameFits(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  return name == pattern;
}

// Takes the first name off.
std::string_view TakeName(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view name = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return name;
}

// From its first name on; of a pattern that ends in "**" the path must go on.
bool FitsHere(std::string_view path, std::string_view pattern) {
  const bool below = pattern.ends_with(kAllBelow);
  if (below) pattern.remove_suffix(kAllBelow.size());
  while (!pattern.empty()) {
    if (path.empty() || !NameFits(TakeName(path), TakeName(pattern))) return false;
  }
  return below ? !path.empty() : path.empty();
}

bool Fits(std::string_view path, std::string_view pattern) {
  for (; !path.empty(); TakeName(path)) {
    if (FitsHere(path, pattern)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string_view> WhoObeys(std::string_view path) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& known) { return Fits(path, known.pattern); });
  if (row == std::end(kRows) || row->who.empty()) return std::nullopt;
  return row->who;
}

}  // namespace sandglass::session

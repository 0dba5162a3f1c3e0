#include "world/local/homes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/io.h"
#include "base/rel_path.h"

namespace sandglass::world {
namespace {

constexpr size_t kMaxPasswd = size_t{16} << 20;

// Not here, because tokens are kept there or may be: .cargo/config.toml, .config/pip, .config/go/env, .npmrc, .yarnrc.yml.
constexpr const char* kShown[] = {
    // git: who commits, and which files it leaves alone.
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    // Rust
    ".cargo/bin",
    ".cargo/env",
    ".rustup/toolchains",
    ".rustup/settings.toml",
    // Python
    ".pyenv",
    ".local/bin",
    ".local/share/pipx/venvs",
    ".local/pipx/venvs",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    // JavaScript
    ".nvm",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    // Go
    "go/bin",
    "sdk",
    // Others, and what manages versions of several languages.
    "bin",
    ".rbenv",
    ".asdf",
    ".sdkman/candidates",
    ".local/share/mise/installs",
    ".local/share/mise/shims",
};

constexpr const char* kSecrets[] = {
    ".ssh",
    ".gnupg",
    ".pki",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".password-store",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".oci",
    ".kube",
    ".helm",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".config/op",
    ".config/rclone",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".kde/share/apps/kwallet",
    ".gnome2/keyrings",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/org.chromium.Chromium",
    ".var/app/com.google.Chrome",
};

constexpr std::string_view kSystem[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
                                        "/usr", "/etc",  "/dev", "/proc",  "/sys",   "/boot"};
constexpr std::string_view kParentsOfMuch[] = {"/",    "/home", "/media", "/mnt", "/opt",
                                               "/run", "/srv",  "/tmp",   "/var", "/var/lib"};

std::string_view TakeField(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find(':'));
  line.remove_prefix(std::min(field.size() + 1, line.size()));
  return field;
}

void AddOnce(std::vector<std::string>& homes, const std::filesystem::path& home) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(home, error);
  const std::string& path = error ? home.native() : real.native();
  if (!path.empty() && std::ranges::find(homes, path) == homes.end()) homes.push_back(path);
}

}  // namespace

std::span<const char* const> ShownOfHome() { return kShown; }
std::span<const char* const> SecretsOfHome() { return kSecrets; }

// name:password:uid:gid:comment:home:shell
std::string HomeOfAccount(std::string_view passwd, uid_t uid) {
  const std::string wanted = std::to_string(uid);
  while (!passwd.empty()) {
    std::string_view line = passwd.substr(0, passwd.find('\n'));
    passwd.remove_prefix(std::min(line.size() + 1, passwd.size()));
    TakeField(line);
    TakeField(line);
    if (TakeField(line) != wanted) continue;
    TakeField(line);
    TakeField(line);
    return std::string(TakeField(line));
  }
  return "";
}

std::string HomeOfThisAccount() {
  const auto passwd = ReadFileAt(AT_FDCWD, "/etc/passwd", kMaxPasswd);
  return passwd.ok() ? HomeOfAccount(*passwd, ::geteuid()) : "";
}

bool CanBeCovered(std::string_view home) {
  if (!home.starts_with('/') || std::ranges::count(kParentsOfMuch, home) > 0) return false;
  return std::ranges::none_of(kSystem,
                              [&](std::string_view folder) { return LiesIn(home, folder); });
}

std::vector<std::string> PossibleHomes(std::span<const std::string> known,
                                       const std::string& everybody) {
  std::vector<std::string> homes;
  for (const std::string& home : known) AddOnce(homes, home);
  AddOnce(homes, "/root");
  std::error_code error;
  std::filesystem::directory_iterator each(everybody, error), end;
  for (; !error && each != end; each.increment(error)) AddOnce(homes, each->path());
  return homes;
}

}  // namespace sandglass::world

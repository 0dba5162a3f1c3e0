#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/beneath.h"
#include "base/io.h"
#include "session/config/config.h"

namespace sandglass::session::config {
namespace {

Result<std::string> ReadConfig(const Fd& fd) {
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Error::FromErrno(errno, "stat");
  if (!S_ISREG(st.st_mode)) return Error(Code::kInvalid, "it is no regular file");
  TRY_ASSIGN(const Bytes bytes, ReadFully(fd.get(), kMaxTomlBytes));
  return std::string(AsText(bytes));
}

constexpr int kToRead = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Through links too: people keep their settings elsewhere and link to them.
Result<Fd> OpenUserFile(const std::string& path) {
  Fd fd(::open(path.c_str(), kToRead));
  if (!fd) return Error::FromErrno(errno, "open");
  return fd;
}

Result<Fd> OpenProjectFile(const std::string& project) {
  const Fd folder(::open(project.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Error::FromErrno(errno, "open the project");
  return OpenBeneath(folder.get(), kProjectConfigName, kToRead | O_NOFOLLOW);
}

Status AddFile(Result<Fd> fd, const std::string& path, Origin origin, LoadedConfig& loaded) {
  if (!fd.ok() && fd.error().code() == Code::kNotFound) return Ok();
  if (!fd.ok()) return fd.error().WithContext(path);
  const auto text = ReadConfig(*fd);
  if (!text.ok()) return text.error().WithContext(path);
  const Status applied = ApplyText(*text, origin, loaded.config, loaded.settings);
  if (!applied.ok()) return applied.error().WithContext(path);
  loaded.files.push_back(path);
  return Ok();
}

}  // namespace

Result<std::string> UserConfigFile() {
  const auto absolute = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  if (const std::string home = absolute("SANDGLASS_HOME"); !home.empty())
    return home + "/sandglass.toml";
  if (const std::string config = absolute("XDG_CONFIG_HOME"); !config.empty())
    return config + "/sandglass/sandglass.toml";
  if (const std::string home = absolute("HOME"); !home.empty())
    return home + "/.config/sandglass/sandglass.toml";
  return Error(Code::kNotFound, "there is no home folder: set HOME or SANDGLASS_HOME");
}

Result<LoadedConfig> LoadConfig(const std::string& user_file, const std::string& project) {
  LoadedConfig loaded;
  if (!user_file.empty())
    TRY(AddFile(OpenUserFile(user_file), user_file, Origin::kUserFile, loaded));
  if (!project.empty())
    TRY(AddFile(OpenProjectFile(project), fmt::format("{}/{}", project, kProjectConfigName),
                Origin::kProjectFile, loaded));
  return loaded;
}

}  // namespace sandglass::session::config

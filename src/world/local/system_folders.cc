#include "world/local/system_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/fd.h"
#include "base/io.h"

namespace sandglass::world {
namespace {

constexpr size_t kMaxProcFile = size_t{4} << 20;
constexpr mode_t kOwnerOnly = 0700;

// What package managers write to. Some of them are links into /usr on most machines, and need nothing then.
constexpr const char* kFolders[] = {"/usr", "/etc",   "/var",   "/opt",    "/bin",
                                    "/lib", "/lib32", "/lib64", "/libx32", "/sbin"};

bool IsRealFolder(const char* path) {
  struct stat status{};
  return ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// "36 35 98:0 /root /path options - type source superoptions". Blanks in the path are written as octal numbers, which makes no
// difference to how it begins.
std::string_view MountPoint(std::string_view line) {
  constexpr int kFieldsBefore = 4;
  for (int i = 0; i < kFieldsBefore; ++i) {
    const size_t blank = line.find(' ');
    if (blank == line.npos) return {};
    line.remove_prefix(blank + 1);
  }
  return line.substr(0, line.find(' '));
}

Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), kOwnerOnly) == 0 || errno == EEXIST) return Ok();
  return Error::FromErrno(errno, fmt::format("make {}", path));
}

// The world sees the folder itself with the attributes of the upper one.
Status MakeAlike(const std::string& made, const std::string& original) {
  struct stat status{};
  const bool alike = ::stat(original.c_str(), &status) == 0 &&
                     ::chown(made.c_str(), status.st_uid, status.st_gid) == 0 &&
                     ::chmod(made.c_str(), status.st_mode & 07777) == 0;
  return alike ? Ok() : Error::FromErrno(errno, fmt::format("make {} like {}", made, original));
}

// An overlay that never syncs leaves a mark in its work folder, so that nobody uses it after a power cut without a look. What a
// world may lose then is what it installed last, so we use it all the same. Nothing else is ever left there.
Status MakeWork(const std::string& place) {
  const std::string work = place + "/work";
  if (::mkdir(work.c_str(), kOwnerOnly) == 0) return Ok();
  if (errno != EEXIST) return Error::FromErrno(errno, fmt::format("make {}", work));
  const Fd folder(::open(work.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return Error::FromErrno(errno, fmt::format("open {}", work));
  const Status removed = RemoveTreeAt(folder.get(), "work");
  return removed.ok() || removed.error().code() == Code::kNotFound ? Ok() : removed;
}

// Whole or not at all: a process that dies in between leaves no upper folder that only its owner can enter.
Status MakeUpper(const std::string& upper, const std::string& folder) {
  if (::access(upper.c_str(), F_OK) == 0) return Ok();
  const std::string fresh = upper + ".new";
  TRY(MakeFolder(fresh));
  TRY(MakeAlike(fresh, folder));
  if (::rename(fresh.c_str(), upper.c_str()) == 0) return Ok();
  return Error::FromErrno(errno, fmt::format("make {}", upper));
}

}  // namespace

std::string MountBelowFolder(std::string_view mountinfo, std::string_view folder) {
  const std::string inside = fmt::format("{}/", folder);
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    if (line.empty()) continue;
    if (const std::string_view point = MountPoint(line); point.starts_with(inside))
      return std::string(point);
  }
  return "";
}

std::vector<SystemFolder> SystemFolders() {
  const auto mountinfo = ReadFileAt(AT_FDCWD, "/proc/self/mountinfo", kMaxProcFile);
  std::vector<SystemFolder> folders;
  for (const char* path : kFolders) {
    if (!IsRealFolder(path)) continue;
    SystemFolder folder{.path = path};
    // The kernel lets nobody in a user namespace look below a mount that was there before: no overlay of what it covers.
    const std::string below = mountinfo.ok() ? MountBelowFolder(*mountinfo, path) : "/proc";
    if (!below.empty()) folder.why_read_only = fmt::format("{} is mounted in it", below);
    folders.push_back(std::move(folder));
  }
  return folders;
}

Result<OverlayFolders> MakeOverlayFolders(const std::string& system_layer,
                                          const std::string& folder) {
  const std::string place = system_layer + folder;  // "/usr"
  OverlayFolders made{.upper = place + "/upper", .work = place + "/work"};
  TRY(MakeFolder(system_layer));
  TRY(MakeFolder(place));
  TRY(MakeWork(place));
  TRY(MakeUpper(made.upper, folder));
  return made;
}

}  // namespace sandglass::world

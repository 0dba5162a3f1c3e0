#include "session/project_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "base/rel_path.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxProjects = 8;

struct KnownFileSystem {
  uint64_t magic;
  std::string_view name;
};
// f_type is a long, of which 32 bits are used; not all of these are in linux/magic.h.
constexpr KnownFileSystem kNetworkFileSystems[] = {
    {0x6969, "nfs"},       {0x517b, "smb"},          {0xff534d42, "cifs"},   {0xfe534d42, "smb3"},
    {0x01021997, "9p"},    {0x00c36400, "ceph"},     {0x5346414f, "afs"},    {0x6b414653, "afs"},
    {0x73757245, "coda"},  {0x0bd00bd0, "lustre"},   {0x47504653, "gpfs"},   {0x01161970, "gfs2"},
    {0x7461636f, "ocfs2"}, {0x20030528, "orangefs"}, {0x786f4256, "vboxsf"}, {0x19830326, "beegfs"},
};
constexpr uint64_t kFuse = 0x65735546;
// What stands behind "fuse." in mountinfo.
constexpr std::string_view kNetworkFuse[] = {
    "sshfs",      "rclone",   "s3fs",      "glusterfs", "ceph",     "ceph-fuse",   "gcsfuse",
    "goofys",     "juicefs",  "mfs",       "curlftpfs", "davfs",    "blobfuse",    "blobfuse2",
    "gvfsd-fuse", "smbnetfs", "seaweedfs", "cvmfs",     "mount-s3", "vmhgfs-fuse", "prl_fsd"};

// Themselves, not what lies below.
constexpr const char* kFoldersOfTheSystem[] = {
    "/bin",     "/boot",      "/dev",      "/etc",       "/home", "/lib",     "/lib32",
    "/lib64",   "/libx32",    "/media",    "/mnt",       "/opt",  "/proc",    "/root",
    "/run",     "/sbin",      "/srv",      "/sys",       "/tmp",  "/usr",     "/usr/bin",
    "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share", "/var",  "/var/lib", "/var/tmp"};

// "": it is a folder like others.
std::string_view WhyTooBroad(const std::string& project) {
  struct stat itself{};
  if (::stat(project.c_str(), &itself) != 0) return "";
  const auto is = [&](const char* path) {
    struct stat other{};
    return path != nullptr && ::stat(path, &other) == 0 && other.st_ino == itself.st_ino &&
           other.st_dev == itself.st_dev;
  };
  if (is(std::getenv("HOME"))) return "your whole home folder";
  return std::ranges::any_of(kFoldersOfTheSystem, is) ? "a folder of the system" : "";
}

// A command may do what it likes there, and all of it would have to be watched and kept.
Status CheckNotTooBroad(const std::string& project,
                        const std::optional<AllowBroadProject>& allowed) {
  if (project == "/")
    return Error(Code::kDenied,
                 "/ cannot be a project: all that a world hides or keeps lies inside it; choose a "
                 "folder with -p");
  const std::string_view why = allowed ? "" : WhyTooBroad(project);
  if (why.empty()) return Ok();
  return Error(Code::kDenied, fmt::format("{} is {}: choose a project folder with -p, or say {}",
                                          project, why, kAllowBroadFlag));
}

Status CheckHoldsNothingOfOurs(const SessionProject& project, const SessionOptions& options) {
  if (project.access == world::Access::kReadOnly || options.allow_broad) return Ok();
  for (const std::string& own : options.own_paths) {
    if (!LeadsInto(own, project.paths.project)) continue;
    return Error(Code::kDenied,
                 fmt::format("{} is in {}: commands could change what sandglass itself obeys; "
                             "choose another project folder with -p, or say {}",
                             own, project.paths.project, kAllowBroadFlag));
  }
  return Ok();
}

Status CheckApart(const std::string& one, const std::string& other) {
  if (one == other) return Error(Code::kInvalid, fmt::format("{} is named twice as project", one));
  const bool inside = LiesIn(one, other);
  if (!inside && !LiesIn(other, one)) return Ok();
  return Error(Code::kInvalid,
               fmt::format("the project {} lies inside the project {}: name only one of them",
                           inside ? one : other, inside ? other : one));
}

Status CheckStore(const SessionProject& owner, const SessionProject& other) {
  if (owner.access == world::Access::kReadOnly) return Ok();
  std::error_code error;
  const auto store = std::filesystem::weakly_canonical(owner.paths.store, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("find {}", owner.paths.store));
  if (!LiesIn(store.native(), other.paths.project)) return Ok();
  return Error(Code::kInvalid, fmt::format("the undo store {} lies in the project {}",
                                           store.native(), other.paths.project));
}

// As mountinfo has it, "fuse.sshfs"; "": nothing tells.
std::string MountTypeOf(const std::string& folder) {
  struct statx info{};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_MNT_ID, &info) != 0) return "";
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (!line.starts_with(fmt::format("{} ", info.stx_mnt_id))) continue;
    // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
    const size_t type = line.find(" - ");
    if (type == line.npos) return "";
    return line.substr(type + 3, line.find(' ', type + 3) - type - 3);
  }
  return "";
}

Status CheckGround(const SessionProject& project) {
  if (project.access == world::Access::kReadOnly) return Ok();
  const std::string& folder = project.paths.project;
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0)
    return Error::FromErrno(errno, fmt::format("look at the project {}", folder));
  if ((info.f_flags & ST_RDONLY) != 0)
    return Error(
        Code::kUnsupported,
        fmt::format("the project {0} is on a read-only file system: use -p {0}:ro", folder));
  const auto magic = static_cast<uint32_t>(info.f_type);
  const std::string type = magic == kFuse ? MountTypeOf(folder) : "";
  const std::string_view network = NetworkFileSystem(magic, type);
  if (network.empty()) return Ok();
  return Error(Code::kUnsupported,
               fmt::format("the project {0} is on {1}, where changes cannot be told from other "
                           "machines'; copy it to a local disk, or use -p {0}:ro",
                           folder, network));
}

}  // namespace

bool LeadsInto(const std::string& path, const std::string& folder) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return error || real == folder || LiesIn(real.native(), folder);
}

std::string_view NetworkFileSystem(uint64_t magic, std::string_view type) {
  constexpr std::string_view kFusePrefix = "fuse.";
  const auto* known = std::ranges::find(kNetworkFileSystems, magic, &KnownFileSystem::magic);
  if (known != std::end(kNetworkFileSystems)) return known->name;
  if (magic != kFuse || !type.starts_with(kFusePrefix)) return "";
  const auto* fuse = std::ranges::find(kNetworkFuse, type.substr(kFusePrefix.size()));
  return fuse == std::end(kNetworkFuse) ? "" : *fuse;
}

Status CheckProjects(const SessionOptions& options) {
  const std::vector<SessionProject>& projects = options.projects;
  if (projects.empty() || projects.size() > kMaxProjects)
    return Error(Code::kInvalid, fmt::format("there may be 1 to {} projects, not {}", kMaxProjects,
                                             projects.size()));
  for (const SessionProject& project : projects) {
    TRY(CheckNotTooBroad(project.paths.project, options.allow_broad));
    TRY(CheckHoldsNothingOfOurs(project, options));
  }
  for (size_t i = 0; i < projects.size(); ++i) {
    for (size_t j = 0; j < projects.size(); ++j) {
      if (i < j) TRY(CheckApart(projects[i].paths.project, projects[j].paths.project));
      TRY(CheckStore(projects[i], projects[j]));
    }
    TRY(CheckGround(projects[i]));
  }
  return Ok();
}

}  // namespace sandglass::session

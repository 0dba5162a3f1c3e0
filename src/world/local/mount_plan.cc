#include "world/local/mount_plan.h"

#include <fmt/format.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace sandglass::world {
namespace {

constexpr uint64_t kTame = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kTameReadOnly = kTame | MOUNT_ATTR_RDONLY;
constexpr uint64_t kNoPrograms = kTame | MOUNT_ATTR_NOEXEC;
// A device can be written to on a read-only mount; but nobody can change its mode or owner there.
constexpr uint64_t kDevice = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;

constexpr char kHomeOfLastResort[] = "/tmp/home";

// Homes of others, and of the user, whose world has a home of its own.
constexpr const char* kHomes[] = {"/home", "/root"};

// Readable for root, who is root in its world too, or telling about the host's kernel.
constexpr const char* kSecrets[] = {
    "/etc/shadow",         "/etc/shadow-",      "/etc/gshadow",
    "/etc/gshadow-",       "/etc/ssl/private",  "/etc/NetworkManager/system-connections",
    "/etc/wireguard",      "/etc/sudoers.d",    "/etc/kubernetes",
    "/etc/rancher",        "/var/lib/kubelet",  "/var/lib/docker",
    "/var/lib/containerd", "/var/lib/lxd",      "/var/lib/incus",
    "/var/snap",           "/var/spool/cron",   "/var/log/journal",
    "/proc/kcore",         "/proc/keys",        "/proc/key-users",
    "/proc/timer_list",    "/proc/sched_debug", "/proc/acpi",
    "/proc/scsi",          "/proc/asound",      "/sys/firmware",
};

// A world's root is the host's root to files of /proc that ask only for the user id, e.g. kernel.core_pattern.
constexpr const char* kReadOnlyProc[] = {
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq",   "/proc/bus",
    "/proc/fs",  "/proc/mtrr",          "/proc/driver"};

constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom", "tty"};

struct OwnPlace {
  const char* name;  // in the layer
  const char* path;
  mode_t mode;
};
// What is usually reached over sockets in /tmp and /run (D-Bus, X11, Wayland, docker, agents) is out of reach because of these.
constexpr OwnPlace kOwnPlaces[] = {
    {"tmp", "/tmp", 01777},
    {"var_tmp", "/var/tmp", 01777},
    {"run", "/run", 0755},
};
constexpr mode_t kHomeMode = 0700;

std::optional<std::string> Canonical(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

bool IsFolder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

class Planner {
 public:
  explicit Planner(const LocalWorldSpec& spec) : spec_(spec), home_(HomeOf(spec)) {}

  Result<std::vector<MountEntry>> Plan() {
    CoverHomes();
    TRY(AddOwnPlaces());
    AddKernelFilesystems();
    AddDevices();
    TRY(AddHostPaths());
    TRY(HideSecrets());
    return std::move(mounts_);
  }

 private:
  void Add(MountEntry entry) { mounts_.push_back(std::move(entry)); }

  void CoverHomes() {
    for (const char* homes : kHomes) {
      const auto real = Canonical(homes);
      if (real && IsFolder(*real))
        Add({.kind = TreeKind::kTmpfs, .target = *real, .attributes = kTame, .seal = true});
    }
  }

  Status AddOwnPlaces() {
    for (const OwnPlace& place : kOwnPlaces) {
      const auto real = Canonical(place.path);
      if (real && IsFolder(*real)) TRY(AddOwnPlace({place.name, real->c_str(), place.mode}));
    }
    return AddOwnPlace({"home", home_.c_str(), kHomeMode});
  }

  Status AddOwnPlace(const OwnPlace& place) {
    MountEntry entry{.kind = TreeKind::kTmpfs,
                     .target = place.path,
                     .attributes = kTame,
                     .mode = place.mode,
                     .if_missing = IfMissing::kCreate};
    if (!spec_.layer.empty()) {
      entry.kind = TreeKind::kHost;
      entry.from = fmt::format("{}/{}", spec_.layer, place.name);
      if (::mkdir(entry.from.c_str(), place.mode) != 0 && errno != EEXIST)
        return Error::FromErrno(errno, fmt::format("make {}", entry.from));
      // Not by mkdir alone, because of the umask.
      if (::chmod(entry.from.c_str(), place.mode) != 0)
        return Error::FromErrno(errno, fmt::format("chmod {}", entry.from));
    }
    Add(std::move(entry));
    return Ok();
  }

  void AddKernelFilesystems() {
    Add({.kind = TreeKind::kProc, .target = "/proc", .attributes = kNoPrograms});
    for (const char* path : kReadOnlyProc)
      Add({.kind = TreeKind::kItself,
           .target = path,
           .attributes = kNoPrograms | MOUNT_ATTR_RDONLY});
    // Fresh, it shows no network interface of the host. Where the kernel refuses, the host's stays, read-only.
    Add({.kind = TreeKind::kSysfs,
         .target = "/sys",
         .attributes = kNoPrograms | MOUNT_ATTR_RDONLY,
         .if_refused = IfRefused::kSkip});
  }

  void AddDevices() {
    Add({.kind = TreeKind::kTmpfs,
         .target = "/dev",
         .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
         .seal = true});
    for (const char* device : kDevices) {
      const std::string path = fmt::format("/dev/{}", device);
      Add({.kind = TreeKind::kHost,
           .from = path,
           .target = path,
           .attributes = kDevice,
           .if_missing = IfMissing::kCreate});
    }
    Add({.kind = TreeKind::kDevpts,
         .target = "/dev/pts",
         .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
         .if_missing = IfMissing::kCreate});
    Add({.kind = TreeKind::kTmpfs,
         .target = "/dev/shm",
         .attributes = kTame,
         .mode = 01777,
         .if_missing = IfMissing::kCreate});
  }

  // Projects and extra paths. In the order of their names a folder comes before what it holds; of two with one name, projects win.
  Status AddHostPaths() {
    std::map<std::string, MountEntry> entries;
    const auto add = [&](const std::string& path, MountEntry entry) -> Status {
      const auto real = Canonical(path);
      if (!real) return Error::FromErrno(errno, path);
      if (*real == "/") return Error(Code::kInvalid, "the root folder cannot be shown as it is");
      entry.from = entry.target = *real;
      entry.if_missing = IfMissing::kCreate;
      entries.insert_or_assign(*real, std::move(entry));
      return Ok();
    };
    for (const std::string& path : spec_.extra_read_only)
      TRY(add(path, {.attributes = kTameReadOnly}));
    for (const std::string& path : spec_.extra_read_write) TRY(add(path, {.attributes = kTame}));
    for (const WorldProject& project : spec_.projects) {
      TRY(add(project.path, EntryFor(project)));
      if (!entries.contains(project.path))
        return Error(Code::kInvalid, fmt::format("{} is not a real path", project.path));
    }
    for (auto& [path, entry] : entries) Add(std::move(entry));
    return Ok();
  }

  static MountEntry EntryFor(const WorldProject& project) {
    if (project.access != Access::kStaged) return {.attributes = kTameReadOnly};
    return {.kind = TreeKind::kStaged,
            .upper = project.upper,
            .work = project.work,
            .attributes = kTame};
  }

  Status HideSecrets() {
    for (const char* path : kSecrets) {
      if (const auto real = Canonical(path)) Hide(*real);
    }
    std::vector<std::string> paths = spec_.hidden_paths;
    if (!spec_.layer.empty()) paths.push_back(spec_.layer);
    for (const std::string& path : paths) {
      const auto real = Canonical(path);
      if (!real)
        return Error::FromErrno(errno, fmt::format("hide {}, which would appear later", path));
      Hide(*real);
    }
    return Ok();
  }

  void Hide(const std::string& path) {
    MountEntry entry{.kind = TreeKind::kTmpfs, .target = path, .attributes = kTameReadOnly};
    if (!IsFolder(path)) {
      // A device that cannot be opened: neither readable nor writable, whoever asks.
      entry.kind = TreeKind::kHost;
      entry.from = "/dev/null";
    }
    Add(std::move(entry));
  }

  const LocalWorldSpec& spec_;
  std::string home_;
  std::vector<MountEntry> mounts_;
};

}  // namespace

std::string HomeOf(const LocalWorldSpec& spec) {
  const char* variable = ::getenv("HOME");
  const std::string wanted = !spec.home.empty() ? spec.home : variable != nullptr ? variable : "";
  const auto real = Canonical(wanted);
  return real && *real != "/" && IsFolder(*real) ? *real : kHomeOfLastResort;
}

Result<std::vector<MountEntry>> PlanMounts(const LocalWorldSpec& spec) {
  return Planner(spec).Plan();
}

}  // namespace sandglass::world

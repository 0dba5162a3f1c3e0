#include "world/local/mount_plan.h"

#include <fmt/format.h>
#include <glob.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/rel_path.h"
#include "world/local/homes.h"
#include "world/local/link_trail.h"
#include "world/local/system_folders.h"

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
constexpr char kHostKeys[] = "/etc/ssh/ssh_host_*_key";

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

std::vector<std::string> Matching(const char* pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern, GLOB_NOSORT, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

using Entries = std::map<std::string, MountEntry>;

// Neither can be opened, whoever asks. A folder in which something else is shown gets a file system of its own, for the mount points.
enum class Holds : uint8_t { kNothing, kOtherMounts };
MountEntry MaskFor(const std::string& path, Holds holds) {
  MountEntry entry{.kind = TreeKind::kEmpty, .target = path, .attributes = kTameReadOnly};
  if (!IsFolder(path)) {
    // A device that nobody can open there: neither readable nor writable.
    entry.kind = TreeKind::kHost;
    entry.from = "/dev/null";
  } else if (holds == Holds::kOtherMounts) {
    entry = {.kind = TreeKind::kTmpfs, .target = path, .attributes = kTame, .seal = true};
  }
  return entry;
}

class Planner {
 public:
  explicit Planner(const LocalWorldSpec& spec)
      : spec_(spec),
        home_(HomeOf(spec)),
        account_home_(Canonical(spec.account_home.empty() ? HomeOfThisAccount() : spec.account_home)
                          .value_or("")) {}

  Result<std::vector<MountEntry>> Plan() {
    TRY(AddSystemOverlays());
    CoverHomes();
    TRY(AddOwnPlaces());
    ShowTools();
    AddKernelFilesystems();
    AddDevices();
    TRY(AddHostPaths());
    TRY(HideSecrets());
    return std::move(mounts_);
  }

 private:
  void Add(MountEntry entry) { mounts_.push_back(std::move(entry)); }

  // Before anything else, so that whatever covers a part of the system covers it here too.
  Status AddSystemOverlays() {
    if (spec_.system_layer.empty()) return Ok();
    for (const SystemFolder& folder : SystemFolders()) {
      if (!folder.why_read_only.empty()) continue;
      TRY_ASSIGN(OverlayFolders made, MakeOverlayFolders(spec_.system_layer, folder.path));
      Add({.kind = TreeKind::kStaged,
           .from = folder.path,
           .upper = std::move(made.upper),
           .work = std::move(made.work),
           .syncing = Syncing::kNever,
           .target = folder.path,
           .attributes = kTame,
           .if_refused = IfRefused::kSkip});
    }
    return Ok();
  }

  void CoverHomes() {
    std::vector<std::string> homes(std::begin(kHomes), std::end(kHomes));
    if (CanBeCovered(account_home_)) homes.push_back(account_home_);
    for (const std::string& each : homes) {
      const auto real = Canonical(each);
      const bool covered = real && SeenAt(mounts_, *real) != *real;
      if (real && !covered && IsFolder(*real))
        Add({.kind = TreeKind::kTmpfs, .target = *real, .attributes = kTame, .seal = true});
    }
  }

  // Where the world has something of its own that cannot be a mount point for it, that stays.
  void ShowTools() {
    if (home_ == kHomeOfLastResort) return;
    for (const char* name : ShownOfHome()) {
      const std::string path = fmt::format("{}/{}", home_, name);
      const auto trail = FollowLinks(path);
      if (trail && MayBeShown(*trail))
        Add({.from = trail->end,
             .target = path,
             .attributes = kTameReadOnly,
             .if_missing = IfMissing::kCreate,
             .if_refused = IfRefused::kSkip});
    }
  }

  // What has no symlink on its way is what the table means. Others lead to what somebody put there, which must be neither a command
  // nor a secret, nor anything that is hidden but for homes.
  bool MayBeShown(const LinkTrail& trail) const {
    if (trail.folders.empty()) return true;
    const auto overlaps = [&](const std::string& path) {
      return LiesIn(trail.end, path) || LiesIn(path, trail.end);
    };
    return std::ranges::none_of(trail.folders, [&](const auto& it) { return IsChangeable(it); }) &&
           std::ranges::none_of(NeverShown(), overlaps) &&
           (IsInAHome(trail.end) || SeenAt(mounts_, trail.end) == trail.end);
  }

  bool IsChangeable(const std::string& folder) const {
    const auto holds = [&](const std::string& path) {
      return LiesIn(folder, Canonical(path).value_or(path));
    };
    return std::ranges::any_of(spec_.projects, holds, &WorldProject::path) ||
           std::ranges::any_of(spec_.extra_read_write, holds) ||
           (spec_.changed_by_commands && spec_.changed_by_commands(folder));
  }

  bool IsInAHome(const std::string& path) const {
    return std::ranges::any_of(
        PossibleHomes(std::array{home_, account_home_}),
        [&](const std::string& home) { return home != "/" && LiesIn(path, home); });
  }

  // Without symlinks.
  std::vector<std::string> NeverShown() const {
    std::vector<std::string> paths = HiddenOfSystem();
    for (const std::string& own : OwnHidden())
      if (const auto real = Canonical(own)) paths.push_back(*real);
    for (const std::string& home : PossibleHomes(std::array{home_, account_home_})) {
      for (const char* name : SecretsOfHome())
        if (const auto real = Canonical(fmt::format("{}/{}", home, name))) paths.push_back(*real);
    }
    return paths;
  }

  static std::vector<std::string> HiddenOfSystem() {
    std::vector<std::string> paths = Matching(kHostKeys);
    paths.insert(paths.end(), std::begin(kSecrets), std::end(kSecrets));
    std::vector<std::string> real_paths;
    for (const std::string& path : paths)
      if (const auto real = Canonical(path)) real_paths.push_back(*real);
    return real_paths;
  }

  std::vector<std::string> OwnHidden() const {
    std::vector<std::string> paths = spec_.hidden_paths;
    for (const std::string& own : {spec_.layer, spec_.system_layer})
      if (!own.empty()) paths.push_back(own);
    return paths;
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
      entry.from = fmt::format("{}/{}", Canonical(spec_.layer).value_or(spec_.layer), place.name);
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
    Entries entries;
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
    MaskSecretsOfHomes(entries);
    for (auto& [path, entry] : entries) Add(std::move(entry));
    return Ok();
  }

  // Whoever shows a home does not mean its keys, unless those are what is named.
  void MaskSecretsOfHomes(Entries& entries) const {
    std::vector<std::string> named;
    for (const auto& [path, entry] : entries) named.push_back(path);
    for (const std::string& home : HomesAround(named)) {
      for (const char* name : SecretsOfHome()) {
        const std::string path = fmt::format("{}/{}", home, name);
        if (IsShown(entries, path)) MaskSecret(entries, named, path);
      }
    }
  }

  static void MaskSecret(Entries& entries, const std::vector<std::string>& named,
                         const std::string& path) {
    const auto real = Canonical(path);
    if (!real) return;
    // A project that somebody keeps there, or `--ro ~/.ssh/known_hosts`.
    const bool holds = std::ranges::any_of(
        named, [&](const std::string& other) { return other != *real && LiesIn(other, *real); });
    // What is named itself is there already, and stays.
    entries.try_emplace(*real, MaskFor(*real, holds ? Holds::kOtherMounts : Holds::kNothing));
  }

  // Homes of which something may be shown: where /home cannot be listed, what is named there tells.
  std::vector<std::string> HomesAround(const std::vector<std::string>& named) const {
    const std::string everybody = Canonical(kHomesOfAll).value_or(kHomesOfAll);
    std::vector<std::string> known = {home_, account_home_};
    for (const std::string& path : named) {
      const auto below = PathBelow(path, everybody);
      if (below && !below->empty())
        known.push_back(fmt::format("{}/{}", everybody, below->substr(0, below->find('/'))));
    }
    return PossibleHomes(known);
  }

  // Will the world see there what the host has there?
  bool IsShown(const Entries& entries, const std::string& path) const {
    const MountEntry* nearest = nullptr;
    for (const auto& [target, entry] : entries)
      if (LiesIn(path, target)) nearest = &entry;  // a folder comes before what it holds
    return nearest != nullptr ? nearest->from == nearest->target : SeenAt(mounts_, path) == path;
  }

  static MountEntry EntryFor(const WorldProject& project) {
    if (project.access != Access::kStaged) return {.attributes = kTameReadOnly};
    return {.kind = TreeKind::kStaged,
            .upper = project.upper,
            .work = project.work,
            .attributes = kTame};
  }

  Status HideSecrets() {
    for (const std::string& path : HiddenOfSystem()) Hide(path);
    for (const std::string& path : OwnHidden()) {
      const auto real = Canonical(path);
      if (!real)
        return Error::FromErrno(errno, fmt::format("hide {}, which would appear later", path));
      Hide(*real);
    }
    return Ok();
  }

  void Hide(const std::string& path) {
    if (!hidden_.insert(path).second) return;
    Add(MaskFor(path, Holds::kNothing));
  }

  const LocalWorldSpec& spec_;
  std::string home_;
  std::string account_home_;  // "": there is none
  std::vector<MountEntry> mounts_;
  std::set<std::string> hidden_;
};

}  // namespace

std::string HomeOf(const LocalWorldSpec& spec) {
  const char* variable = ::getenv("HOME");
  const std::string wanted = !spec.home.empty() ? spec.home : variable != nullptr ? variable : "";
  const auto real = Canonical(wanted);
  return real && *real != "/" && IsFolder(*real) ? *real : kHomeOfLastResort;
}

std::optional<std::string> SeenAt(const std::vector<MountEntry>& mounts, std::string_view path) {
  const auto covers = [&](const MountEntry& entry) { return LiesIn(path, entry.target); };
  const auto top = std::find_if(mounts.rbegin(), mounts.rend(), covers);
  if (top == mounts.rend()) return std::string(path);
  switch (top->kind) {
    case TreeKind::kHost:
    case TreeKind::kStaged:
      return top->from + std::string(path.substr(top->target.size()));
    case TreeKind::kTmpfs:
    case TreeKind::kEmpty:
    case TreeKind::kProc:
    case TreeKind::kSysfs:
    case TreeKind::kDevpts:
    case TreeKind::kItself:
      return std::nullopt;
  }
  return std::nullopt;
}

bool IsHidden(const std::vector<MountEntry>& mounts, const std::string& folder) {
  const auto real = Canonical(folder);
  if (!real || !IsFolder(*real)) return false;
  return std::ranges::any_of(std::to_array({folder, *real}), [&](const std::string& path) {
    const auto seen = SeenAt(mounts, path);
    return !seen || !IsFolder(*seen);
  });
}

Result<std::vector<MountEntry>> PlanMounts(const LocalWorldSpec& spec) {
  return Planner(spec).Plan();
}

}  // namespace sandglass::world

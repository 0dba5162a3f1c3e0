#include "undo/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/io.h"
#include "undo/encryption.h"
#include "undo/state_files.h"

namespace sandglass::undo {
namespace {

struct KnownFileSystem {
  long magic;
  const char* name;
};
constexpr KnownFileSystem kFileSystems[] = {
    {EXT4_SUPER_MAGIC, "ext4"},
    {BTRFS_SUPER_MAGIC, "btrfs"},
    {0x58465342, "xfs"},
    {TMPFS_MAGIC, "tmpfs"},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs"},
    {NFS_SUPER_MAGIC, "nfs"},
    {0x65735546 /*FUSE*/, "fuse"},
    {0xff534d42, "cifs"},
};

std::string FileSystemName(int fd) {
  struct statfs info{};
  if (::fstatfs(fd, &info) != 0) return "unknown";
  for (const auto& known : kFileSystems) {
    if (known.magic == static_cast<long>(info.f_type)) return known.name;
  }
  return fmt::format("{:#x}", static_cast<unsigned long>(info.f_type));
}

Result<Fd> OpenFolder(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, fmt::format("open folder {}", path));
  return fd;
}

// A store inside its project would record itself, and worlds could reach it.
Status CheckApart(const std::string& project, const std::string& store) {
  std::error_code error;
  const std::string inner = std::filesystem::weakly_canonical(store, error).native() + "/";
  const std::string outer = std::filesystem::weakly_canonical(project, error).native() + "/";
  if (!inner.starts_with(outer) && !outer.starts_with(inner)) return Ok();
  return Error(Code::kInvalid,
               fmt::format("the undo store {} and the project {} must not contain each other",
                           store, project));
}

bool StampsFinely(int fd) {
  for (int i = 0; i < 4; ++i) {
    auto before = StatFd(fd);
    if (::fchmod(fd, 0600) != 0) return false;
    auto after = StatFd(fd);
    if (!before.ok() || !after.ok() || before->ctime_ns == after->ctime_ns) return false;
  }
  return true;
}

// The same of another file system than the store's, without a name that anybody could see there. Where that is impossible: no.
bool StampsFinelyIn(int folder) {
  const Fd file(::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  return file.valid() && StampsFinely(file.get());
}

// Two scratch files in the store, gone when this dies.
class ProbeFiles {
 public:
  explicit ProbeFiles(int store) : store_(store) {
    a_ = Fd(::openat(store, "probe.a", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    b_ = Fd(::openat(store, "probe.b", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  }
  ~ProbeFiles() {
    ::unlinkat(store_, "probe.a", 0);
    ::unlinkat(store_, "probe.b", 0);
  }
  int error() const { return a_.valid() && b_.valid() ? 0 : errno; }

  bool CanClone() const {
    const Bytes block(4096, 1);
    return WriteFully(a_.get(), block).ok() && ::ioctl(b_.get(), FICLONE, a_.get()) == 0;
  }
  bool CanExchange() const {
    return ::renameat2(store_, "probe.a", store_, "probe.b", RENAME_EXCHANGE) == 0;
  }
  bool CanLease() const {
    Fd reader(::openat(store_, "probe.a", O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    Fd writer(::openat(store_, "probe.a", O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    // A lease that is granted although a writer is there would prove nothing.
    const bool refused = ::fcntl(reader.get(), F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
    return refused;
  }
  bool HasFineTimestamps() const { return StampsFinely(a_.get()); }

 private:
  int store_;
  Fd a_, b_;
};

std::array<uint8_t, 16> ReadBootId() {
  std::array<uint8_t, 16> id{};
  Fd proc(::open("/proc/sys/kernel/random", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto text =
      proc.valid() ? ReadFileAt(proc.get(), "boot_id", 64) : Result<std::string>(std::string());
  if (text.ok()) {
    const Hash128 hash = HashBytes128(AsBytes(*text));
    std::memcpy(id.data(), &hash, sizeof(hash));
  }
  return id;
}

bool HaveSameEncryption(const Place& place) {
  const auto project = EncryptionPolicyOf(place.root.get());
  const auto store = EncryptionPolicyOf(place.store.get());
  return project.ok() && store.ok() && *project == *store;
}

}  // namespace

FreshFolder::~FreshFolder() {
  if (!path_.empty()) ::rmdir(path_.c_str());
}

Status ProbeStore(Place& place) {
  TRY_ASSIGN(FileStat root, StatFd(place.root.get()));
  TRY_ASSIGN(FileStat store, StatFd(place.store.get()));
  struct stat root_dev{}, store_dev{};
  if (::fstat(place.root.get(), &root_dev) != 0 || ::fstat(place.store.get(), &store_dev) != 0) {
    return Error::FromErrno(errno, "stat project and store");
  }
  ProbeFiles probe(place.store.get());
  if (probe.error() != 0) {
    return Error::FromErrno(
        probe.error(), fmt::format("the undo store {} cannot be written to", place.store_path));
  }
  StoreAbilities& abilities = place.abilities;
  const bool same_device = root_dev.st_dev == store_dev.st_dev;
  abilities.handles = place.identifier.has_handles();
  // Link and rename fail between two mounts even of one file system, and into a folder with another encryption.
  abilities.links =
      abilities.handles && same_device && root.mount == store.mount && HaveSameEncryption(place);
  abilities.reflinks = same_device && probe.CanClone();
  abilities.leases = probe.CanLease();
  abilities.exchange = abilities.links && abilities.leases && probe.CanExchange();
  abilities.fine_timestamps =
      same_device ? probe.HasFineTimestamps() : StampsFinelyIn(place.root.get());
  return Ok();
}

Result<FreshFolder> MakeFolders(const std::string& path, std::string_view what) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) == 0) return FreshFolder(path);
  if (errno == EEXIST) return FreshFolder();
  return Error::FromErrno(errno, fmt::format("create {} {}", what, path));
}

Result<Fd> OpenSubdir(int dir_fd, const char* name) {
  Fd fd(::openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, fmt::format("open folder {}", name));
  return fd;
}

Result<Fd> OpenOrMakeDir(int dir_fd, const char* name) {
  if (::mkdirat(dir_fd, name, 0700) != 0 && errno != EEXIST) {
    return Error::FromErrno(errno, fmt::format("create folder {}", name));
  }
  return OpenSubdir(dir_fd, name);
}

Result<Fd> OpenStoreFile(int dir_fd, const char* name, int flags) {
  // A FIFO would keep us waiting for its other end.
  Fd fd(::openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd.valid() && errno != ELOOP) return Error::FromErrno(errno, fmt::format("open {}", name));
  struct stat info{};
  if (fd.valid() && ::fstat(fd.get(), &info) != 0)
    return Error::FromErrno(errno, fmt::format("stat {}", name));
  if (!fd.valid() || !S_ISREG(info.st_mode)) {
    return Error(Code::kCorrupt,
                 fmt::format("{} in the undo store has been replaced by something else", name));
  }
  return fd;
}

bool NameExists(int dir_fd, const char* name) {
  return ::faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Identifier> IdentifierFor(int root_fd, const FileSystemId& file_system,
                                 const StoreOwner* owner) {
  const uint64_t usual = file_system.uuid.value_or(file_system.fsid);
  std::vector<uint64_t> salts;
  if (owner != nullptr && !owner->salt)
    salts = {usual, file_system.fsid};
  else if (owner != nullptr && owner->file_system.IsSame(file_system))
    salts = {*owner->salt};
  for (const uint64_t salt : salts) {
    TRY_ASSIGN(const Identifier identifier, Identifier::Probe(root_fd, salt));
    TRY_ASSIGN(const ObjectId root, identifier.OfFd(root_fd));
    if (root == owner->root) return identifier;
  }
  return Identifier::Probe(root_fd, usual);
}

Result<std::unique_ptr<Place>> OpenPlace(const UndoPaths& paths, StoreAccess access) {
  auto place = std::make_unique<Place>();
  place->project_path = paths.project;
  place->store_path = paths.store;
  TRY_ASSIGN(place->root, OpenFolder(paths.project));
  place->abilities.file_system = FileSystemName(place->root.get());
  if (place->abilities.file_system == "nfs") {
    return Error(Code::kUnsupported,
                 "the project is on NFS, where changes cannot be told from other machines'; copy "
                 "it to a local disk");
  }
  if (place->store_path.empty()) {
    TRY_ASSIGN(place->store_path, StoreLocationFor(paths.project));
  }
  if (access == StoreAccess::kReadWrite) {
    TRY(CheckApart(place->project_path, place->store_path));
    TRY_ASSIGN(place->fresh_store, MakeFolders(place->store_path, "the undo store"));
  }
  TRY_ASSIGN(place->store, OpenFolder(place->store_path));
  place->file_system = FileSystemIdOf(place->root.get());
  const auto signature = ReadFileAt(place->store.get(), "project", kMaxStateFile);
  const auto owner = signature.ok() ? ParseStoreOwner(*signature) : signature.error();
  TRY_ASSIGN(place->identifier,
             IdentifierFor(place->root.get(), place->file_system, owner.ok() ? &*owner : nullptr));
  TRY_ASSIGN(place->root_id, place->identifier.OfFd(place->root.get()));
  TRY_ASSIGN(FileStat root, StatFd(place->root.get()));
  place->root_mount = root.mount;
  place->root_encrypted = root.encrypted;
  place->boot_id = ReadBootId();
  return place;
}

namespace {

// What a store at `path` would stand on: that of its nearest parent that exists, or its own.
struct Ground {
  dev_t device;
  uint64_t mount;
  std::optional<EncryptionPolicy> policy;
};

std::optional<Ground> GroundOf(std::filesystem::path path) {
  while (!path.empty()) {
    Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd.valid()) {
      struct stat info{};
      auto stat = StatFd(fd.get());
      if (::fstat(fd.get(), &info) != 0 || !stat.ok()) return std::nullopt;
      Ground ground{info.st_dev, stat->mount, std::nullopt};
      if (!stat->encrypted) return ground;
      fd = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto policy = EncryptionPolicyOf(fd.get());
      if (!policy.ok()) return std::nullopt;
      ground.policy = std::move(*policy);
      return ground;
    }
    if (path == path.parent_path()) break;
    path = path.parent_path();
  }
  return std::nullopt;
}

// Could a store on the one ground keep inodes and content of a project on the other?
bool Suits(const std::optional<Ground>& store, const std::optional<Ground>& project) {
  return store && project && store->device == project->device && store->mount == project->mount &&
         MayKeep(project->policy, store->policy);
}

}  // namespace

// What the environment says, else what the system knows.
static Result<std::filesystem::path> HomeFolder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home);
  std::array<char, 16 << 10> buffer{};
  passwd entry{}, *found = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr && found->pw_dir != nullptr && *found->pw_dir == '/')
    return std::filesystem::path(found->pw_dir);
  return Error(Code::kNotFound,
               "there is no home folder to keep undo stores in: HOME is not set, and the system "
               "knows none of this user; set SANDGLASS_HOME to an absolute path");
}

Result<std::filesystem::path> StateFolder() {
  if (const char* home = std::getenv("SANDGLASS_HOME"); home != nullptr && *home != '\0') {
    if (*home == '/') return std::filesystem::path(home);
    return Error(Code::kInvalid,
                 fmt::format("SANDGLASS_HOME must be an absolute path, and is {}", home));
  }
  // One that is not absolute is to be ignored, says its specification.
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return std::filesystem::path(state) / "sandglass";
  }
  TRY_ASSIGN(const std::filesystem::path home, HomeFolder());
  return home / ".local/state/sandglass";
}

std::string PathKey(const std::filesystem::path& real) {
  return fmt::format("{:016x}", HashBytes64(AsBytes(real.native())));
}

Result<std::string> StoreLocationFor(const std::string& project) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(project, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("find the project {}", project));
  const std::string key = PathKey(real);
  TRY_ASSIGN(const std::filesystem::path state, StateFolder());
  const std::filesystem::path preferred = state / "undo" / key;
  const bool inside = preferred.native().starts_with(real.native() + "/");
  if (!inside && Suits(GroundOf(preferred), GroundOf(real))) return preferred.native();
  if (real == real.root_path()) return preferred.native();
  return (real.parent_path() /
          fmt::format(".{}.sandglass-{}", real.filename().native().substr(0, 200), key))
      .native();
}

Result<std::vector<std::string>> ListNames(int dir_fd) {
  Fd fd(::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, "list a folder");
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), &::closedir);
  if (dir == nullptr) return Error::FromErrno(errno, "list a folder");
  (void)fd.Release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return Error::FromErrno(errno, "list a folder");
  return names;
}

std::vector<std::string> ListNamesIfReadable(int dir_fd) {
  auto names = ListNames(dir_fd);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

}  // namespace sandglass::undo

#include "undo/registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/io.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

constexpr int kLockTries = 1000;
constexpr useconds_t kLockPauseMicroseconds = 10'000;

Result<std::string> RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("find {}", path));
  return real.native();
}

// Leaves out the lock and what an interrupted write left.
bool IsEntryName(std::string_view name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<RegisteredProject> ReadEntry(int folder, const std::string& name) {
  TRY_ASSIGN(std::string text, ReadFileAt(folder, name.c_str(), kMaxRegistryEntry));
  TRY_ASSIGN(RegisteredProject entry, ParseRegistryEntry(text));
  if (PathKey(entry.project) != name) {
    return Error(Code::kCorrupt, "the entry does not belong under its name");
  }
  return entry;
}

// Both are real paths, so the names decide.
bool LiesInside(std::string_view inner, std::string_view outer) {
  if (outer == "/") return inner != outer;
  return inner.size() > outer.size() && inner.starts_with(outer) && inner[outer.size()] == '/';
}

bool MeansGone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// What cannot be looked at (no permission, say) counts as there: who cannot tell refuses. A path that leads elsewhere now does not.
bool FolderIsGone(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? MeansGone(error.value()) : real.native() != path;
}

// A store that was discarded keeps its version and forgets its project.
bool StoreIsGone(const std::string& path) {
  for (const char* name : {"version", "project"}) {
    struct stat info{};
    if (::lstat(fmt::format("{}/{}", path, name).c_str(), &info) != 0 && MeansGone(errno))
      return true;
  }
  return false;
}

Result<StoreOwner> ReadStoreOwner(const std::string& store) {
  const Fd folder(::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Error::FromErrno(errno, fmt::format("open the undo store {}", store));
  TRY_ASSIGN(const std::string text, ReadFileAt(folder.get(), "project", kMaxStateFile));
  return ParseStoreOwner(text);
}

std::string DiscardCommand(const RegisteredProject& entry) {
  std::string command = fmt::format("sandglass discard --project {}", entry.project);
  const auto usual = StoreLocationFor(entry.project);
  if (!usual.ok() || *usual != entry.store) command += fmt::format(" --store {}", entry.store);
  return command;
}

Error Overlap(const std::string& project, const RegisteredProject& other) {
  return Error(
      Code::kForeign,
      fmt::format("the project {} lies {} the project {}, which has an undo store already ({}), "
                  "and changes can be recorded in one of them only; use that project, or forget "
                  "its steps with: {}",
                  project, LiesInside(project, other.project) ? "inside" : "around", other.project,
                  other.store, DiscardCommand(other)));
}

// Whoever holds it looks at a few files and probes a store. The wait is bounded all the same, because a process can be stopped.
Result<Fd> TakeLock(int folder, const std::string& path) {
  Fd lock(::openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid()) {
    return Error::FromErrno(errno, fmt::format("open the lock of the project registry {}", path));
  }
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Error::FromErrno(errno, fmt::format("lock the project registry {}", path));
    ::usleep(kLockPauseMicroseconds);
  }
  return Error(Code::kBusy, fmt::format("another Sandglass has held the lock of the project "
                                        "registry {} for too long; end it or try again later",
                                        path));
}

Result<Fd> OpenRegistry(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid())
    return Error::FromErrno(errno, fmt::format("open the project registry {}", path));
  return folder;
}

}  // namespace

Result<std::string> RegistryFor(const UndoPaths& paths) {
  if (!paths.registry.empty()) return paths.registry;
  return paths.store.empty() ? RegistryLocation() : std::string();
}

Result<std::string> RegistryLocation() {
  TRY_ASSIGN(const std::filesystem::path state, StateFolder());
  return (state / "projects").native();
}

Result<RegistryClaim> RegistryClaim::Take(const std::string& folder, const std::string& project,
                                          const Logger& log) {
  RegistryClaim claim;
  if (folder.empty()) return claim;
  TRY_ASSIGN(claim.project_, RealPath(project));
  TRY_ASSIGN(FreshFolder fresh, MakeFolders(folder, "the project registry"));
  fresh.Keep();  // for all projects
  TRY_ASSIGN(claim.folder_, OpenRegistry(folder));
  TRY_ASSIGN(claim.lock_, TakeLock(claim.folder_.get(), folder));
  TRY(claim.CheckOthers(log));
  return claim;
}

// Only the disks of entries above and below are looked at: a dead network mount under some other project is no reason to hang.
Status RegistryClaim::CheckOthers(const Logger& log) const {
  TRY_ASSIGN(const auto names, ListNames(folder_.get()));
  for (const std::string& name : names) {
    if (!IsEntryName(name)) continue;
    auto entry = ReadEntry(folder_.get(), name);
    if (!entry.ok()) {
      log.Warn("an entry of the project registry cannot be read and is passed over",
               {{"entry", name}, {"error", entry.error().message()}});
      continue;
    }
    const RegisteredProject& other = *entry;
    if (!LiesInside(project_, other.project) && !LiesInside(other.project, project_)) continue;
    if (FolderIsGone(other.project) || StoreIsGone(other.store)) {
      ::unlinkat(folder_.get(), name.c_str(), 0);
      continue;
    }
#ifdef SANDGLASS_MUTANT_allow_nested_projects
    continue;
#endif
    return Overlap(project_, other);
  }
  return Ok();
}

Status RegistryClaim::Register(const std::string& store) {
  if (!lock_.valid()) return Ok();
  TRY_ASSIGN(std::string real_store, RealPath(store));
  const std::string name = PathKey(project_);
  const std::string text = WriteRegistryEntry({project_, std::move(real_store)});
  const auto old = ReadFileAt(folder_.get(), name.c_str(), kMaxRegistryEntry);
  if (!old.ok() || *old != text) {
    auto written = ReplaceFileAt(folder_.get(), name.c_str(), text);
    if (!written.ok()) return written.error().WithContext("enter the project in the registry");
  }
  lock_ = Fd();
  return Ok();
}

std::optional<RegisteredProject> FindProjectAround(const std::string& registry,
                                                   const std::string& folder) {
  const auto entries = OpenRegistry(registry);
  const auto real = RealPath(folder);
  if (!entries.ok() || !real.ok()) return std::nullopt;
  for (std::filesystem::path up = *real; up != up.parent_path();) {
    up = up.parent_path();
    auto entry = ReadEntry(entries->get(), PathKey(up));
    if (entry.ok() && !StoreIsGone(entry->store)) return std::move(*entry);
  }
  return std::nullopt;
}

std::optional<RegisteredProject> FindFormerPlace(const std::string& registry,
                                                 const std::string& folder) {
  const auto entries = OpenRegistry(registry);
  const Fd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entries.ok() || !root.valid()) return std::nullopt;
  const FileSystemId file_system = FileSystemIdOf(root.get());
  for (const std::string& name : ListNamesIfReadable(entries->get())) {
    if (!IsEntryName(name)) continue;
    auto entry = ReadEntry(entries->get(), name);
    if (!entry.ok()) continue;
    const auto owner = ReadStoreOwner(entry->store);
    if (!owner.ok()) continue;
    const auto identifier = IdentifierFor(root.get(), file_system, &*owner);
    const auto id = identifier.ok() ? identifier->OfFd(root.get()) : identifier.error();
    if (id.ok() && owner->root == *id) return std::move(*entry);
  }
  return std::nullopt;
}

void ForgetProject(const std::string& folder, const std::string& project,
                   const std::string& store) {
  const auto real_project = RealPath(project), real_store = RealPath(store);
  if (folder.empty() || !real_project.ok() || !real_store.ok()) return;
  const auto registry = OpenRegistry(folder);
  if (!registry.ok()) return;
  const auto lock = TakeLock(registry->get(), folder);
  if (!lock.ok()) return;
  const std::string name = PathKey(*real_project);
  const auto entry = ReadEntry(registry->get(), name);
  if (!entry.ok() || entry->store == *real_store) ::unlinkat(registry->get(), name.c_str(), 0);
}

}  // namespace sandglass::undo

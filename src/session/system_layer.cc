#include "session/system_layer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "session/upper_folders.h"

namespace sandglass::session {
namespace {

constexpr std::string_view kInUse = "sandglass-ephemeral-";
constexpr char kMemory[] = "/dev/shm";

}  // namespace

Result<SystemLayer> SystemLayer::Kept(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return Error::FromErrno(errno, fmt::format("make {}", folder));
  TRY_ASSIGN(Fd lock, LockFolder(folder));
  return Take(folder, std::move(lock), End::kStays);
}

Result<SystemLayer> SystemLayer::Fresh(const std::string& place) {
  auto in_memory = FreshIn(kMemory);
  if (in_memory.ok()) return in_memory;
  std::error_code error;
  std::filesystem::create_directories(place, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("make {}", place));
  return FreshIn(place);
}

Result<SystemLayer> SystemLayer::FreshIn(const std::string& place) {
  RemoveUnused(place, kInUse);
  TRY_ASSIGN(LockedFolder made, MakeLockedFolder(place, kInUse));
  return Take(made.path, std::move(made.lock), End::kIsRemoved);
}

Result<SystemLayer> SystemLayer::Take(const std::string& folder, Fd lock, End end) {
  SystemLayer layer(folder, std::move(lock), end);
  TRY(CheckCanBeUpper(folder));
  return layer;
}

void SystemLayer::RemoveUnlessKept() {
  if (lock_ && std::exchange(end_, End::kStays) == End::kIsRemoved) RemoveFolder(folder_);
}

SystemLayer::~SystemLayer() { RemoveUnlessKept(); }

}  // namespace sandglass::session

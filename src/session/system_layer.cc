#include "session/system_layer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
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
  return Take(folder, End::kStays);
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
  std::string folder = fmt::format("{}/{}XXXXXX", place, kInUse);
  if (::mkdtemp(folder.data()) == nullptr)
    return Error::FromErrno(errno, fmt::format("make a folder in {}", place));
  return Take(folder, End::kIsRemoved);
}

Result<SystemLayer> SystemLayer::Take(const std::string& folder, End end) {
  TRY_ASSIGN(Fd lock, LockFolder(folder));
  SystemLayer layer(folder, std::move(lock), end);
  TRY(CheckCanBeUpper(folder));
  return layer;
}

SystemLayer::~SystemLayer() {
  if (lock_ && end_ == End::kIsRemoved) RemoveFolder(folder_);
}

}  // namespace sandglass::session

#include "bridge/supervise/live_writers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace sandglass::bridge {
namespace {

// A read lease is refused while the file is open for writing, also by a mapping alone. What cannot be asked counts as open.
bool MayHaveWriter(int object) {
  const Fd file(
      ::open(fmt::format("/proc/self/fd/{}", object).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() || ::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return true;
  ::fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace

void LiveWriters::Add(const Project& project, int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return;
  MutexLock lock(mutex_);
  const auto key = std::pair<uint64_t, uint64_t>(st.st_dev, st.st_ino);
  if (writers_.contains(key)) return;
  if (writers_.size() >= prune_at_) Prune();
  Fd object(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_PATH | O_CLOEXEC));
  if (object.valid()) writers_.emplace(key, Writer{&project, std::move(object)});
}

void LiveWriters::Prune() {
  std::erase_if(writers_,
                [](const auto& entry) { return !MayHaveWriter(entry.second.object.get()); });
  prune_at_ = std::max<size_t>(2048, 2 * writers_.size());
}

std::vector<undo::ObjectRef> LiveWriters::Survivors(const Project& project) {
  MutexLock lock(mutex_);
  Prune();
  std::vector<undo::ObjectRef> survivors;
  for (const auto& [key, writer] : writers_) {
    if (writer.project == &project) survivors.push_back({writer.object.get()});
  }
  return survivors;
}

void LiveWriters::Clear() {
  MutexLock lock(mutex_);
  writers_.clear();
}

size_t LiveWriters::size() const {
  MutexLock lock(mutex_);
  return writers_.size();
}

}  // namespace sandglass::bridge

#include "bridge/supervise/live_writers.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace sandglass::bridge {
namespace {

// What else needs descriptors: folders and tasks that are remembered, calls under way.
constexpr size_t kForOthers = 4096;
// As many as calls are usually under way at once; having them at hand is cheaper than making one for each.
constexpr size_t kReserve = 64;

}  // namespace

size_t LiveWriters::MostRemembered() {
  rlimit limit{};
  CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur - std::min<size_t>(limit.rlim_cur / 2, kForOthers);
}

// Looking at one costs as much as handing it out, and most commands end before that many.
size_t LiveWriters::PruneAfter(size_t survivors) const {
  constexpr size_t kFirst = 8192;
  return std::min(most_, std::max(kFirst, 2 * survivors));
}

Status LiveWriters::MakeRoom() {
  MutexLock lock(mutex_);
  if (writers_.size() >= prune_at_) Prune();
  if (writers_.size() >= most_) return Error::FromErrno(ENFILE, "too many files are written to");
  while (reserve_.size() < kReserve) {
    Fd spare(::fcntl(own_fds_.folder(), F_DUPFD_CLOEXEC, 0));
    if (!spare.valid() && reserve_.empty())
      return Error::FromErrno(errno, "keep a descriptor for a writer");
    if (!spare.valid()) break;
    reserve_.push_back(std::move(spare));
  }
  return Ok();
}

Fd LiveWriters::OpenPathOf(int fd) {
  while (true) {
    Fd object = own_fds_.Open(fd, O_PATH);
    if (object.valid() || reserve_.empty()) return object;
    reserve_.pop_back();
  }
}

bool LiveWriters::Add(const Project& project, int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return false;
  MutexLock lock(mutex_);
  const auto key = std::pair<uint64_t, uint64_t>(st.st_dev, st.st_ino);
  if (writers_.contains(key)) return true;
  Fd object = OpenPathOf(fd);
  if (!object.valid()) return false;
  writers_.emplace(key, Writer{&project, std::move(object)});
  return true;
}

// A read lease is refused while the file is open for writing, also by a mapping alone. What cannot be asked counts as open.
bool LiveWriters::MayHaveWriter(const Fd& object) const {
  const Fd file = own_fds_.Open(object.get(), O_RDONLY | O_NONBLOCK);
  if (!file.valid() || ::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) return true;
  ::fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return false;
}

void LiveWriters::Prune() {
  std::erase_if(writers_, [&](const auto& entry) { return !MayHaveWriter(entry.second.object); });
  prune_at_ = PruneAfter(writers_.size());
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

const Project* LiveWriters::ProjectOf(uint64_t device, uint64_t inode) const {
  MutexLock lock(mutex_);
  const auto found = writers_.find({device, inode});
  return found == writers_.end() ? nullptr : found->second.project;
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

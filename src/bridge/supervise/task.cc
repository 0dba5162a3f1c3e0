#include "bridge/supervise/task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/io.h"

namespace sandglass::bridge {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFirstRead = 256;  // most paths end within it
constexpr unsigned kPidfdThread = O_EXCL;
constexpr size_t kMaxTasks = 512;

Error Failure(std::string_view what) { return Error::FromErrno(errno, what); }

constexpr size_t kMaxProcFile = 1 << 16;

Result<TaskStatus> LoadStatus(int proc) {
  TRY_ASSIGN(std::string text, ReadFileAt(proc, "status", kMaxProcFile));
  return DecodeStatus(text);
}

constexpr uint64_t CapBit(int capability) { return 1ull << capability; }
// Those that decide about files and that the kernel honours in a user namespace.
constexpr uint64_t kFileCapabilities = CapBit(CAP_CHOWN) | CapBit(CAP_DAC_OVERRIDE) |
                                       CapBit(CAP_DAC_READ_SEARCH) | CapBit(CAP_FOWNER) |
                                       CapBit(CAP_FSETID);

struct Capabilities {
  uint64_t effective, permitted, inheritable;
};

Capabilities GetCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  ::syscall(SYS_capget, &header, data);
  const auto join = [](uint32_t low, uint32_t high) { return low | (uint64_t{high} << 32); };
  return {join(data[0].effective, data[1].effective), join(data[0].permitted, data[1].permitted),
          join(data[0].inheritable, data[1].inheritable)};
}

// Of this thread alone; the C library's wrappers would change every thread.
void SetEffective(const Capabilities& own, uint64_t effective) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; ++half) {
    data[half].effective = static_cast<uint32_t>(effective >> (32 * half));
    data[half].permitted = static_cast<uint32_t>(own.permitted >> (32 * half));
    data[half].inheritable = static_cast<uint32_t>(own.inheritable >> (32 * half));
  }
  CHECK(::syscall(SYS_capset, &header, data) == 0);
}

std::vector<gid_t> GetGroups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  if (!groups.empty()) CHECK(::getgroups(static_cast<int>(groups.size()), groups.data()) >= 0);
  return groups;
}

void SetGroups(const std::vector<gid_t>& groups) {
  CHECK(::syscall(SYS_setgroups, groups.size(), groups.data()) == 0);
}

bool WeAreRoot() {
  static const bool root = ::geteuid() == 0;
  return root;
}

bool NeedsSwitch(const TaskStatus& caller, ActAs::For purpose) {
  if (!WeAreRoot()) return false;
  switch (purpose) {
    case ActAs::For::kChange:
    case ActAs::For::kRealUser:
      return true;
    case ActAs::For::kCreate:
    case ActAs::For::kNames:
    case ActAs::For::kAttributes:
      return !HasOurRights(caller);
    case ActAs::For::kLookup:
      return caller.fs_uid != 0 || (caller.effective & CapBit(CAP_DAC_OVERRIDE)) == 0;
  }
  return true;
}

// The umask of this thread, which it shares with nobody. Most tasks have the same one, so it stays until another is needed.
void SetUmask(mode_t mask) {
  static thread_local std::optional<mode_t> current;
  if (current == mask) return;
  ::umask(mask);
  current = mask;
}

// Our own files are for their owner only. What a task's umask leaves to owners is therefore as good as kOwnUmask for them.
constexpr mode_t kOwnUmask = 077;

}  // namespace

Result<std::shared_ptr<Task>> Task::Open(pid_t tid) {
  int raw = static_cast<int>(::syscall(SYS_pidfd_open, tid, kPidfdThread));
  // Before 6.9 there are only descriptors of processes.
  if (raw < 0 && errno == EINVAL) raw = static_cast<int>(::syscall(SYS_pidfd_open, tid, 0));
  Fd pidfd(raw);
  if (!pidfd.valid()) return Failure("pidfd_open");
  Fd proc(::open(fmt::format("/proc/{}", tid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc.valid()) return Failure("open a task's folder");
  TRY_ASSIGN(TaskStatus status, LoadStatus(proc.get()));
  return std::make_shared<Task>(tid, std::move(pidfd), std::move(proc), std::move(status));
}

bool Task::IsAlive() const {
  return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), 0, nullptr, 0) == 0;
}

TaskStatus Task::status() const {
  MutexLock lock(mutex_);
  return status_;
}

Status Task::Refresh() {
  TRY_ASSIGN(TaskStatus status, LoadStatus(proc_.get()));
  MutexLock lock(mutex_);
  status_ = std::move(status);
  return Ok();
}

void Task::SetUmask(mode_t mask) {
  MutexLock lock(mutex_);
  status_.umask = mask & 0777;
}

Result<std::string> Task::ReadText(uint64_t address) const {
  char buffer[PATH_MAX];
  size_t filled = 0;
  while (filled < sizeof(buffer)) {
    // Never across a page that may be missing.
    size_t wanted = std::min(kPage - (address % kPage), sizeof(buffer) - filled);
    if (filled == 0) wanted = std::min(wanted, kFirstRead);
    iovec local{buffer + filled, wanted};
    iovec remote{reinterpret_cast<void*>(address), wanted};
    const ssize_t got = ::process_vm_readv(tid_, &local, 1, &remote, 1, 0);
    if (got <= 0)
      return Error::FromErrno(errno == EPERM ? EPERM : EFAULT, "read a string of a task");
    const void* end = std::memchr(buffer + filled, 0, static_cast<size_t>(got));
    if (end != nullptr)
      return std::string(static_cast<const char*>(buffer), static_cast<const char*>(end));
    filled += static_cast<size_t>(got);
    address += static_cast<uint64_t>(got);
  }
  return Error::FromErrno(ENAMETOOLONG, "read a string of a task");
}

Result<Bytes> Task::ReadBytes(uint64_t address, size_t size) const {
  Bytes bytes(size);
  if (size == 0) return bytes;
  iovec local{bytes.data(), size};
  iovec remote{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(tid_, &local, 1, &remote, 1, 0);
  if (got != static_cast<ssize_t>(size)) return Error::FromErrno(EFAULT, "read memory of a task");
  return bytes;
}

Status Task::WriteBytes(uint64_t address, ByteView bytes) const {
  iovec local{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t put = ::process_vm_writev(tid_, &local, 1, &remote, 1, 0);
  if (put != static_cast<ssize_t>(bytes.size()))
    return Error::FromErrno(EFAULT, "write memory of a task");
  return Ok();
}

Result<Fd> Task::CopyFd(int fd) const {
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd_.get(), fd, 0)));
  if (!copy.valid()) return Failure("pidfd_getfd");
  return copy;
}

Result<Fd> Task::OpenWorkingDir() const {
  Fd dir(::openat(proc_.get(), "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Failure("open working directory");
  return dir;
}

Result<struct statx> Task::StatWorkingDir(unsigned mask) const {
  struct statx st;
  if (::statx(proc_.get(), "cwd", AT_NO_AUTOMOUNT, mask, &st) != 0)
    return Failure("look at the working directory");
  return st;
}

Result<Fd> Task::OpenRootDir() const {
  Fd dir(::openat(proc_.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Failure("open root directory");
  return dir;
}

std::optional<uint64_t> Task::FileSizeLimit() const {
  const Result<std::string> text = ReadFileAt(proc_.get(), "limits", kMaxProcFile);
  return text.ok() ? DecodeFileSizeLimit(*text) : std::nullopt;
}

void Task::Signal(int signal) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

Result<std::shared_ptr<Task>> TaskCache::Get(pid_t tid) {
  std::shared_ptr<Task> known;
  bool fresh = false;
  {
    MutexLock lock(mutex_);
    const auto found = tasks_.find(tid);
    if (found != tasks_.end()) known = found->second;
    fresh = known != nullptr && uncached_processes_.contains(known->status().tgid);
  }
  if (known != nullptr && (!fresh || known->Refresh().ok())) return known;
  TRY_ASSIGN(std::shared_ptr<Task> task, Task::Open(tid));
  MutexLock lock(mutex_);
  if (tasks_.size() >= kMaxTasks) {
    std::erase_if(tasks_, [](const auto& entry) { return !entry.second->IsAlive(); });
    if (tasks_.size() >= kMaxTasks) tasks_.clear();
  }
  tasks_[tid] = task;
  return task;
}

void TaskCache::Forget(pid_t tid) {
  MutexLock lock(mutex_);
  tasks_.erase(tid);
}

void TaskCache::ForgetAll() {
  MutexLock lock(mutex_);
  tasks_.clear();
}

void TaskCache::NoteUmask(Task& task, mode_t mask) {
  // How many threads there are may have changed since the identity was read.
  if (!task.Refresh().ok()) return;
  const TaskStatus status = task.status();
  task.SetUmask(mask);
  if (status.threads <= 1) return;
  MutexLock lock(mutex_);
  uncached_processes_.insert(status.tgid);
}

bool HasOurRights(const TaskStatus& caller) {
  constexpr uint64_t kUsual =
      CapBit(CAP_CHOWN) | CapBit(CAP_DAC_OVERRIDE) | CapBit(CAP_FOWNER) | CapBit(CAP_FSETID);
  if (!WeAreRoot()) return true;
  static const gid_t own_group = ::getegid();
  return caller.fs_uid == 0 && caller.fs_gid == own_group && (caller.effective & kUsual) == kUsual;
}

ActAs::ActAs(const TaskStatus& caller, For purpose) {
  if (purpose == For::kChange || purpose == For::kCreate) {
    SetUmask(caller.umask);
    takes_from_owners_ = (caller.umask & S_IRWXU) != 0;
  }
  if (!NeedsSwitch(caller, purpose)) return;
  switched_ = true;
  const bool real = purpose == For::kRealUser;
  const uid_t uid = real ? caller.real_uid : caller.fs_uid;
  // The real root has its permitted capabilities, other real users none.
  const uint64_t caller_caps = !real ? caller.effective : uid == 0 ? caller.permitted : 0;
  const Capabilities own = GetCapabilities();
  effective_ = own.effective;
  groups_ = GetGroups();
  regroup_ = groups_ != caller.groups;
  if (regroup_) SetGroups(caller.groups);
  gid_ = static_cast<gid_t>(::setfsgid(real ? caller.real_gid : caller.fs_gid));
  uid_ = static_cast<uid_t>(::setfsuid(uid));
  SetEffective(own, own.permitted & caller_caps & kFileCapabilities);
}

ActAs::~ActAs() {
  const int saved = errno;
  if (takes_from_owners_) SetUmask(kOwnUmask);
  if (switched_) {
    // Back to ids that are ours, which needs no capability; that changes the effective set, so it comes before it.
    ::setfsuid(uid_);
    ::setfsgid(gid_);
    SetEffective(GetCapabilities(), effective_);
    if (regroup_) SetGroups(groups_);
  }
  errno = saved;
}

}  // namespace sandglass::bridge

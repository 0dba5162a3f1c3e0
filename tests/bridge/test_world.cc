#include "tests/bridge/test_world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "base/passed_fds.h"
#include "bridge/supervise/filter.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

[[noreturn]] void Die(const char* what) {
  ::dprintf(2, "world: %s: %s\n", what, std::strerror(errno));
  ::_exit(99);
}

void Need(long result, const char* what) {
  if (result < 0) Die(what);
}

Fd ReceiveFd(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  ::poll(&waiting, 1, -1);
  uint8_t byte = 0;
  auto message = ReceiveWithFds(socket, {&byte, 1});
  return message.ok() ? std::move(message->fds[0]) : Fd();
}

void MakeReadOnly(const std::string& path) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  Need(::syscall(SYS_mount_setattr, AT_FDCWD, path.c_str(), AT_RECURSIVE, &attributes,
                 sizeof(attributes)),
       "mount_setattr");
}

void MountProject(const std::string& project, const WorldOptions& options) {
  Need(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
  Need(::mount(project.c_str(), project.c_str(), nullptr, MS_BIND | MS_REC, nullptr),
       "bind the project");
  MakeReadOnly(project);
  if (options.also_at.empty()) return;
  Need(::mount(project.c_str(), options.also_at.c_str(), nullptr, MS_BIND | MS_REC, nullptr),
       "bind elsewhere");
  MakeReadOnly(options.also_at);
}

void DropCapabilities(uid_t uid) {
  constexpr uint64_t kRootKeeps = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE |
                                  1ull << CAP_FOWNER | 1ull << CAP_FSETID | 1ull << CAP_SETUID |
                                  1ull << CAP_SETGID;
  const uint64_t kept = uid == 0 ? kRootKeeps : 0;
  for (int cap = 0; cap <= 63; ++cap) {
    if ((kept >> cap & 1) == 0) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  data[0].effective = data[0].permitted = static_cast<uint32_t>(kept);
  Need(::syscall(SYS_capset, &header, data), "capset");
}

void BecomeUser(uid_t uid) {
  if (uid == ::getuid()) return;
  Need(::setgroups(0, nullptr), "setgroups");
  Need(::setresgid(uid, uid, uid), "setresgid");
  Need(::setresuid(uid, uid, uid), "setresuid");
}

[[noreturn]] void ExecShell(const std::string& command) {
  ::setenv("HOME", "/nonexistent", 1);
  ::setenv("LC_ALL", "C", 1);
  ::execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
  Die("exec");
}

void Redirect(const std::string& output) {
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
  Need(fd, "open output");
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, 0);
  ::close(null);
  ::close(fd);
}

// In the grandchild: the first process of the pid namespace.
[[noreturn]] void RunInside(int socket, const std::string& command, const std::string& project,
                            const WorldOptions& options, std::span<const sock_filter> filter) {
  // Two processes write to this socket: the pid goes first.
  char go = 0;
  if (::read(socket, &go, 1) != 1) ::_exit(98);
  Need(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr), "mount /proc");
  Need(::chdir(project.c_str()), "chdir");
  if (options.uid != 0) BecomeUser(options.uid);
  DropCapabilities(options.uid);
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const int listener = bridge::InstallFilter(filter);
  Need(listener, "seccomp");
  if (!SendWithFds(socket, AsBytes("l"), {&listener, 1}).ok()) Die("send the listener");
  if (::read(socket, &go, 1) != 1) ::_exit(98);
  ::close_range(3, ~0u, 0);
  ExecShell(command);
}

[[noreturn]] void RunOutside(int socket, const std::string& command, const std::string& project,
                             const std::string& output, const WorldOptions& options,
                             std::span<const sock_filter> filter) {
  Need(::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID), "unshare");
  char byte = 'u';
  Need(::write(socket, &byte, 1), "tell");
  if (::read(socket, &byte, 1) != 1) ::_exit(98);
  MountProject(project, options);
  // Not before: the command's streams must lie on mounts of its own.
  Redirect(output);
  const pid_t inside = ::fork();
  Need(inside, "fork");
  if (inside == 0) RunInside(socket, command, project, options, filter);
  Need(::write(socket, &inside, sizeof(inside)), "tell the pid");
  ::close(socket);
  int status = 0;
  ::waitpid(inside, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void WriteProc(pid_t pid, const char* name, const std::string& text) {
  const Fd file(
      MustCall(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC), name));
  Must(WriteFully(file.get(), AsBytes(text)));
}

void MapIds(pid_t pid) {
  if (::getuid() == 0) {
    WriteProc(pid, "uid_map", "0 0 4294967295");
    WriteProc(pid, "gid_map", "0 0 4294967295");
    return;
  }
  WriteProc(pid, "setgroups", "deny");
  WriteProc(pid, "uid_map", fmt::format("{0} {0} 1", ::getuid()));
  WriteProc(pid, "gid_map", fmt::format("{0} {0} 1", ::getgid()));
}

std::string NewOutputFile() {
  std::string path = TestDirectory() + "/sandglass-out-XXXXXX";
  const Fd file(MustCall(::mkstemp(path.data()), path));
  ::fchmod(file.get(), 0666);
  return path;
}

CommandResult ResultOf(pid_t child, const std::string& output_path) {
  CommandResult result;
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = Must(ReadFileAt(AT_FDCWD, output_path.c_str(), 64u << 20));
  ::unlink(output_path.c_str());
  return result;
}

}  // namespace

CommandResult RunNatively(const std::string& command, const std::string& cwd, uid_t uid) {
  const std::string output = NewOutputFile();
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    Redirect(output);
    Need(::chdir(cwd.c_str()), "chdir");
    if (uid != 0) BecomeUser(uid);
    ::close_range(3, ~0u, 0);
    ExecShell(command);
  }
  return ResultOf(child, output);
}

RunningWorld::RunningWorld(bridge::Supervisor& supervisor, const std::string& command,
                           const std::string& project, const WorldOptions& options)
    : output_path_(NewOutputFile()) {
  const std::vector<sock_filter> filter = bridge::BuildFilter();
  int pair[2];
  MustCall(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
  child_ = MustCall(::fork(), "fork");
  if (child_ == 0) {
    ::close(pair[0]);
    RunOutside(pair[1], command, project, output_path_, options, filter);
  }
  const Fd socket(pair[0]);
  ::close(pair[1]);
  char byte = 0;
  if (::read(socket.get(), &byte, 1) != 1) SetupFailed(Error(Code::kIo, "no world"));
  MapIds(child_);
  MustCall(::write(socket.get(), &byte, 1), "go on");
  MustCall(::read(socket.get(), &pid_, sizeof(pid_)), "pid");
  MustCall(::write(socket.get(), &byte, 1), "go on");
  Fd listener = ReceiveFd(socket.get());
  if (!listener.valid()) {
    std::fprintf(stderr, "%s\n", ResultOf(child_, output_path_).output.c_str());
    SetupFailed(Error(Code::kIo, "no listener"));
  }
  command_ = Must(supervisor.Supervise(std::move(listener), pid_, options.serving));
  MustCall(::write(socket.get(), &byte, 1), "start");
}

CommandResult RunningWorld::Finish() {
  CommandResult result = ResultOf(child_, output_path_);
  child_ = -1;
  command_->Wait();
  return result;
}

RunningWorld::~RunningWorld() {
  if (child_ >= 0) {
    ::kill(pid_, SIGKILL);
    Finish();
  }
}

std::string WhyNoWorld() {
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) == 0 ? 0 : errno);
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return fmt::format("no user namespaces: {}", std::strerror(WEXITSTATUS(status)));
}

}  // namespace sandglass::test

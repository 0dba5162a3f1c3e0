#include "session/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/fd.h"
#include "base/json.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxReport = 64 << 10;

bool CanOpen(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).valid();
}

bool CanConnect(int family, const void* address, socklen_t size) {
  const Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.valid() &&
         ::connect(socket.get(), static_cast<const sockaddr*>(address), size) == 0;
}

bool CanConnectToPath(std::string_view path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::copy(path.begin(), path.end(), address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return CanConnect(AF_UNIX, &address, size);
}

// In a child, because success changes the process that tries.
template <class Attempt>
bool WorksInChild(Attempt attempt) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(attempt() ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

// Anything but "read-only" means that only permissions stand in the way. The file stays: does the host see it?
bool WritesSystem(const ProbeTargets& targets) {
  const Fd made(::open(targets.system_file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return made.valid() || errno != EROFS;
}

bool ReadsHome(const ProbeTargets& targets) { return CanOpen(targets.secret_file); }
bool ReadsStore(const ProbeTargets& targets) { return CanOpen(targets.store_file); }

bool SeesProcesses(const ProbeTargets& targets) {
  return ::kill(targets.host_process, 0) == 0 || errno == EPERM;
}

bool ReachesLoopback(const ProbeTargets& targets) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(targets.loopback_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return CanConnect(AF_INET, &address, sizeof(address));
}

bool ReachesAbstractSockets(const ProbeTargets& targets) {
  return CanConnectToPath(std::string(1, '\0') + targets.abstract_socket);
}
bool ReachesSocketFiles(const ProbeTargets& targets) {
  return CanConnectToPath(targets.socket_file);
}

bool MakesNamespaces(const ProbeTargets&) {
  return WorksInChild([] { return ::unshare(CLONE_NEWUSER) == 0; });
}

bool Mounts(const ProbeTargets&) {
  return WorksInChild([] {
    // With mounts of its own where it can have them; where not, the host's must be out of reach too.
    if (::unshare(CLONE_NEWNS) != 0) (void)::unshare(CLONE_NEWUSER | CLONE_NEWNS);
    return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  });
}

// The first process is what runs the commands; who started us keeps ours.
bool TracesItsGuards(const ProbeTargets&) {
  const pid_t guards[] = {1, ::getppid()};
  return WorksInChild([&] {
    return std::ranges::any_of(
        guards, [](pid_t guard) { return ::ptrace(PTRACE_SEIZE, guard, nullptr, nullptr) == 0; });
  });
}

bool UsesIoUring(const ProbeTargets&) {
  io_uring_params params{};
  return Fd(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &params))).valid();
}

bool UsesKeyrings(const ProbeTargets&) {
  return ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0) >= 0;
}

// A handle of nothing: where handles may be opened at all it is stale.
bool OpensHandles(const ProbeTargets&) {
  struct {
    file_handle head{};
    unsigned char bytes[8] = {};
  } handle;
  handle.head.handle_bytes = sizeof(handle.bytes);
  handle.head.handle_type = 1;
  const Fd here(::open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return ::open_by_handle_at(here.get(), &handle.head, O_RDONLY | O_CLOEXEC) >= 0 ||
         errno == ESTALE;
}

bool GainsPrivileges(const ProbeTargets&) { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1; }

bool WritesProject(const ProbeTargets& targets) {
  return Fd(::open(targets.new_file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600))
      .valid();
}

struct Try {
  std::string_view name;
  bool (*works)(const ProbeTargets&);
};
constexpr Try kTries[] = {
    {"write_system", WritesSystem},
    {"read_home", ReadsHome},
    {"read_store", ReadsStore},
    {"see_processes", SeesProcesses},
    {"trace", TracesItsGuards},
    {"loopback", ReachesLoopback},
    {"abstract_sockets", ReachesAbstractSockets},
    {"socket_files", ReachesSocketFiles},
    {"new_namespaces", MakesNamespaces},
    {"mount", Mounts},
    {"io_uring", UsesIoUring},
    {"keyrings", UsesKeyrings},
    {"handles", OpensHandles},
    {"gain_privileges", GainsPrivileges},
    {"write_project", WritesProject},
};

}  // namespace

std::string WriteTargets(const ProbeTargets& targets) {
  return WriteJson(Json::Object({{"host_process", targets.host_process},
                                 {"loopback_port", targets.loopback_port},
                                 {"abstract_socket", targets.abstract_socket},
                                 {"socket_file", BytesToJson(targets.socket_file)},
                                 {"secret_file", BytesToJson(targets.secret_file)},
                                 {"store_file", BytesToJson(targets.store_file)},
                                 {"system_file", BytesToJson(targets.system_file)},
                                 {"new_file", BytesToJson(targets.new_file)}}));
}

Result<ProbeTargets> ParseTargets(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  const auto path = [&](std::string_view key) -> Result<std::string> {
    const Json* value = json.Find(key);
    if (value == nullptr) return Error(Code::kInvalid, fmt::format("{} is missing", key));
    return BytesFromJson(*value);
  };
  ProbeTargets targets;
  TRY_ASSIGN(const uint64_t process, json.GetUint("host_process"));
  TRY_ASSIGN(const uint64_t port, json.GetUint("loopback_port"));
  if (process > std::numeric_limits<pid_t>::max() || port > std::numeric_limits<uint16_t>::max())
    return Error(Code::kInvalid, "a number is too large");
  targets.host_process = static_cast<pid_t>(process);
  targets.loopback_port = static_cast<uint16_t>(port);
  TRY_ASSIGN(targets.abstract_socket, json.GetString("abstract_socket"));
  TRY_ASSIGN(targets.socket_file, path("socket_file"));
  TRY_ASSIGN(targets.secret_file, path("secret_file"));
  TRY_ASSIGN(targets.store_file, path("store_file"));
  TRY_ASSIGN(targets.system_file, path("system_file"));
  TRY_ASSIGN(targets.new_file, path("new_file"));
  return targets;
}

std::string RunProbe(const ProbeTargets& targets) {
  Json report = Json::Object();
  for (const Try& each : kTries) report.Set(each.name, each.works(targets));
  return WriteJson(report) + "\n";
}

Result<ProbeReport> ParseProbeReport(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text, kMaxReport));
  ProbeReport report;
  for (const Try& each : kTries) {
    TRY_ASSIGN(const bool worked, json.GetBool(each.name));
    report.emplace(each.name, worked);
  }
  return report;
}

}  // namespace sandglass::session

#include "session/doctor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/io.h"
#include "bridge/supervise/filter.h"
#include "session/probe.h"
#include "session/session.h"
#include "session/upper_folders.h"
#include "undo/undo_log.h"
#include "world/local/limits.h"
#include "world/local/local_world.h"
#include "world/local/system_folders.h"

namespace sandglass::session {
namespace {

namespace fs = std::filesystem;

// --- The machine.

Finding ExamineNamespaces() {
  const std::string why = world::WhyNoNamespaces();
  if (!why.empty()) return {"namespaces", Verdict::kFails, "a world cannot be built here", why};
  utsname name{};
  ::uname(&name);
  return {"namespaces", Verdict::kProtects,
          fmt::format("Linux {} lets this user build worlds", name.release), ""};
}

// The errno of installing the very filter that commands install. In a child, since it stays.
int TryFilter() {
  const std::vector<sock_filter> filter = bridge::BuildFilter();
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const int listener = bridge::InstallFilter(filter);
    ::_exit(listener >= 0 ? 0 : errno);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

Finding ExamineSupervision() {
  const int error = TryFilter();
  if (error == 0)
    return {"supervision", Verdict::kProtects,
            "changes of a project can be seen before they happen", ""};
  return {"supervision", Verdict::kFails,
          fmt::format("the kernel refuses seccomp user notification: {}", std::strerror(error)),
          "use Linux 5.19 or later with CONFIG_SECCOMP_FILTER; in a container, let it use seccomp"};
}

Finding ExamineSecondLock() {
  constexpr const char* kName = "second_lock";
  const std::string why = world::WhyNoWriteLock();
  if (why.empty())
    return {kName, Verdict::kProtects, "Landlock guards files that commands have open", ""};
  return {kName, Verdict::kFails, "files that commands have open are guarded by no second lock",
          why};
}

struct LimitRow {
  const char* name;
  const char* option;
  world::Limits limits;
};

Finding ExamineLimit(const LimitRow& row) {
  const auto prepared = world::EnforcedLimits::Prepare(row.limits);
  if (!prepared.ok()) {
    return {row.name, Verdict::kAbsent,
            fmt::format("--{} would be refused: {}", row.option, prepared.error().message()),
            "run as root, or in a control group that was delegated to you: systemd-run --user "
            "--scope -p Delegate=yes"};
  }
  return {row.name, Verdict::kProtects,
          fmt::format("--{} is enforced ({})", row.option, prepared->notes().front()), ""};
}

// --- The world.

// Sockets that nobody ever accepts from: a connection succeeds all the same.
Result<Fd> Listen(int family, const void* address, socklen_t size) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::bind(socket.get(), static_cast<const sockaddr*>(address), size) != 0 ||
      ::listen(socket.get(), 8) != 0)
    return Error::FromErrno(errno, "listen");
  return socket;
}

Result<Fd> ListenOnPath(std::string_view path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path))
    return Error(Code::kInvalid, fmt::format("{} is too long for a socket", path));
  std::copy(path.begin(), path.end(), address.sun_path);
  return Listen(AF_UNIX, &address,
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
}

// Everything that the probe reaches for. Gone with it.
class ScratchHost {
 public:
  static Result<std::unique_ptr<ScratchHost>> Make();
  ~ScratchHost();
  ScratchHost(const ScratchHost&) = delete;
  ScratchHost& operator=(const ScratchHost&) = delete;

  const ScratchProject& scratch() const { return scratch_; }
  const ProbeTargets& targets() const { return targets_; }

 private:
  ScratchHost() = default;
  Status MakeFolders();
  Status MakeListeners();

  std::string folder_;
  ScratchProject scratch_;
  ProbeTargets targets_;
  Fd loopback_, abstract_, file_;
};

Result<std::unique_ptr<ScratchHost>> ScratchHost::Make() {
  std::unique_ptr<ScratchHost> host(new ScratchHost());
  TRY(host->MakeFolders());
  TRY(host->MakeListeners());
  host->targets_.host_process = ::getpid();
  return host;
}

// In the home folder, which a world must not see, and where a store can be.
Status ScratchHost::MakeFolders() {
  std::error_code error;
  const char* const home = std::getenv("HOME");
  const bool has_home = home != nullptr && ::access(home, W_OK) == 0;
  fs::path base = has_home ? fs::path(home) : fs::temp_directory_path(error);
  base = fs::canonical(base, error);
  std::string pattern = (base / ".sandglass-doctor-XXXXXX").native();
  if (::mkdtemp(pattern.data()) == nullptr)
    return Error::FromErrno(errno, fmt::format("make a scratch folder in {}", base.native()));
  folder_ = pattern;
  scratch_ = {folder_ + "/project", folder_ + "/store"};
  targets_.secret_file = folder_ + "/secret";
  targets_.store_file = scratch_.store + "/version";
  targets_.system_file = "/usr/" + fs::path(folder_).filename().native();
  targets_.new_file = scratch_.project + "/new";
  for (const std::string& each : {scratch_.project, scratch_.store}) {
    if (::mkdir(each.c_str(), 0700) != 0) return Error::FromErrno(errno, each);
  }
  return ReplaceFileAt(AT_FDCWD, targets_.secret_file.c_str(), "secret");
}

Status ScratchHost::MakeListeners() {
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TRY_ASSIGN(loopback_, Listen(AF_INET, &loopback, sizeof(loopback)));
  socklen_t size = sizeof(loopback);
  if (::getsockname(loopback_.get(), reinterpret_cast<sockaddr*>(&loopback), &size) != 0)
    return Error::FromErrno(errno, "getsockname");
  targets_.loopback_port = ntohs(loopback.sin_port);
  targets_.abstract_socket = fmt::format("sandglass-doctor-{}", ::getpid());
  TRY_ASSIGN(abstract_, ListenOnPath(std::string(1, '\0') + targets_.abstract_socket));
  targets_.socket_file = folder_ + "/socket";
  TRY_ASSIGN(file_, ListenOnPath(targets_.socket_file));
  return Ok();
}

ScratchHost::~ScratchHost() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

struct WorldRow {
  const char* name;  // of the probe's try
  const char* holds;
  const char* fails;
};
// What must not work in a world.
constexpr WorldRow kWorldRows[] = {
    {"read_home", "your home folder is hidden", "a command can read your home folder"},
    {"read_store", "the undo store is out of reach", "a command can reach the undo store"},
    {"see_processes", "other processes are out of reach", "a command can signal your processes"},
    {"trace", "what runs the commands cannot be traced", "a command can take its own guard over"},
    {"loopback", "services of this machine are out of reach",
     "a command can reach services of this machine"},
    {"abstract_sockets", "abstract sockets are out of reach",
     "a command can reach abstract sockets, such as those of a desktop"},
    {"socket_files", "socket files in your home folder are out of reach",
     "a command can reach sockets in your home folder"},
    {"new_namespaces", "no namespaces can be made", "a command can make namespaces of its own"},
    {"mount", "nothing can be mounted", "a command can change what is mounted"},
    {"io_uring", "io_uring is off, which would pass by supervision",
     "a command can use io_uring and pass by supervision"},
    {"keyrings", "your keyrings are out of reach", "a command can use your keyrings"},
    {"handles", "files cannot be opened by handle", "a command can open hidden files by handle"},
    {"gain_privileges", "set-uid programs give no rights",
     "a command can gain rights by set-uid programs"},
};

Finding JudgeRow(const WorldRow& row, const ProbeReport& report) {
  const auto found = report.find(row.name);
  const bool holds = found != report.end() && !found->second;
  return {row.name, holds ? Verdict::kProtects : Verdict::kFails, holds ? row.holds : row.fails,
          ""};
}

constexpr WorldRow kSystemRow = {"write_system", "the system's files are read-only",
                                 "a command can change the system's files"};
constexpr const char* kSystemLayer = "system_layer";

enum class SystemFiles : uint8_t {
  kReadOnly,
  kChangedInTheWorld,  // and nowhere else
  kChanged,            // or only permissions stood in the way
};

SystemFiles LookAtSystem(const ProbeReport& report, const std::string& made) {
  if (::unlink(made.c_str()) == 0) return SystemFiles::kChanged;
  const auto wrote = report.find(kSystemRow.name);
  if (wrote != report.end() && !wrote->second) return SystemFiles::kReadOnly;
  return ::geteuid() == 0 ? SystemFiles::kChangedInTheWorld : SystemFiles::kChanged;
}

Finding JudgeSystem(SystemFiles found) {
  if (found == SystemFiles::kChanged)
    return {kSystemRow.name, Verdict::kFails, kSystemRow.fails, ""};
  const bool layer = found == SystemFiles::kChangedInTheWorld;
  return {kSystemRow.name, Verdict::kProtects,
          layer ? "what a command changes in the system stays in its world" : kSystemRow.holds, ""};
}

// Of a world of root: whether packages can be installed in it.
Finding JudgeSystemLayer(SystemFiles found, const std::string& place) {
  if (found != SystemFiles::kChangedInTheWorld) {
    const Status upper = CheckCanBeUpper(place);
    return {
        kSystemLayer, Verdict::kAbsent,
        fmt::format("the system is read-only in worlds of root: {}",
                    upper.ok() ? "the kernel refuses an overlay of it" : upper.error().message()),
        "set SANDGLASS_HOME to a folder on ext4, xfs or btrfs, and use Linux 5.11 or later"};
  }
  std::string takes, read_only;
  for (const world::SystemFolder& folder : world::SystemFolders()) {
    if (folder.why_read_only.empty())
      takes += (takes.empty() ? "" : ", ") + folder.path;
    else
      read_only += fmt::format("; {} is read-only: {}", folder.path, folder.why_read_only);
  }
  return {kSystemLayer, read_only.empty() ? Verdict::kProtects : Verdict::kAbsent,
          fmt::format("worlds of root keep their own changes of {}{}", takes, read_only), ""};
}

// Was what the probe made recorded, and does undo take it back?
Finding JudgeUndo(const ScratchProject& scratch, const ProbeReport& report,
                  const std::string& made) {
  constexpr const char* kName = "undo";
  const auto fails = [](std::string text) {
    return Finding{kName, Verdict::kFails, std::move(text), ""};
  };
  const auto wrote = report.find("write_project");
  if (wrote == report.end() || !wrote->second) return fails("a command cannot change the project");
  auto log = undo::UndoLog::Open({.project = scratch.project, .store = scratch.store});
  if (!log.ok()) return fails(log.error().message());
  if (const auto undone = (*log)->Rollback(1); !undone.ok())
    return fails(
        fmt::format("a change of the project could not be undone: {}", undone.error().message()));
  if (::access(made.c_str(), F_OK) == 0) return fails("a change of the project was not undone");
  return {kName, Verdict::kProtects, "a command's change of a project was undone", ""};
}

std::vector<Finding> NothingChecked() {
  std::vector<Finding> findings = {{kSystemRow.name, Verdict::kUnchecked, kSystemRow.holds, ""}};
  if (::geteuid() == 0)
    findings.push_back(
        {kSystemLayer, Verdict::kUnchecked, "worlds of root keep their own changes of it", ""});
  for (const WorldRow& row : kWorldRows)
    findings.push_back({row.name, Verdict::kUnchecked, row.holds, ""});
  findings.push_back({"undo", Verdict::kUnchecked, "a command's change can be undone", ""});
  return findings;
}

Result<std::vector<Finding>> TryWorld(const std::vector<std::string>& probe,
                                      const ScratchRunner& run) {
  TRY_ASSIGN(const auto host, ScratchHost::Make());
  // Makes the store, so that there is something to reach.
  TRY(undo::UndoLog::Open({.project = host->scratch().project, .store = host->scratch().store}));
  std::vector<std::string> argv = probe;
  argv.push_back(WriteTargets(host->targets()));
  TRY_ASSIGN(const std::string printed, run(host->scratch(), argv));
  TRY_ASSIGN(const ProbeReport report, ParseProbeReport(printed));
  const SystemFiles system = LookAtSystem(report, host->targets().system_file);
  std::vector<Finding> findings = {JudgeSystem(system)};
  if (::geteuid() == 0)
    findings.push_back(JudgeSystemLayer(system, fs::path(host->scratch().project).parent_path()));
  for (const WorldRow& row : kWorldRows) findings.push_back(JudgeRow(row, report));
  findings.push_back(JudgeUndo(host->scratch(), report, host->targets().new_file));
  return findings;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kProtects:
      return "protects";
    case Verdict::kAbsent:
      return "absent";
    case Verdict::kFails:
      return "fails";
    case Verdict::kUnchecked:
      return "unchecked";
  }
  return "";
}

ScratchRunner RunInLocalWorld(const std::string& program, const std::string& shim_path) {
  return [=](const ScratchProject& scratch,
             const std::vector<std::string>& argv) -> Result<std::string> {
    const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd out(::memfd_create("probe", MFD_CLOEXEC));
    if (!nothing.valid() || !out.valid()) return Error::FromErrno(errno, "open streams");
    TRY_ASSIGN(auto streams, HostStreams::Open({nothing.get(), out.get(), nothing.get()}));
    SessionOptions options{.scratch_place = fs::path(scratch.project).parent_path(),
                           .extra_read_only = {program},
                           .without_landlock = world::WithoutLandlock("doctor has a line for it"),
                           .shim_path = shim_path};
    options.projects.push_back({{.project = scratch.project, .store = scratch.store}});
    TRY_ASSIGN(auto session, Session::Start(options));
    TRY(session->Run({.argv = argv, .label = "doctor"}, streams));
    if (::lseek(out.get(), 0, SEEK_SET) != 0) return Error::FromErrno(errno, "rewind");
    TRY_ASSIGN(const Bytes printed, ReadFully(out.get(), 1 << 20));
    return std::string(AsText(printed));
  };
}

std::vector<Finding> ExamineMachine() {
  const LimitRow limits[] = {{"memory_limit", "memory", {.memory_bytes = 1ull << 30}},
                             {"cpu_limit", "cpus", {.cpus = 1.0}},
                             {"process_limit", "pids", {.pids = 1000}}};
  std::vector<Finding> findings = {ExamineNamespaces(), ExamineSupervision(), ExamineSecondLock()};
  for (const LimitRow& row : limits) findings.push_back(ExamineLimit(row));
  return findings;
}

std::vector<Finding> ExamineWorld(const std::vector<std::string>& probe, const ScratchRunner& run) {
  auto tried = TryWorld(probe, run);
  std::vector<Finding> findings;
  if (tried.ok()) {
    findings.push_back(
        {"world", Verdict::kProtects, "a world was built and a command ran in it", ""});
    std::ranges::move(*tried, std::back_inserter(findings));
    return findings;
  }
  findings.push_back(
      {"world", Verdict::kFails, fmt::format("no world to try: {}", tried.error().message()), ""});
  std::ranges::move(NothingChecked(), std::back_inserter(findings));
  return findings;
}

}  // namespace sandglass::session

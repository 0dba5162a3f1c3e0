#include "tests/security/victim_world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bridge/supervise/filter.h"
#include "tests/support/must.h"
#include "world/local/child/plan.h"

namespace sandglass::test {
namespace {

constexpr char kDropCapabilities[] = "drop capabilities";
constexpr char kWriteLock[] = "allow writing only in its own places";

std::vector<const char*> StepsWithout(Removed removed) {
  switch (removed) {
    // Landlock forbids mounting too.
    case Removed::kCapabilities:
      return {kDropCapabilities, kWriteLock};
    case Removed::kWriteLock:
      return {kWriteLock};
    default:
      return {};
  }
}

std::vector<sock_filter> FilterWithout(Removed removed) {
  const sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  if (removed == Removed::kFilter || removed == Removed::kCapabilities) return {allow};
  std::vector<sock_filter> filter = bridge::BuildFilter();
  if (removed == Removed::kRuleForChmod) {
    const sock_filter load{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)};
    const sock_filter unless_chmod{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_chmod};
    filter.insert(filter.begin(), {load, unless_chmod, allow});
  }
  return filter;
}

std::string MakeFolder(const std::string& path) {
  MustCall(::mkdir(path.c_str(), 0755), path);
  return path;
}

}  // namespace

std::string HostsAbstractName() { return fmt::format("sandglass-victim-{}", ::getpid()); }

VictimWorld::VictimWorld(Removed removed)
    : removed_(removed),
      outside_(MakeFolder(workspace_.root() + "/outside")),
      store_(outside_ + "/store"),
      layer_(MakeFolder(outside_ + "/layer")),
      home_(workspace_.root() + "/home") {
  FurnishProject();
  FurnishHost();
  log_ = Must(undo::UndoLog::Open({.project = workspace_.project(), .store = store_}));
  supervisor_ = Must(bridge::Supervisor::Create({{workspace_.project(), &log_->interceptor()}}));
  if (removed_ != Removed::kWorld) StartWorld();
}

VictimWorld::~VictimWorld() {
  world_.reset();  // ends all processes, for which the commands wait
  commands_.clear();
}

void VictimWorld::FurnishProject() {
  workspace_.WriteFile("kept", "kept");
  workspace_.MakeDir("race");
  const std::string victim = workspace_.Path("victim");
  std::filesystem::copy_file(SANDGLASS_VICTIM, victim);
  MustCall(::chmod(victim.c_str(), 0755), victim);
  Listen(workspace_.Path("host.sock"), SOCK_STREAM);
}

void VictimWorld::FurnishHost() {
  (void)SpecFor(workspace_);  // makes the home
  MakeFolder(layer_ + "/home");
  for (const std::string& file : {outside_ + "/file", layer_ + "/home/mark"})
    std::ofstream(file) << "host";
  Listen(outside_ + "/host.sock", SOCK_STREAM);
  Listen(outside_ + "/host.dgram", SOCK_DGRAM);
  Listen('\0' + HostsAbstractName(), SOCK_STREAM);
  const std::string fifo = outside_ + "/fifo";
  MustCall(::mkfifo(fifo.c_str(), 0666), fifo);
  host_descriptors_.emplace_back(MustCall(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK), fifo));
  // For a victim on the host: what the undo store would hold of a file that was removed.
  if (removed_ == Removed::kWorld)
    MustCall(::link(workspace_.Path("kept").c_str(), (outside_ + "/anchor").c_str()), "link");
  // Where a policy of the machine lets only relatives trace each other.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

// Descriptors of the host are not closed at exec here: a victim must not inherit them all the same.
void VictimWorld::Listen(const std::string& path, int type) {
  sockaddr_un address{.sun_family = AF_UNIX};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  Fd socket(MustCall(::socket(AF_UNIX, type, 0), "socket"));
  MustCall(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), path);
  if (type == SOCK_STREAM) MustCall(::listen(socket.get(), 16), path);
  host_descriptors_.push_back(std::move(socket));
}

world::LocalWorldSpec VictimWorld::Spec() const {
  world::LocalWorldSpec spec = SpecFor(workspace_);
  spec.layer = layer_;
  if (::geteuid() == 0) spec.system_layer = layer_ + "/system";
  spec.hidden_paths = {store_};
  spec.command_filter = FilterWithout(removed_);
  auto& outside =
      removed_ == Removed::kReadOnlyOutside ? spec.extra_read_write : spec.extra_read_only;
  outside.push_back(outside_);
  if (removed_ == Removed::kReadOnlyProject) {
    spec.projects.clear();
    spec.extra_read_write.push_back(workspace_.project());
  }
  return spec;
}

void VictimWorld::StartWorld() {
  world::steps_left_out = StepsWithout(removed_);
  world_ =
      std::make_unique<TestWorld>(workspace_, [&](world::LocalWorldSpec& spec) { spec = Spec(); });
  world::steps_left_out.clear();
  world_->SuperviseBy([this](StepId, Fd listener) {
    commands_.push_back(
        Must(supervisor_->Supervise(std::move(listener), world_->world().init_pid())));
  });
}

std::string VictimWorld::Resolve(std::string_view target) const {
  const std::pair<std::string_view, std::string> places[] = {{"PROJECT", workspace_.project()},
                                                             {"OUTSIDE", outside_},
                                                             {"STORE", store_},
                                                             {"LAYER", layer_},
                                                             {"HOME", home_}};
  for (const auto& [name, place] : places) {
    if (target.starts_with(name)) return place + std::string(target.substr(name.size()));
  }
  return std::string(target);
}

control::Exec VictimWorld::Exec(std::string_view victim, std::string_view target,
                                int number) const {
  control::Exec exec;
  exec.argv = {workspace_.Path("victim"), std::string(victim), Resolve(target),
               std::to_string(number)};
  exec.cwd = workspace_.project();
  return exec;
}

Ran VictimWorld::Run(std::string_view victim, std::string_view target, Process process) {
  const pid_t shim = removed_ == Removed::kWorld ? ::getpid() : 1;
  const pid_t number = process == Process::kNone   ? 0
                       : process == Process::kShim ? shim
                                                   : ::getpid();
  control::Exec exec = Exec(victim, target, number);
  if (removed_ == Removed::kWorld) return RunOnHost(exec);
  if (victim == "type_into_terminal") {
    exec.pty = control::TerminalSize{};
    exec.takes_input = true;
  }
  Must(log_->OpenStep({.id = StepId{1}}));
  Ran ran = world_->Run(exec);
  if (removed_ != Removed::kFilter && removed_ != Removed::kCapabilities) commands_.back()->Wait();
  Must(log_->CloseStep());
  return ran;
}

Ran VictimWorld::RunOnHost(const control::Exec& exec) {
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    std::vector<char*> argv;
    argv.reserve(exec.argv.size() + 1);
    for (const std::string& word : exec.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    if (::chdir(workspace_.project().c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(99);
  }
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  return Ran{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

bool VictimWorld::RollBack() {
  Must(log_->CloseStep());
  const auto rolled_back = log_->Rollback(1);
  if (rolled_back.ok()) return true;
  if (rolled_back.error().code() == Code::kConflict) return false;
  // Nothing was recorded: then there is nothing to take back.
  if (rolled_back.error().code() != Code::kNotFound) Must(rolled_back);
  return true;
}

bool VictimWorld::RunAndRollBack(std::string_view victim, std::string_view target, int tries) {
  Must(log_->OpenStep({.id = StepId{1}}));
  world_->Run(Exec(victim, target, tries));
  commands_.back()->Wait();
  return RollBack();
}

bool VictimWorld::RunOverTwoSteps(std::string_view victim, int files) {
  for (int i = 0; i < files; ++i) workspace_.WriteFile(fmt::format("files/{}", i), "old");
  Must(log_->OpenStep({.id = StepId{1}}));
  control::Exec exec = Exec(victim, "PROJECT/files", files);
  exec.takes_input = true;
  const StepId command = world_->Begin(exec);
  world_->WaitForOutput(command, "ready");
  Must(log_->CloseStep(supervisor_->LiveWriters(0)));
  Must(log_->OpenStep({.id = StepId{2}}));
  world_->Send(control::Input{.id = command, .data = "\n"});
  world_->Finish(command);
  commands_.back()->Wait();
  return RollBack();
}

}  // namespace sandglass::test

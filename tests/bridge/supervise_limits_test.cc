// What a supervised world must not be able to do, and what must not stop it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "bridge/supervise/supervisor.h"
#include "tests/bridge/test_world.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "undo/safeguard.h"
#include "undo/undo_log.h"

namespace sandglass::test {
namespace {

using namespace std::chrono_literals;

class SupervisedWorld : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoWorld(); !why.empty()) GTEST_SKIP() << why;
    for (int i = 0; i < 8; ++i) space_.WriteFile("d/f" + std::to_string(i), "old");
    space_.WriteFile("victim", "old");
  }
  void Open(undo::UndoOptions options = {}) {
    log_ =
        Must(undo::UndoLog::Open({.project = space_.project(), .store = space_.store()}, options));
    supervisor_ = Must(
        bridge::Supervisor::Create({{space_.project(), &log_->interceptor()}}, max_parked_calls_));
  }
  std::unique_ptr<RunningWorld> Start(const std::string& command, WorldOptions options = {}) {
    options.uid = geteuid();
    return std::make_unique<RunningWorld>(*supervisor_, "OUT=" + space_.root() + "; " + command,
                                          space_.project(), options);
  }
  CommandResult Run(const std::string& command, WorldOptions options = {}) {
    return Start(command, options)->Finish();
  }
  template <class Condition>
  static bool Eventually(const Condition& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  TempWorkspace space_;
  size_t max_parked_calls_ = bridge::kMaxParkedCalls;
  std::unique_ptr<undo::UndoLog> log_;
  std::unique_ptr<bridge::Supervisor> supervisor_;
};

TEST_F(SupervisedWorld, AHeldOperationKeepsNobodyElseWaiting) {
  std::atomic<uint64_t> question{0};
  undo::WaitingSafeguard safeguard(
      30s, [&](const undo::SafeguardQuestion& asked) { question = asked.id; });
  undo::UndoOptions options;
  options.safeguards.delete_count = 1;
  options.safeguard_handler = &safeguard;
  Open(options);
  Must(log_->OpenStep({.label = "held"}));
  // More removals at once than there are workers; all of them wait for the one answer.
  auto world = Start(
      "for i in 0 1 2 3 4 5; do rm d/f$i & done; sleep 0.3; for i in 1 2 3; do echo $i > "
      "new$i; done; wait");
  ASSERT_TRUE(Eventually([&] { return question != 0; }));
  EXPECT_TRUE(Eventually([&] { return space_.Exists("new3"); }));
  EXPECT_TRUE(space_.Exists("d/f5"));
  EXPECT_TRUE(safeguard.Answer(question, undo::Decision::kAllow));
  EXPECT_EQ(world->Finish().exit_code, 0);
  EXPECT_FALSE(space_.Exists("d/f5"));
}

// Its calls before had made it the only one that calls, so far.
TEST_F(SupervisedWorld, AHeldOperationOfTheOnlyCallerKeepsNobodyElseWaiting) {
  std::atomic<uint64_t> question{0};
  undo::WaitingSafeguard safeguard(
      30s, [&](const undo::SafeguardQuestion& asked) { question = asked.id; });
  undo::UndoOptions options;
  options.safeguards.delete_count = 1;
  options.safeguard_handler = &safeguard;
  Open(options);
  Must(log_->OpenStep({.label = "held"}));
  auto world = Start(
      "python3 -c '\nimport os\nfor i in range(50): os.mkdir(\"d/m%d\" % i)\n"
      "os.unlink(\"d/f0\")\nos.unlink(\"d/f1\")\n' & "
      "while [ ! -e d/m49 ]; do sleep 0.05; done; sleep 0.3; echo 1 > new1; echo 2 > new2; wait "
      "$!");
  ASSERT_TRUE(Eventually([&] { return question != 0; }));
  EXPECT_TRUE(Eventually([&] { return space_.Exists("new2"); }));
  EXPECT_TRUE(space_.Exists("d/f1"));
  EXPECT_TRUE(safeguard.Answer(question, undo::Decision::kAllow));
  EXPECT_EQ(world->Finish().exit_code, 0);
  EXPECT_FALSE(space_.Exists("d/f1"));
}

// Their calls come and go in every order; no thread is made and left behind for it.
TEST_F(SupervisedWorld, ManyCallersNeedNoMoreThreadsThanCanBeAtWork) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  Open();
  Must(log_->OpenStep({.label = "many"}));
  const auto before = mappings();
  auto world = Start(
      "for w in 1 2 3 4 5 6 7 8; do python3 -c '\nimport os, sys\nname = \"d/m\" + sys.argv[1]\n"
      "for i in range(200):\n  os.mkdir(name)\n  os.rmdir(name)\n' $w & done; wait; touch done; "
      "while [ ! -e seen ]; do sleep 0.05; done");
  ASSERT_TRUE(Eventually([&] { return space_.Exists("done"); }));
  constexpr int kMostWorkers = 64, kMappingsOfAThread = 4;
  EXPECT_LT(mappings() - before, kMostWorkers * kMappingsOfAThread);
  space_.WriteFile("seen", "");
  EXPECT_EQ(world->Finish().exit_code, 0);
}

// A call that made somebody look may be gone by then, and whoever looks has other things to do.
TEST_F(SupervisedWorld, ServingDoesNotWaitForACall) {
  Open();
  Must(log_->OpenStep({.label = "later"}));
  auto world = Start("while [ ! -e go ]; do sleep 0.05; done; echo 1 > new1",
                     {.serving = bridge::Serving::kOnceCalled});
  EXPECT_TRUE(world->command().Serve().ok());
  EXPECT_GE(world->command().unserved(), 0);
  space_.WriteFile("go", "");
  pollfd called{world->command().unserved(), POLLIN, 0};
  EXPECT_EQ(::poll(&called, 1, 10'000), 1);
  EXPECT_TRUE(world->command().Serve().ok());
  EXPECT_LT(world->command().unserved(), 0);
  EXPECT_EQ(world->Finish().exit_code, 0);
  EXPECT_TRUE(space_.Exists("new1"));
}

// A safeguard that lets nothing else happen while it asks, as that of a session does.
class SupervisedHold : public SupervisedWorld {
 protected:
  struct Handler : undo::SafeguardHandler {
    explicit Handler(SupervisedHold& test) : test_(test) {}
    undo::Decision Decide(const undo::SafeguardQuestion& question) override {
      test_.supervisor_->BeginHold();
      const undo::Decision decision = test_.asking_.Decide(question);
      test_.supervisor_->EndHold();
      return decision;
    }
    SupervisedHold& test_;
  };
  // One removes something and is held; then so many threads make a folder each, and say what became of it.
  void StartHeldWithCallers(int callers) {
    undo::UndoOptions options;
    options.safeguards.delete_count = 1;
    options.safeguard_handler = &handler_;
    Open(options);
    Must(log_->OpenStep({.label = "held"}));
    world_ = Start(
        "python3 -c '\n"
        "import collections, errno, os, sys, threading, time\n"
        "said = collections.Counter()\n"
        "def make(i):\n"
        "  try:\n    os.mkdir(\"m%d\" % i)\n    said[\"made\"] += 1\n"
        "  except OSError as error:\n    said[errno.errorcode[error.errno]] += 1\n"
        "threading.stack_size(1 << 16)\n"
        "first = threading.Thread(target=os.unlink, args=(\"d/f0\",))\n"
        "first.start()\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
        "all = [threading.Thread(target=make, args=(i,)) for i in range(int(sys.argv[2]))]\n"
        "for one in all: one.start()\n"
        "for one in all + [first]: one.join()\n"
        "print(sorted(said.items()))\n' $OUT/asked " +
        std::to_string(callers));
    ASSERT_TRUE(Eventually([&] { return question_ != 0; }));
    std::ofstream(space_.root() + "/asked") << "yes";
  }
  static size_t OwnThreads() {
    size_t threads = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      (void)entry;
      ++threads;
    }
    return threads;
  }
  std::vector<std::string> Made() const {
    std::vector<std::string> made;
    for (const auto& entry : std::filesystem::directory_iterator(space_.project())) {
      if (entry.path().filename().native()[0] == 'm') made.push_back(entry.path().filename());
    }
    return made;
  }

  std::atomic<uint64_t> question_{0};
  undo::WaitingSafeguard asking_{
      60s, [this](const undo::SafeguardQuestion& asked) { question_ = asked.id; }};
  Handler handler_{*this};
  std::unique_ptr<RunningWorld> world_;
};

TEST_F(SupervisedHold, SG_07_DOS_02_BeyondTheMostThatMayBeParkedCallsFailWithENOSPC) {
  max_parked_calls_ = 20;
  StartHeldWithCallers(200);
  EXPECT_TRUE(Eventually([&] { return supervisor_->parked_calls() == 20; }));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(supervisor_->parked_calls(), 20u);
  EXPECT_EQ(Made(), std::vector<std::string>());
  EXPECT_TRUE(asking_.Answer(question_, undo::Decision::kAllow));
  const CommandResult result = world_->Finish();
  EXPECT_EQ(result.output, "[('ENOSPC', 180), ('made', 20)]\n");
  EXPECT_EQ(Made().size(), 20u);
  EXPECT_EQ(supervisor_->parked_calls(), 0u);
  EXPECT_FALSE(space_.Exists("d/f0"));
}

TEST_F(SupervisedHold, ParkedCallsTakeNoThreadsAndAllHappenAfterwards) {
  EXPECT_EQ(bridge::kMaxParkedCalls, 10'000u);
  StartHeldWithCallers(300);
  EXPECT_TRUE(Eventually([&] { return supervisor_->parked_calls() == 300; }));
  EXPECT_LT(OwnThreads(), 12u);
  EXPECT_EQ(Made(), std::vector<std::string>());
  EXPECT_TRUE(asking_.Answer(question_, undo::Decision::kAllow));
  EXPECT_EQ(world_->Finish().output, "[('made', 300)]\n");
  EXPECT_EQ(supervisor_->parked_calls(), 0u);
}

TEST_F(SupervisedHold, WhatIsParkedWhenItsCommandEndsDoesNotHappen) {
  StartHeldWithCallers(50);
  EXPECT_TRUE(Eventually([&] { return supervisor_->parked_calls() == 50; }));
  ::kill(world_->pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return supervisor_->parked_calls() == 0; }));
  EXPECT_TRUE(asking_.Answer(question_, undo::Decision::kDeny));
  world_->Finish();
  EXPECT_EQ(Made(), std::vector<std::string>());
  EXPECT_TRUE(space_.Exists("d/f0"));
}

TEST_F(SupervisedWorld, AHeldCallerCanBeKilledAndItsOperationDoesNotHappen) {
  std::atomic<uint64_t> question{0};
  undo::WaitingSafeguard safeguard(
      30s, [&](const undo::SafeguardQuestion& asked) { question = asked.id; });
  undo::UndoOptions options;
  options.safeguards.delete_count = 1;
  options.safeguard_handler = &safeguard;
  Open(options);
  Must(log_->OpenStep({.label = "killed"}));
  auto world = Start("rm d/f0; rm d/f1");
  ASSERT_TRUE(Eventually([&] { return question != 0; }));
  kill(world->pid(), SIGKILL);
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(safeguard.Answer(question, undo::Decision::kAllow));
  world->Finish();
  EXPECT_TRUE(space_.Exists("d/f1"));
}

TEST_F(SupervisedWorld, AWriterThatOutlivesTheStepIsKnown) {
  Open();
  Must(log_->OpenStep({.label = "server"}));
  auto world = Start(
      "exec 5> log; echo 1 >&5; echo x > closed; while [ ! -e $OUT/stop ]; do sleep 0.05; done; "
      "echo 2 >&5");
  ASSERT_TRUE(
      Eventually([&] { return space_.Exists("closed") && space_.ReadFile("closed") == "x\n"; }));
  std::this_thread::sleep_for(100ms);
  const auto writers = supervisor_->LiveWriters(0);
  ASSERT_EQ(writers.size(), 1u);
  struct stat seen;
  ASSERT_EQ(fstat(writers[0].fd, &seen), 0);
  EXPECT_EQ(seen.st_ino, space_.Stat("log").st_ino);
  Must(log_->CloseStep(writers));
  Must(log_->OpenStep({.label = "later"}));
  RunNatively("touch ../stop", space_.project());
  EXPECT_EQ(world->Finish().exit_code, 0);
  EXPECT_TRUE(supervisor_->LiveWriters(0).empty());
  Must(log_->CloseStep());
  EXPECT_EQ(space_.ReadFile("log"), "1\n2\n");
  Must(log_->Rollback(1));
  EXPECT_EQ(space_.ReadFile("log"), "1\n");
}

// A writer that nobody remembers would look like a person who edits.
TEST_F(SupervisedWorld, FilesBeyondTheDescriptorsOfTheBridgeAreRefusedAndNotForgotten) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 400, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Open();
  Must(log_->OpenStep({.label = "many"}));
  const CommandResult result =
      Run("ulimit -n 390; python3 -c 'import errno\n"
          "held = []\n"
          "try:\n"
          "  for i in range(300): held.append(open(f\"n{i}\", \"w\"))\n"
          "except OSError as e: print(len(held), e.errno == errno.ENFILE)\n"
          "del held\n"
          "for i in range(300): open(f\"m{i}\", \"w\").close()\n"
          "print(\"done\")'");
  EXPECT_EQ(result.output, "200 True\ndone\n");
  Must(log_->CloseStep());
  EXPECT_TRUE(space_.Exists("m299"));
  EXPECT_FALSE(space_.Exists("n200"));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// What is remembered of tasks and folders would take more than there are; most of it is not needed.
TEST_F(SupervisedWorld, ManyTasksInManyFoldersDoNotUseUpTheDescriptorsOfTheBridge) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 400, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Open();
  Must(log_->OpenStep({.label = "many"}));
  const CommandResult result = Run(R"(python3 -c '
import os
told, tell = os.pipe()
wait, go = os.pipe()
for i in range(150):
  os.mkdir("t%d" % i)
  if os.fork() == 0:
    os.close(go)
    os.chdir("t%d" % i)
    try: os.open("n", os.O_CREAT | os.O_WRONLY); os.write(tell, b"y")
    except OSError as e: os.write(tell, b"n")
    os.read(wait, 1)
    os._exit(0)
print(sum(os.read(told, 1) == b"y" for i in range(150)))')");
  EXPECT_EQ(result.output, "150\n");
  Must(log_->CloseStep());
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// The hand-over of a descriptor moves a task for a moment.
TEST_F(SupervisedWorld, ATaskMayRunWhereItMightBefore) {
  Open();
  Must(log_->OpenStep({.label = "affinity"}));
  const CommandResult result =
      Run("python3 -c 'import os\n"
          "before = os.sched_getaffinity(0)\n"
          "for i in range(50): open(\"n\", \"w\").close()\n"
          "print(os.sched_getaffinity(0) == before)\n"
          "os.sched_setaffinity(0, {min(before)})\n"
          "for i in range(50): open(\"n\", \"w\").close()\n"
          "print(os.sched_getaffinity(0) == {min(before)})'");
  EXPECT_EQ(result.output, "True\nTrue\n");
  Must(log_->CloseStep());
}

// Numbers of tasks come again, and what is remembered of the one before (here its umask) must not count for the next.
TEST_F(SupervisedWorld, ATaskWithTheNumberOfAnEarlierOneIsNotTakenForIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Fd last_pid(::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC));
  Open();
  const mode_t before = ::umask(022);
  pid_t earlier = 0;
  bool again = false;
  for (int attempt = 0; attempt < 100 && !again; ++attempt) {
    const mode_t mask = attempt % 2 == 0 ? 022 : 077;
    // The command is the second process from now on, if nobody else makes one; on a busy machine it takes some attempts.
    const std::string wanted = std::to_string(earlier - 2);
    if (earlier > 2) (void)::pwrite(last_pid.get(), wanted.data(), wanted.size(), 0);
    ::umask(mask);
    auto world = Start("rm -rf new*; > new1; > $PWD/new2; mkdir new3");
    again = world->pid() == earlier;
    earlier = world->pid();
    EXPECT_EQ(world->Finish().exit_code, 0);
    for (const char* name : {"new1", "new2"})
      EXPECT_EQ(space_.Stat(name).st_mode & 07777, 0666 & ~mask) << name << " " << again;
  }
  ::umask(before);
}

TEST_F(SupervisedWorld, TheProjectBoundElsewhereIsTheProject) {
  Open();
  const std::string other = space_.root() + "/other";
  ASSERT_EQ(mkdir(other.c_str(), 0755), 0);
  Must(log_->OpenStep({.label = "bound"}));
  const CommandResult result =
      Run("cd $OUT/other && echo 1 > n && mkdir m && mv n m/n && rm d/f0 && echo 2 > "
          "$OUT/other/d/f1 && cat m/n d/f1",
          {.also_at = other});
  EXPECT_EQ(result.output, "1\n2\n");
  EXPECT_EQ(space_.ReadFile("m/n"), "1\n");
  EXPECT_FALSE(space_.Exists("d/f0"));
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_EQ(space_.ReadFile("d/f1"), "old");
  EXPECT_FALSE(space_.Exists("m"));
}

TEST_F(SupervisedWorld, AProgramThatMayNotBeTracedStillWrites) {
  Open();
  const CommandResult result =
      Run("python3 -c '\nimport "
          "ctypes,os\nctypes.CDLL(None).prctl(4,0,0,0,0)\nd=os.open(\"d\",os.O_RDONLY)\n"
          "f=os.open(\"n\",os.O_WRONLY|os.O_CREAT,dir_fd=d)\nos.write(f,b\"1\")\nos.mkdir(\"m\")"
          "\nos.unlink(\"f0\",dir_fd=d)'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(space_.ReadFile("d/n"), "1");
  EXPECT_FALSE(space_.Exists("d/f0"));
}

TEST_F(SupervisedWorld, SocketsOfTheHostAreOutOfReach) {
  Open();
  // Through a descriptor: the path of the project may be too long for an address.
  const Fd folder(MustCall(open(space_.project().c_str(), O_PATH | O_CLOEXEC), "open"));
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/host.sock";
  const Fd server(MustCall(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_un address{.sun_family = AF_UNIX};
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(server.get(), 1), 0);
  const char* connect =
      "python3 -c '\nimport socket\nsocket.socket(socket.AF_UNIX).connect(\"host.sock\")' 2>&1 | "
      "tail -1";
  EXPECT_EQ(RunNatively(connect, space_.project()).output, "");
  EXPECT_EQ(Run(connect).output, "ConnectionRefusedError: [Errno 111] Connection refused\n");
}

// A second thread swaps the path while the call is judged. Whatever is written to the project goes through the supervisor, so
// the step's rollback brings everything back.
TEST_F(SupervisedWorld, SwappingThePathWritesNothingUnseen) {
  Open();
  const TreeSnapshot before = space_.Snapshot();
  Must(log_->OpenStep({.label = "race"}));
  const CommandResult result = Run(R"(python3 -c '
import ctypes,threading,os,errno
c=ctypes.CDLL(None,use_errno=True)
out=os.environ.get("OUT_DIR","/tmp").encode()
A=out+b"/race_x";B=b"victim"
buf=ctypes.create_string_buffer(256)
stop=False
def flip():
  while not stop:
    buf.value=A
    buf.value=B
t=threading.Thread(target=flip);t.start()
n=0
for i in range(2000):
  f=c.open(buf,os.O_WRONLY|os.O_CREAT,0o644)
  if f>=0:
    os.write(f,b"new");os.close(f);n+=1
  else: assert ctypes.get_errno() in (errno.EROFS,errno.ENOENT,errno.EACCES,errno.EISDIR),ctypes.get_errno()
stop=True;t.join()' && echo done; rm -f /tmp/race_x)");
  EXPECT_EQ(result.output, "done\n");
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_TREE_EQ(before, space_.Snapshot());
}

// Whether there is something to remove is judged before it is removed. What comes in between must not be removed unrecorded.
TEST_F(SupervisedWorld, WhatIsPutThereInTheLastMomentIsNotRemovedUnseen) {
  constexpr int kFiles = 1500;
  for (int i = 0; i < kFiles; ++i) space_.WriteFile("many/" + std::to_string(i), "old");
  Open();
  const TreeSnapshot before = space_.Snapshot();
  Must(log_->OpenStep({.label = "race"}));
  const CommandResult result = Run(R"(python3 -c '
import os,ctypes
c=ctypes.CDLL(None)
kids=[]
for n in range(3):
  p=os.fork()
  if p==0:
    while c.access(b"done",0):
      for i in range(50): c.unlink(b"x")
    os._exit(0)
  kids.append(p)
for i in range(1500): c.rename(b"many/%d"%i,b"x")
open("done","w")
for p in kids: os.waitpid(p,0)')");
  EXPECT_EQ(result.output, "");
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_TREE_EQ(before, space_.Snapshot());
}

// Each of them would be a way around the supervisor.
TEST_F(SupervisedWorld, WaysAroundAreRefused) {
  Open();
  const CommandResult result = Run(R"(python3 -c '
import ctypes,os,errno
c=ctypes.CDLL(None,use_errno=True)
def t(n,*a):
  r=c.syscall(n,*a);return errno.errorcode[ctypes.get_errno()] if r<0 else "ok"
print("unshare",t(272,0x10020000),"mount",t(165,b"d",b"d",0,4096,0),"remount",t(165,0,b".",0,4096|32,0),"umount",t(166,b".",2))
print("io_uring",t(425,8,0),"handle",t(304,-100,0,0),"clone3",t(435,0,0),"open_tree",t(428,-100,b".",1),"setattr",t(442,-100,b".",0,0,0))
try: open("/proc/1/root"+os.getcwd()+"/zz","w");print("wrote")
except OSError as e: print(errno.errorcode[e.errno])
' )");
  EXPECT_EQ(result.output,
            "unshare EPERM mount EPERM remount EPERM umount EPERM\n"
            "io_uring ENOSYS handle EPERM clone3 ENOSYS open_tree EPERM setattr EPERM\n"
            "wrote\n");
  // Through the supervisor: /proc/1/root is the world's own root, so that is the project.
  EXPECT_TRUE(space_.Exists("zz"));
}

// The number of the mount that a descriptor's file lies on.
constexpr char kMountOf[] = R"(
import os
def mount(f): return [l for l in open("/proc/self/fdinfo/%d"%f) if l.startswith("mnt_id")][0]
def same(f): print(mount(f)==mount(os.open(".",os.O_RDONLY)))
)";

// On the writable mount it could be opened anew for changes that nobody sees.
TEST_F(SupervisedWorld, DescriptorsForReadingLieOnTheReadOnlyMount) {
  Open();
  const CommandResult result = Run(std::string("python3 -c '") + kMountOf + R"(
same(os.open("made",os.O_RDONLY|os.O_CREAT,0o644))
same(os.open("victim",os.O_RDONLY|os.O_TRUNC))
same(os.open("victim",os.O_WRONLY))')");
  EXPECT_EQ(result.output, "True\nTrue\nFalse\n");
  EXPECT_EQ(space_.ReadFile("victim"), "");
}

// A datagram names its receiver in memory, where nobody sees it.
TEST_F(SupervisedWorld, ThereAreNoUnixDatagrams) {
  Open();
  const CommandResult result = Run(R"(python3 -c '
import socket
for make in (socket.socket,socket.socketpair):
  for kind in (socket.SOCK_DGRAM,socket.SOCK_RAW,socket.SOCK_STREAM,socket.SOCK_SEQPACKET):
    try: make(socket.AF_UNIX,kind);print("ok")
    except OSError as e: print(e.errno)
socket.socket(socket.AF_INET,socket.SOCK_DGRAM)')");
  EXPECT_EQ(result.output, "13\n13\nok\nok\n13\n13\nok\nok\n");
}

TEST_F(SupervisedWorld, IoctlsThatNobodyListedAreRefused) {
  Open();
  const CommandResult result = Run(R"(python3 -c '
import fcntl,pty
m,s=pty.openpty()
for request in (0x5412,0x541c,0x5423,0xae01):
  try: fcntl.ioctl(s,request,b"x"*8);print("ok")
  except OSError as e: print(e.errno)')");
  EXPECT_EQ(result.output, "1\n1\n25\n25\n");
}

// Another user's folder: the interceptor could move with our rights what the caller may not touch.
TEST_F(SupervisedWorld, NothingIsRenamedOverWhatTheCallerMayNotRemove) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  Open();
  RunNatively(
      "mkdir sticky && chmod 1777 . sticky && echo theirs > sticky/kept && echo mine > mine && "
      "chown 1234 mine",
      space_.project());
  const CommandResult result =
      RunningWorld(*supervisor_,
                   "mv -f mine sticky/kept; mv -f mine d/f0; mv mine moved && cat moved",
                   space_.project(), {.uid = 1234})
          .Finish();
  EXPECT_EQ(result.output,
            "mv: cannot move 'mine' to 'sticky/kept': Operation not permitted\n"
            "mv: cannot move 'mine' to 'd/f0': Permission denied\nmine\n");
  EXPECT_EQ(space_.ReadFile("sticky/kept"), "theirs\n");
}

// Changes by path, and what became of each; $OUT/go says when.
constexpr char kChangesByPath[] = R"(
import errno, os, time
out = os.environ["OUT"]
def told(f, *args):
  try: f(*args); return "done"
  except OSError as e: return errno.errorcode[e.errno]
def wait():
  open(out + "/ready", "w").close()
  while not os.path.exists(out + "/go"): time.sleep(0.01)
def change(path):
  print(told(os.truncate, path, 0), told(os.chmod, path, 0o777), told(os.utime, path, (1, 1)),
        told(os.chown, path, os.getuid(), os.getgid()))
)";

// Our own mount shows all of the host's files, and lets us change them.
TEST_F(SupervisedWorld, AFolderThatSomebodyMovesOutOfTheProjectLeadsToNothingOfTheHost) {
  Open();
  Must(log_->OpenStep({.label = "moved"}));
  RunNatively("echo kept > ../precious && chmod 600 ../precious", space_.project());
  auto world = Start(std::string("export OUT; cd d && python3 -c '") + kChangesByPath + R"(
open("n", "w").close()
wait()
change("../precious")
change("x/../../precious")')");
  ASSERT_TRUE(Eventually([&] { return access((space_.root() + "/ready").c_str(), F_OK) == 0; }));
  RunNatively("mkdir d/x; mv d .. && touch ../go", space_.project());
  EXPECT_EQ(world->Finish().output, "EROFS EROFS EROFS EROFS\nEROFS EROFS EROFS EROFS\n");
  EXPECT_EQ(RunNatively("cat ../precious; stat -c %a ../precious", space_.project()).output,
            "kept\n600\n");
}

// What undo took away is in the store, to be brought back as it was.
TEST_F(SupervisedWorld, WhatUndoKeepsCannotBeChangedThroughADescriptorOfIt) {
  Open();
  Must(log_->OpenStep({.label = "made"}));
  auto world = Start(std::string("export OUT; python3 -c '") + kChangesByPath + R"(
made = os.open("n", os.O_CREAT | os.O_WRONLY, 0o600)
os.write(made, b"made")
only_path = "/proc/self/fd/%d" % os.open("/proc/self/fd/%d" % made, os.O_PATH)
os.close(made)
wait()
change(only_path)')");
  ASSERT_TRUE(Eventually([&] { return access((space_.root() + "/ready").c_str(), F_OK) == 0; }));
  EXPECT_TRUE(supervisor_->LiveWriters(0).empty());
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_FALSE(space_.Exists("n"));
  RunNatively("touch ../go", space_.project());
  EXPECT_EQ(world->Finish().output, "EROFS EROFS EROFS EROFS\n");
  Must(log_->Redo(1));
  EXPECT_EQ(space_.ReadFile("n"), "made");
  EXPECT_EQ(space_.Stat("n").st_mode & 0777, 0600u);
}

// A file that has no name any more is in the store, perhaps. With several projects on one mount its place does not tell whose it is.
TEST_F(SupervisedWorld, AFileWithoutANameIsStillItsProjectsAlsoIfThereAreSeveral) {
  const std::string other = space_.root() + "/other";
  ASSERT_EQ(mkdir(other.c_str(), 0755), 0);
  Open();
  auto other_log =
      Must(undo::UndoLog::Open({.project = other, .store = space_.root() + "/other-store"}));
  supervisor_ = Must(bridge::Supervisor::Create(
      {{other, &other_log->interceptor()}, {space_.project(), &log_->interceptor()}}));
  Must(log_->OpenStep({.label = "temporary"}));
  EXPECT_EQ(Run(R"(python3 -c '
import errno, os
def cut(name):
  f = os.open(name, os.O_CREAT | os.O_RDWR)
  os.write(f, b"text")
  os.unlink(name)
  try: os.ftruncate(f, 2); print(os.fstat(f).st_size)
  except OSError as e: print(errno.errorcode[e.errno])
cut("temporary")
cut("victim")')")
                .output,
            "2\nESTALE\n");
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_EQ(space_.ReadFile("victim"), "old");
}

// How the world has it decides, not how we have it.
TEST_F(SupervisedWorld, WhatIsMountedInTheProjectIsChangedInTheViewOfTheWorld) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  space_.MakeDir("mounted");
  ASSERT_EQ(mount("none", space_.Path("mounted").c_str(), "tmpfs", 0, "mode=755"), 0);
  space_.WriteFile("mounted/in/file", "theirs");
  Open();
  Must(log_->OpenStep({.label = "mounted"}));
  const CommandResult result = Run(std::string("export OUT; python3 -c '") + kChangesByPath + R"(
change("mounted/in/file")
os.chdir("mounted")
change("in/file")
change("../mounted")')");
  EXPECT_EQ(result.output,
            "EROFS EROFS EROFS EROFS\nEROFS EROFS EROFS EROFS\nEISDIR EROFS EROFS EROFS\n");
  EXPECT_EQ(space_.ReadFile("mounted/in/file"), "theirs");
  EXPECT_EQ(space_.Stat("mounted/in/file").st_mode & 0777, 0644u);
  EXPECT_EQ(umount2(space_.Path("mounted").c_str(), MNT_DETACH), 0);
}

// Of the 32-bit interface only opens are performed; the rest is refused or meets the read-only mount.
TEST_F(SupervisedWorld, ThirtyTwoBitCallsChangeNothingUnseen) {
  Open();
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string bin = std::string(self).substr(0, std::string(self).rfind('/'));
  const struct stat before = space_.Stat("victim");
  Must(log_->OpenStep({.label = "32 bits"}));
  EXPECT_EQ(Run(bin + "/victim_int80 5<>victim").output,
            "open 1\nunlink -30\n"
            "ftruncate -1 fchmod -1 fchown -1\n"
            "truncate -1 chmod -1 setxattr -1 utimes -1\n"
            "setflags -25 socketcall -38\n"
            "mount -1\nio_uring -38\n");
  EXPECT_EQ(space_.ReadFile("victim"), "old");
  EXPECT_EQ(space_.Stat("victim").st_mode, before.st_mode);
  EXPECT_TRUE(space_.Exists("new"));
  Must(log_->CloseStep());
  Must(log_->Rollback(1));
  EXPECT_FALSE(space_.Exists("new"));
}

}  // namespace
}  // namespace sandglass::test

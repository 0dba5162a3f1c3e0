// `sandglass run --stage`: nothing reaches the project while the command runs; what is applied is one step.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/json.h"
#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kMuch[] =
    "echo more >>keep.txt; chmod 600 keep.txt; rm -r src; mkdir -p new/sub; echo x >new/sub/f; "
    "ln new/sub/f new/second; ln -s sub/f new/link; mkfifo new/fifo; chmod 500 new/sub; "
    "mkdir gone && rmdir gone; rm was_file && mkdir was_file && echo y >was_file/in; "
    "rm -r was_folder && echo z >was_folder; ln -sf elsewhere was_link; chmod 750 folder; "
    "rm -r emptied && mkdir emptied && echo e >emptied/only; touch -d '2001-01-01 00:00' touched";

class SandglassStage : public SandglassFixture {
 protected:
  void SetUp() override {
    SandglassFixture::SetUp();
    if (IsSkipped()) return;
    workspace_.WriteFile("was_file", "a file\n");
    workspace_.WriteFile("was_folder/in/deep", "deep\n");
    workspace_.WriteFile("folder/stays", "stays\n");
    workspace_.WriteFile("emptied/one", "1\n");
    workspace_.WriteFile("emptied/two", "2\n");
    workspace_.WriteFile("touched", "t\n");
    MustCall(::symlink("keep.txt", workspace_.Path("was_link").c_str()), "symlink");
  }
  Ended Stage(const Words& options, const std::string& script) {
    Words words = {"run", "--stage"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return Sandglass(words);
  }
  mode_t ModeOf(const std::string& rel) const {
    struct stat st;
    MustCall(::lstat(workspace_.Path(rel).c_str(), &st), rel);
    return st.st_mode & 07777;
  }
  // A command that waits in the middle, so that somebody else can do something meanwhile; both ends of that are in the world's home.
  static constexpr char kWait[] = "touch ~/begun; while test ! -e ~/go; do sleep 0.02; done; ";
  std::string InTheWorldsHome(const std::string& name) const {
    for (const auto& world : std::filesystem::directory_iterator(state_ + "/worlds"))
      return world.path() / "home" / name;
    return "";
  }
  Started BeginAndWait(const Words& options, const std::string& script) {
    Words words = {"run", "--stage"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    Started started = Begin(words);
    for (int i = 0; i < 1000; ++i, ::usleep(10'000)) {
      if (std::filesystem::exists(state_ + "/worlds") &&
          std::filesystem::exists(InTheWorldsHome("begun")))
        break;
    }
    return started;
  }
  Ended LetGo(const Started& started) {
    const Fd go(MustCall(
        ::open(InTheWorldsHome("go").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), "go"));
    return Finish(started);
  }
  std::vector<std::string> Stages() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(state_ + "/stages"))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(SandglassStage, AppliedItIsWhatAnOrdinaryRunWouldHaveDoneAndUndoTakesItBack) {
  const TreeSnapshot before = workspace_.Snapshot();
  ASSERT_EQ(Shell(kMuch).exit_code, 0);
  const TreeSnapshot natively = workspace_.Snapshot();
  ASSERT_EQ(Sandglass({"undo"}).exit_code, 0);
  ASSERT_TRUE(TreesEqual(before, workspace_.Snapshot()));

  const Ended ran = Stage({"--apply"}, kMuch);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  CompareOptions any_time;
  any_time.mtime_tolerance_ns = INT64_MAX;
  EXPECT_TRUE(TreesEqual(natively, workspace_.Snapshot(), any_time));
  struct stat st;
  MustCall(::stat(workspace_.Path("touched").c_str(), &st), "stat");
  EXPECT_EQ(st.st_mtim.tv_sec, 978307200) << "times are taken over";
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_THAT(Stages(), IsEmpty());
}

TEST_F(SandglassStage, TheCommandSeesItsOwnChangesAndNobodyElseDoes) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Started child =
      BeginAndWait({"--discard"}, std::string("rm -r src; echo new >keep.txt; ") + kWait +
                                      "cat keep.txt; ls src 2>/dev/null; true");
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  const Ended ran = LetGo(child);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "new\n");
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot())) << "and it was discarded";
  EXPECT_THAT(Stages(), IsEmpty());
  EXPECT_THAT(Sandglass({"history"}).err, HasSubstr("empty"));
}

TEST_F(SandglassStage, TheDiffIsShown) {
  const Ended ran =
      Stage({"--discard", "--summary"}, "echo more >>keep.txt; rm -r src; echo a >.envrc");
  EXPECT_THAT(ran.err, HasSubstr("+more\n"));
  EXPECT_THAT(ran.err, HasSubstr("deleted   src/\n"));
  EXPECT_THAT(ran.err, HasSubstr(".envrc (2 B)  ! direnv runs it\n"));
  EXPECT_THAT(ran.err, HasSubstr("nothing was applied"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(SandglassStage, WhereNobodyCanBeAskedItIsRefusedBeforeItRuns) {
  const Ended refused = Stage({}, "touch made");
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_THAT(refused.err, HasSubstr("add --apply or --discard"));
  EXPECT_EQ(Stage({"--apply", "--discard"}, "true").exit_code, 125);
  EXPECT_EQ(Sandglass({"run", "--apply", "--", "touch", "made"}).exit_code, 125);
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(SandglassStage, HolesStayHoles) {
  EXPECT_EQ(Stage({"--apply"}, "truncate -s 64M sparse; echo end >>sparse").exit_code, 0);
  struct stat st;
  MustCall(::stat(workspace_.Path("sparse").c_str(), &st), "stat");
  EXPECT_EQ(st.st_size, (64 << 20) + 4);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(SandglassStage, AttributesAreTakenOver) {
  if (::setxattr(workspace_.Path("keep.txt").c_str(), "user.old", "1", 1, 0) != 0)
    GTEST_SKIP() << "this file system has no extended attributes";
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Stage({"--apply"},
                          "python3 -c \"import os; os.setxattr('keep.txt', 'user.new', b'2'); "
                          "os.removexattr('keep.txt', 'user.old')\"");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  char value[8];
  EXPECT_EQ(::getxattr(workspace_.Path("keep.txt").c_str(), "user.new", value, sizeof(value)), 1);
  EXPECT_LT(::getxattr(workspace_.Path("keep.txt").c_str(), "user.old", value, sizeof(value)), 0);
  char names[256];
  const ssize_t size = ::listxattr(workspace_.Path("keep.txt").c_str(), names, sizeof(names));
  EXPECT_THAT(std::string(names, static_cast<size_t>(size)), Not(HasSubstr("overlay")));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SandglassStage, ANameOfASharedFileIsChangedAloneAsTheCommandSawIt) {
  MustCall(::link(workspace_.Path("keep.txt").c_str(), workspace_.Path("twin").c_str()), "link");
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Stage({"--apply"}, "echo more >>keep.txt; cat twin");
  EXPECT_EQ(ran.out, "kept\n");
  EXPECT_EQ(workspace_.ReadFile("twin"), "kept\n");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\nmore\n");
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// While the command waits, a person edits, removes and creates what it changes too.
TEST_F(SandglassStage, FilesThatWereThereCanBeMovedAndLinked) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Stage({"--apply"},
                          "mv keep.txt kept.txt; chmod 700 touched; mv touched folder/moved; "
                          "ln was_file second; mv was_folder/in/deep up; rm -r was_folder; "
                          "mv emptied/one one; rm -r emptied; mkdir emptied; mv was_link link");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(workspace_.ReadFile("kept.txt"), "kept\n");
  EXPECT_EQ(workspace_.ReadFile("folder/moved"), "t\n");
  EXPECT_EQ(ModeOf("folder/moved"), 0700u);
  EXPECT_EQ(workspace_.ReadFile("second"), "a file\n");
  EXPECT_EQ(workspace_.ReadFile("up"), "deep\n");
  EXPECT_EQ(workspace_.ReadFile("one"), "1\n");
  for (const char* gone : {"keep.txt", "touched", "was_folder", "emptied/one", "was_link"})
    EXPECT_FALSE(workspace_.Exists(gone)) << gone;
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(SandglassStage, WhatSomebodyElseChangedMeanwhileIsLeftAloneAndTold) {
  const Started child = BeginAndWait(
      {"--apply"}, std::string(kWait) +
                       "echo c >>keep.txt; echo c >>was_file; rm -r emptied; echo c >both; "
                       "echo c >free; rm touched");
  workspace_.WriteFile("keep.txt", "a person's\n");
  workspace_.WriteFile("emptied/two", "a person's\n");
  workspace_.WriteFile("both", "a person's\n");
  const Ended ran = LetGo(child);
  EXPECT_EQ(ran.exit_code, 125) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("keep.txt: somebody else changed it meanwhile"));
  EXPECT_THAT(ran.err, HasSubstr("emptied: somebody else changed it meanwhile"));
  EXPECT_THAT(ran.err, HasSubstr("both: somebody else changed it meanwhile"));
  EXPECT_THAT(ran.err, HasSubstr("the command's version is kept in "));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  EXPECT_EQ(workspace_.ReadFile("emptied/two"), "a person's\n");
  EXPECT_EQ(workspace_.ReadFile("both"), "a person's\n");
  EXPECT_EQ(workspace_.ReadFile("free"), "c\n") << "the rest is applied";
  EXPECT_EQ(workspace_.ReadFile("was_file"), "a file\nc\n");
  EXPECT_FALSE(workspace_.Exists("touched"));
  ASSERT_EQ(Stages().size(), 1u);
  EXPECT_EQ(Must(ReadFileAt(AT_FDCWD,
                            (state_ + "/stages/" + Stages()[0] + "/upper/keep.txt").c_str(), 100)),
            "a person's\nc\n");
}

TEST_F(SandglassStage, WhatSomebodyElseRemovedMeanwhileDoesNotComeBack) {
  const Started child =
      BeginAndWait({"--apply"}, std::string("echo c >>keep.txt; echo c >>folder/stays; ") + kWait);
  MustCall(::unlink(workspace_.Path("keep.txt").c_str()), "unlink");
  std::filesystem::remove_all(workspace_.Path("folder"));
  const Ended ran = LetGo(child);
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("keep.txt: somebody else removed it meanwhile"));
  EXPECT_THAT(ran.err, HasSubstr("folder: somebody else removed it meanwhile"));
  EXPECT_FALSE(workspace_.Exists("keep.txt"));
  EXPECT_FALSE(workspace_.Exists("folder"));
}

TEST_F(SandglassStage, TheReportHasStagedAndApplied) {
  const Ended ran = Stage({"--apply", "--json"}, "touch made; exit 4");
  EXPECT_EQ(ran.exit_code, 4);
  const auto json = ParseJson(ran.err);
  ASSERT_TRUE(json.ok()) << ran.err;
  EXPECT_EQ(json->GetInt("step").value(), 1);
  EXPECT_EQ(json->Find("projects")->AsArray()->front().Find("counts")->GetInt("created").value(),
            1);
  EXPECT_EQ(json->Find("stage")->AsArray()->front().Find("staged")->AsArray()->size(), 1u);
}

// A terminal on which somebody types `keys` when asked.
class OnATerminal : public SandglassStage {
 protected:
  Ended Answer(const std::string& script, const std::vector<std::string>& keys) {
    int ours = -1;
    const pid_t child = MustCall(::forkpty(&ours, nullptr, nullptr, nullptr), "forkpty");
    if (child == 0) {
      ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
      ::setenv("HOME", home_.c_str(), 1);
      if (::chdir(workspace_.project().c_str()) == 0)
        ::execl(SANDGLASS_BINARY, "sandglass", "run", "--stage", "--", "sh", "-c", script.c_str(),
                nullptr);
      ::_exit(99);
    }
    const Fd terminal(ours);
    Ended ended;
    size_t next = 0, seen = 0;
    char buffer[4096];
    for (ssize_t got; (got = ::read(ours, buffer, sizeof(buffer))) > 0;) {
      ended.out.append(buffer, static_cast<size_t>(got));
      const size_t asked = ended.out.find("? ", seen);
      if (asked == std::string::npos || next == keys.size()) continue;
      seen = asked + 2;
      const std::string line = keys[next++] + "\n";
      MustCall(static_cast<int>(::write(ours, line.data(), line.size())), "type");
    }
    int status = 0;
    MustCall(::waitpid(child, &status, 0), "waitpid");
    ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
  }
};

constexpr char kThree[] = "rm -r src; echo more >>keep.txt; mkdir new; echo x >new/f";

TEST_F(OnATerminal, ApplyAndDiscard) {
  const TreeSnapshot before = workspace_.Snapshot();
  EXPECT_THAT(Answer(kThree, {"d"}).out, HasSubstr("+more"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Answer(kThree, {"what", "a"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("src"));
  EXPECT_TRUE(workspace_.Exists("new/f"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(OnATerminal, FileByFile) {
  const TreeSnapshot before = workspace_.Snapshot();
  // In order: keep.txt, new/, new/f, src/.
  const Ended ran = Answer(kThree, {"f", "d", "d", "a", "a"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(workspace_.ReadFile("new/f"), "x\n") << "its folder comes along";
  EXPECT_FALSE(workspace_.Exists("src"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// Killed at whatever moment of applying, the next start has either the whole step or nothing of it.
TEST_F(SandglassStage, KilledWhileItAppliesTheNextStartRecovers) {
  const TreeSnapshot before = workspace_.Snapshot();
  int recovered = 0;
  for (int delay = 0; delay < 20 && recovered == 0; ++delay) {
    const Started child = Begin({"run", "--stage", "--apply", "--", "sh", "-c",
                                 "for i in $(seq 2000); do echo $i >f$i; done; rm -r src"});
    WaitUntilExists("f1");
    ::usleep(static_cast<useconds_t>(delay) * 3'000);
    MustCall(::kill(child.pid, SIGKILL), "kill");
    Finish(child);
    const Ended next = Run({"true"});
    ASSERT_EQ(next.exit_code, 0) << next.err;
    if (next.err.find("taken back") != std::string::npos) ++recovered;
    if (workspace_.Exists("f1")) ASSERT_EQ(Sandglass({"undo"}).exit_code, 0);
    ASSERT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  }
  EXPECT_GT(recovered, 0);
  EXPECT_EQ(Stage({"--discard"}, "true").exit_code, 0);
  EXPECT_THAT(Stages(), IsEmpty()) << "what dead runs left is removed";
}

// 126 says that nothing ran. Here the store has become that of another folder meanwhile.
TEST_F(SandglassStage, WhatIsRefusedAfterTheCommandRanIsNoRefusalToRun) {
  const std::string ours = workspace_.root() + "/ours", other = workspace_.root() + "/other";
  const std::string shared = workspace_.root() + "/shared";
  for (const std::string& folder : {other, shared}) MustCall(::mkdir(folder.c_str(), 0700), folder);
  const Words elsewhere = {"run", "--project", other, "--store", other + "_store", "--", "true"};
  ASSERT_EQ(Sandglass(elsewhere).exit_code, 0);
  const Started started =
      Begin({"run", "--stage", "--apply", "--store", ours, "--rw", shared, "--", "sh", "-c",
             "echo x >new; touch $0/begun; while [ ! -e $0/go ]; do sleep 0.02; done", shared});
  for (int i = 0; i < 1000 && ::access((shared + "/begun").c_str(), F_OK) != 0; ++i)
    ::usleep(10'000);
  std::filesystem::copy_file(other + "_store/project", ours + "/project",
                             std::filesystem::copy_options::overwrite_existing);
  MustCall(::close(MustCall(::creat((shared + "/go").c_str(), 0600), "go")), "close");
  const Ended ended = Finish(started);
  EXPECT_THAT(ended.err, HasSubstr("belongs to another folder"));
  EXPECT_EQ(ended.exit_code, 125);
  EXPECT_FALSE(workspace_.Exists("new"));
}

}  // namespace
}  // namespace sandglass::test

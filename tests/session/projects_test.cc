// Which projects `sandglass run` works on, where their stores are, and what it reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/json.h"
#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class SandglassProjects : public SandglassFixture {
 protected:
  void SetUp() override {
    SandglassFixture::SetUp();
    if (IsSkipped()) return;
    other_ = workspace_.root() + "/other";
    MustCall(::mkdir(other_.c_str(), 0755), other_);
    WriteOther("there.txt", "there\n");
  }
  void WriteOther(const std::string& name, const std::string& content) {
    const Fd file(MustCall(
        ::open((other_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
        name));
    Must(WriteFully(file.get(), AsBytes(content)));
  }
  // Both projects, and what it is to do in them.
  Words Both(const std::string& script, const Words& more = {}) {
    Words words = {"run", "--summary", "-p", ".", "-p", other_};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return words;
  }
  bool ExistsInOther(const std::string& name) const {
    return std::filesystem::exists(other_ + "/" + name);
  }
  std::string other_;
};

TEST_F(SandglassProjects, EachHasItsOwnHistoryAndTheSummaryNamesItsUndo) {
  const TreeSnapshot here = workspace_.Snapshot();
  const TreeSnapshot there = Must(TreeSnapshot::Capture(other_));
  const Ended ran = Sandglass(
      Both("pwd; rm -r src; echo more >>" + other_ + "/there.txt; touch " + other_ + "/new"));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, workspace_.project() + "\n") << "it starts in the first";
  EXPECT_THAT(ran.err, HasSubstr("step 1 in " + workspace_.project() + ": "));
  EXPECT_THAT(ran.err, HasSubstr("deleted; `sandglass undo` takes it back"));
  EXPECT_THAT(ran.err,
              HasSubstr("step 1 in " + other_ + ": 1 created, 1 modified; `sandglass undo -p " +
                        other_ + "` takes it back"));
  EXPECT_EQ(Sandglass({"undo", "-p", other_}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(there, Must(TreeSnapshot::Capture(other_))));
  EXPECT_FALSE(workspace_.Exists("src"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(here, workspace_.Snapshot()));
}

TEST_F(SandglassProjects, OnlyThoseThatChangedAreInTheSummary) {
  const Ended ran = Sandglass(Both("touch " + other_ + "/new"));
  EXPECT_THAT(ran.err, Not(HasSubstr("in " + workspace_.project())));
  EXPECT_THAT(ran.err, HasSubstr("in " + other_));
}

TEST_F(SandglassProjects, AReadOnlyOneCanBeReadAndNotChanged) {
  const TreeSnapshot there = Must(TreeSnapshot::Capture(other_));
  const Ended ran =
      Sandglass({"run", "-p", ".", "-p", other_ + ":ro", "--", "sh", "-c",
                 "cat " + other_ + "/there.txt; touch made; touch " + other_ + "/no"});
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "there\n");
  EXPECT_THAT(ran.err, HasSubstr("Read-only file system"));
  EXPECT_TRUE(workspace_.Exists("made"));
  EXPECT_TRUE(TreesEqual(there, Must(TreeSnapshot::Capture(other_))));
  EXPECT_THAT(Sandglass({"history", "-p", other_}).err, HasSubstr("nothing has been recorded"));
}

TEST_F(SandglassProjects, ThoseThatOverlapAreRefused) {
  const Ended nested = Sandglass({"run", "-p", ".", "-p", "src", "--", "touch", "made"});
  EXPECT_EQ(nested.exit_code, 125);
  EXPECT_THAT(nested.err, HasSubstr("lies inside the project"));
  const Ended twice = Sandglass({"run", "-p", ".", "-p", "src/..:ro", "--", "touch", "made"});
  EXPECT_EQ(twice.exit_code, 125);
  EXPECT_THAT(twice.err, HasSubstr("is named twice"));
  Words nine = {"run"};
  for (int i = 0; i < 9; ++i) {
    const std::string path = workspace_.root() + "/p" + std::to_string(i);
    MustCall(::mkdir(path.c_str(), 0755), path);
    nine.insert(nine.end(), {"-p", path});
  }
  nine.insert(nine.end(), {"--", "true"});
  EXPECT_THAT(Sandglass(nine).err, HasSubstr("1 to 8 projects"));
  EXPECT_FALSE(workspace_.Exists("made"));
}

// Its changes would be in one history, and look like a person's to the other.
TEST_F(SandglassProjects, OneWithinOrAroundAnotherThatHasAHistoryIsRefused) {
  EXPECT_EQ(Shell("touch made").exit_code, 0);
  const Ended within =
      Sandglass({"run", "-p", workspace_.Path("src"), "--", "touch", "made-within"});
  EXPECT_EQ(within.exit_code, 126);
  EXPECT_THAT(within.err, HasSubstr("sandglass discard --project " + workspace_.project()));
  EXPECT_FALSE(workspace_.Exists("src/made-within"));

  const std::string inner = other_ + "/inner";
  MustCall(::mkdir(inner.c_str(), 0755), inner);
  EXPECT_EQ(Sandglass({"run", "-p", inner, "--", "touch", "made"}).exit_code, 0);
  const Ended around = Sandglass({"run", "-p", other_, "--", "touch", "made-around"});
  EXPECT_EQ(around.exit_code, 126);
  EXPECT_THAT(around.err, HasSubstr("sandglass discard --project " + inner));
  EXPECT_FALSE(ExistsInOther("made-around"));
}

TEST_F(SandglassProjects, AStoreWithinReachOfTheCommandIsRefused) {
  const Ended ran = Sandglass(Both("true", {"--undo-dir", other_ + "/undo"}));
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, HasSubstr("lies in the project"));
  EXPECT_FALSE(ExistsInOther("undo"));
}

TEST_F(SandglassProjects, TheUndoFolderHoldsAStoreForEach) {
  const std::string folder = workspace_.root() + "/undo stores";
  EXPECT_EQ(Sandglass(Both("true", {"--store", folder})).exit_code, 125);
  const Ended ran = Sandglass(Both("touch one; touch " + other_ + "/two", {"--undo-dir", folder}));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("`sandglass undo --undo-dir '" + folder + "'` takes"));
  EXPECT_NE(Sandglass({"undo"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"undo", "--undo-dir", folder}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("one"));
  EXPECT_TRUE(ExistsInOther("two"));
  EXPECT_EQ(Sandglass({"undo", "-p", other_, "--undo-dir", folder}).exit_code, 0);
  EXPECT_FALSE(ExistsInOther("two"));
}

// --- The report for programs

Json LastLine(const std::string& text) {
  EXPECT_THAT(text, EndsWith("\n"));
  const size_t start = text.rfind('\n', text.size() - 2);
  auto json = ParseJson(text.substr(start == std::string::npos ? 0 : start + 1));
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

TEST_F(SandglassProjects, TheReportIsTheLastLineOfTheErrorStreamAndOutputIsTheCommands) {
  const Ended ran =
      Sandglass({"run", "--json", "--", "sh", "-c",
                 "printf out; printf 'no line end' >&2; touch .envrc made; rm -r src; "
                 "exit 3"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.out, "out");
  EXPECT_THAT(ran.err, HasSubstr("no line end\n{"));
  const Json json = LastLine(ran.err);
  EXPECT_EQ(json.GetInt("step").value(), 1);
  EXPECT_EQ(json.GetInt("exit_code").value(), 3);
  EXPECT_EQ(json.GetString("ending").value(), "exited");
  EXPECT_TRUE(json.Find("signal")->is_null());
  const Json& project = json.Find("projects")->AsArray()->front();
  EXPECT_EQ(project.GetString("project").value(), workspace_.project());
  EXPECT_EQ(project.GetString("undo").value(), "sandglass undo");
  EXPECT_EQ(project.Find("counts")->GetInt("created").value(), 2);
  EXPECT_EQ(project.Find("counts")->GetInt("deleted").value(), 4);
  EXPECT_EQ(project.Find("changes")->AsArray()->size(), 6u);
  EXPECT_EQ(project.Find("flagged")->AsArray()->front().GetString("path").value(), ".envrc");
}

TEST_F(SandglassProjects, TheReportCanGoToAFileAndTellsSignalsAndFailures) {
  const std::string file = workspace_.root() + "/report";
  const Ended ran = Sandglass({"run", "--json=" + file, "--", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(ran.err, "");
  const auto killed = [&] { return LastLine(Must(ReadFileAt(AT_FDCWD, file.c_str(), 1 << 20))); };
  EXPECT_EQ(killed().GetInt("signal").value(), 9);
  EXPECT_EQ(killed().GetString("ending").value(), "signalled");
  const Ended refused = Sandglass({"run", "--json=" + file, "-p", "/", "--", "true"});
  EXPECT_EQ(refused.exit_code, 126);
  EXPECT_EQ(killed().Find("error")->GetString("code").value(), "denied");
  EXPECT_EQ(refused.out, "");
  const Ended nowhere = Sandglass({"run", "--json=/no/such/folder", "--", "touch", "made"});
  EXPECT_EQ(nowhere.exit_code, 125);
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(SandglassProjects, AnOptionOfTheCommandIsNotOurs) {
  EXPECT_EQ(Sandglass({"run", "echo", "--json"}).out, "--json\n");
  EXPECT_EQ(Sandglass({"run", "echo", "--json"}).err, "");
}

// --- What is no project

TEST_F(SandglassProjects, FoldersOfTheSystemAreRefusedUnlessThatIsMeant) {
  for (const char* folder : {"/etc", "/usr", "/proc", "/sys", "/dev", "/boot", "/bin", "/lib",
                             "/sbin", "/var", "/run", "/tmp", "/home"}) {
    const Ended ran = Sandglass({"run", "-p", folder, "--", "true"});
    EXPECT_EQ(ran.exit_code, 126) << folder;
    EXPECT_THAT(ran.err, HasSubstr("--allow-broad")) << folder;
  }
  EXPECT_EQ(Sandglass({"run", "-p", home_ + ":ro", "--", "true"}).exit_code, 126)
      << "it holds what commands must not see";
}

TEST_F(SandglassProjects, TheWholeMachineIsNoneEvenIfThatIsMeant) {
  for (const Words& words : {Words{"run", "-p", "/", "--", "true"},
                             {"run", "-p", "/", "--allow-broad", "--", "true"},
                             {"run", "-p", "/:ro", "--", "true"}}) {
    const Ended ran = Sandglass(words);
    EXPECT_EQ(ran.exit_code, 126);
    EXPECT_THAT(ran.err, HasSubstr("/ cannot be a project"));
    EXPECT_THAT(ran.err, Not(HasSubstr("--allow-broad")));
  }
}

// Each of its writes would fail.
TEST_F(SandglassProjects, OnAReadOnlyFileSystemOneCanOnlyBeRead) {
  const std::string script = "mount --bind " + other_ + " " + other_ +
                             " && mount -o remount,bind,ro " + other_ + " && cd " + other_ +
                             " && export SANDGLASS_HOME=" + state_ + " && ";
  const auto run = [&](const std::string& words) {
    const std::string out = workspace_.root() + "/out";
    const std::string unshare = ::geteuid() == 0 ? "unshare -m" : "unshare -rm";
    const std::string command =
        unshare + " sh -c '" + script + SANDGLASS_BINARY " " + words + "' >" + out + " 2>&1";
    const int status = std::system(command.c_str());
    return Ended{.exit_code = WEXITSTATUS(status),
                 .out = Must(ReadFileAt(AT_FDCWD, out.c_str(), 1 << 20))};
  };
  for (const char* words : {"run -- touch made", "run --stage --discard -- touch made"}) {
    const Ended refused = run(words);
    EXPECT_EQ(refused.exit_code, 126);
    EXPECT_THAT(refused.out,
                HasSubstr("is on a read-only file system: use -p " + other_ + ":ro\n"));
  }
  // An ordinary user's own mount needs a namespace in which that user is root, and there is no world of root for somebody who is none.
  if (::geteuid() == 0) EXPECT_EQ(run("run -p " + other_ + ":ro -- cat there.txt").out, "there\n");
}

TEST_F(SandglassProjects, TheProjectAboveIsFoundFromBelow) {
  EXPECT_EQ(Shell("touch made").exit_code, 0);
  start_ = workspace_.Path("src/deep");
  const Ended ran = Sandglass({"run", "--summary", "--", "sh", "-c", "pwd; touch here"});
  EXPECT_EQ(ran.out, workspace_.Path("src/deep") + "\n");
  EXPECT_THAT(ran.err,
              HasSubstr("step 2 in " + workspace_.project() + ": 1 created; `sandglass undo`"));
  EXPECT_TRUE(workspace_.Exists("src/deep/here"));
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("touch made"));
  EXPECT_EQ(Sandglass({"undo", "2"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("made"));
}

}  // namespace
}  // namespace sandglass::test

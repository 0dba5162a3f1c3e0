// The real binary from outside: steps are made with the library, then `sandglass` is run on them.
#include "cli/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // posix_openpt
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/option_table.h"
#include "tests/support/must.h"
#include "tests/support/project_ops.h"
#include "tests/support/temp_workspace.h"
#include "undo/undo_log.h"

namespace sandglass::cli {
namespace {

using test::Must;
using test::MustCall;
using test::TempWorkspace;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ProjectOps = ::sandglass::testing::ProjectOps;
using Words = std::vector<std::string>;

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

std::string Content(const Fd& file) {
  MustCall(::lseek(file.get(), 0, SEEK_SET), "rewind");
  const Bytes bytes = Must(ReadFully(file.get(), 16 << 20));
  return std::string(AsText(bytes));
}

// In the child: becomes `program`. Only what may be done between fork and exec.
[[noreturn]] void Become(const std::vector<char*>& argv) {
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

std::vector<char*> Argv(const Words& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

int WaitFor(pid_t child) {
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "wait for sandglass");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// `before_exec` runs in the child and may change its descriptors.
Ended Execute(const Words& words, const std::function<void()>& before_exec = [] {}) {
  const Fd in(MustCall(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null"));
  const Fd out(MustCall(::memfd_create("out", MFD_CLOEXEC), "memfd")),
      err(MustCall(::memfd_create("err", MFD_CLOEXEC), "memfd"));
  const auto argv = Argv(words);
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    ::dup2(in.get(), 0);
    ::dup2(out.get(), 1);
    ::dup2(err.get(), 2);
    before_exec();
    Become(argv);
  }
  Ended run{.exit_code = WaitFor(child)};
  run.out = Content(out);
  run.err = Content(err);
  return run;
}

Json ParseOutput(const Ended& run) {
  const auto json = ParseJson(run.out, 16 << 20);
  EXPECT_TRUE(json.ok()) << run.out << run.err;
  return json.ok() ? *json : Json();
}

const Json& At(const Json& json, std::string_view key) {
  const Json* found = json.Find(key);
  EXPECT_NE(found, nullptr) << key;
  static const Json kNull;
  return found != nullptr ? *found : kNull;
}

class SandglassProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    workspace_.WriteFile("src/main.cc", "int main() {}\n");
    workspace_.WriteFile("notes.txt", "first\nsecond\n");
  }

  // Does `body` in one step, with a log of its own.
  void InStep(const std::string& label, const std::function<void(ProjectOps&)>& body) {
    auto log = Must(undo::UndoLog::Open(Paths()));
    ProjectOps ops(*log, workspace_.project());
    Must(log->OpenStep({.label = label}));
    body(ops);
    Must(log->CloseStep());
  }
  void ChangeNotes() {
    InStep("sed -i notes.txt",
           [](ProjectOps& ops) { Must(ops.Overwrite("notes.txt", "first\nchanged\n")); });
  }
  void DeleteSources() {
    InStep("rm -r src", [](ProjectOps& ops) { Must(ops.RemoveTree("src")); });
  }

  undo::UndoPaths Paths() const {
    return {.project = workspace_.project(), .store = workspace_.store()};
  }

  Words Line(const Words& words) const {
    Words line = {SANDGLASS_BINARY};
    line.insert(line.end(), words.begin(), words.end());
    line.insert(line.end(), {"--project", workspace_.project(), "--store", workspace_.store()});
    return line;
  }
  Ended Sandglass(const Words& words) const { return Execute(Line(words)); }

  TempWorkspace workspace_;
};

TEST_F(SandglassProgram, HistoryListsStepsOldestFirst) {
  ChangeNotes();
  DeleteSources();
  const Ended text = Sandglass({"history"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              ::testing::ContainsRegex(
                  "1 .*command +1 modified +sed -i notes.txt\n +2 .*2 deleted +rm -r src\n"));

  const Json json = ParseOutput(Sandglass({"history", "--json"}));
  const Json::Items& entries = *At(json, "history").AsArray();
  ASSERT_EQ(entries.size(), 2u);
  const Json& step = At(entries[1], "step");
  EXPECT_EQ(step.GetInt("step_id").value(), 2);
  EXPECT_EQ(step.GetString("label").value(), "rm -r src");
  EXPECT_EQ(step.GetUint("deleted").value(), 2u);
}

TEST_F(SandglassProgram, HistoryShowsEditsThatNoStepMade) {
  ChangeNotes();
  {
    auto log = Must(undo::UndoLog::Open(Paths()));
    const std::string paths[] = {"notes.txt"};
    Must(log->NoteExternalModification(paths));
  }
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("edited by someone else: notes.txt\n"));
  const Json json = ParseOutput(Sandglass({"history", "--json"}));
  EXPECT_EQ(At(At(json, "history").AsArray()->at(1), "barrier").GetInt("after_step").value(), 1);
}

TEST_F(SandglassProgram, ShowNamesEachChange) {
  DeleteSources();
  const Ended text = Sandglass({"show", "1"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("step 1 (command): rm -r src\n"));
  EXPECT_THAT(text.out, HasSubstr("  deleted   src/main.cc (14 B)\n"));

  const Json manifest = ParseOutput(Sandglass({"show", "1", "--json"}));
  EXPECT_EQ(manifest.GetInt("step_id").value(), 1);
  EXPECT_FALSE(At(manifest, "records").AsArray()->empty());
}

TEST_F(SandglassProgram, AProjectInsideAnotherCanBeUsedOnceTheOtherIsDiscarded) {
  const std::string home = workspace_.root() + "/home", inner = workspace_.Path("src");
  MustCall(::setenv("SANDGLASS_HOME", home.c_str(), 1), "setenv");
  const auto sandglass = [](const Words& words) {
    Words line = {SANDGLASS_BINARY};
    line.insert(line.end(), words.begin(), words.end());
    return Execute(line);
  };
  const std::string store = Must(undo::StoreLocationFor(inner));
  Must(undo::UndoLog::Open({.project = inner, .store = store}));
  Must(undo::UndoLog::Open({.project = workspace_.project(), .store = ""}));

  const Ended refused = sandglass({"status", "--project", inner});
  EXPECT_NE(refused.exit_code, 0);
  const std::string advice = "discard --project " + workspace_.project();
  EXPECT_THAT(refused.err, HasSubstr(advice));
  EXPECT_EQ(sandglass({"history", "--project", inner}).exit_code, 0) << "reading is no use of it";
  EXPECT_EQ(sandglass({"discard", "--yes", "--project", workspace_.project()}).exit_code, 0);
  EXPECT_EQ(sandglass({"status", "--project", inner}).exit_code, 0);
  MustCall(::unsetenv("SANDGLASS_HOME"), "unsetenv");
}

TEST_F(SandglassProgram, AmbientStepsHaveNegativeNumbers) {
  {
    auto log = Must(undo::UndoLog::Open(Paths()));
    ProjectOps ops(*log, workspace_.project());
    Must(ops.WriteNew("late.log", "x"));
    Must(log->CloseStep());
  }
  const Ended shown = Sandglass({"show", "-1"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("step -1 (ambient)"));
}

TEST_F(SandglassProgram, DiffGoesUnchangedIntoAPipe) {
  InStep("tput", [](ProjectOps& ops) { Must(ops.Overwrite("notes.txt", "first\n\033[1mbold\n")); });
  const Ended run = Sandglass({"diff", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(" first\n-second\n+\033[1mbold\n"));
}

TEST_F(SandglassProgram, DiffWithoutAStepIsOfTheNewestThatChangedSomething) {
  EXPECT_EQ(Sandglass({"diff"}).exit_code, 1);
  ChangeNotes();
  InStep("true", [](ProjectOps&) {});
  const Ended run = Sandglass({"diff"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, Sandglass({"diff", "1"}).out);
  EXPECT_THAT(run.out, StartsWith("diff --git a/notes.txt b/notes.txt\n"));
  ASSERT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_THAT(Sandglass({"diff"}).err, HasSubstr("no step of the history has changed anything"));
}

TEST_F(SandglassProgram, AShortDiffCountsLinesAndSizes) {
  InStep("work", [](ProjectOps& ops) {
    Must(ops.Overwrite("notes.txt", "first\nchanged\n"));
    Must(ops.RemoveTree("src"));
    Must(ops.WriteNew("image", std::string("\0\1", 2)));
    Must(ops.WriteNew("empty file", ""));
  });
  const Ended run = Sandglass({"diff", "--stat"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(" notes.txt   |   2 +-\n"));
  EXPECT_THAT(run.out, HasSubstr(" src/main.cc |   1 -\n"));
  EXPECT_THAT(run.out, HasSubstr(" image       | Bin 0 -> 2 bytes\n"));
  EXPECT_THAT(run.out, HasSubstr(" empty file  |   0\n"));
  EXPECT_THAT(run.out, EndsWith("\n 5 paths changed, 1 insertion(+), 2 deletions(-)\n"));
}

TEST_F(SandglassProgram, UndoBringsTheTreeBackAndRedoDoesItAgain) {
  const auto original = workspace_.Snapshot();
  ChangeNotes();
  DeleteSources();
  const auto changed = workspace_.Snapshot();

  const Ended undone = Sandglass({"undo", "2"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_THAT(undone.out, StartsWith("steps 2, 1: undone\n"));
  EXPECT_THAT(undone.out, HasSubstr("created   src/main.cc"));
  EXPECT_TREE_EQ(original, workspace_.Snapshot());

  const Json redone = ParseOutput(Sandglass({"redo", "2", "--json"}));
  EXPECT_EQ(At(redone, "steps").AsArray()->size(), 2u);
  EXPECT_EQ(redone.GetBool("dry_run").value(), false);
  EXPECT_TREE_EQ(changed, workspace_.Snapshot());
}

TEST_F(SandglassProgram, UndoWithoutANumberTakesOneStepBack) {
  ChangeNotes();
  DeleteSources();
  EXPECT_THAT(Sandglass({"undo"}).out, StartsWith("step 2: undone\n"));
  EXPECT_TRUE(workspace_.Exists("src/main.cc"));
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nchanged\n");
}

TEST_F(SandglassProgram, ADryRunTouchesNothing) {
  ChangeNotes();
  const auto before = workspace_.Snapshot();
  const Ended run = Sandglass({"undo", "-n"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("step 1: would be undone\n  modified  notes.txt"));
  EXPECT_TREE_EQ(before, workspace_.Snapshot());

  ASSERT_EQ(Sandglass({"undo"}).exit_code, 0);
  const auto undone = workspace_.Snapshot();
  EXPECT_TRUE(ParseOutput(Sandglass({"redo", "--dry-run", "--json"})).GetBool("dry_run").value());
  EXPECT_TREE_EQ(undone, workspace_.Snapshot());
}

TEST_F(SandglassProgram, AConflictTouchesNothingAndHasItsOwnExitCode) {
  ChangeNotes();
  workspace_.WriteFile("notes.txt", "mine\n");
  const auto before = workspace_.Snapshot();

  const Ended text = Sandglass({"undo"});
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.out, IsEmpty());
  EXPECT_THAT(text.err, StartsWith("sandglass: step 1 cannot be taken back"));
  EXPECT_THAT(text.err, HasSubstr("notes.txt"));

  const Ended run = Sandglass({"undo", "--json"});
  EXPECT_EQ(run.exit_code, 3);
  const Json json = ParseOutput(run);
  const Json& error = At(json, "error");
  EXPECT_EQ(error.GetString("code").value(), "conflict");
  const Json::Items& conflicts = *At(error, "conflicts").AsArray();
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].GetString("path").value(), "notes.txt");
  EXPECT_EQ(conflicts[0].GetString("conflict").value(), "edited");

  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

TEST_F(SandglassProgram, ADryRunEndsAsTheRefusalWould) {
  ChangeNotes();
  workspace_.WriteFile("notes.txt", "mine\n");
  const Ended text = Sandglass({"undo", "--dry-run"});
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.out, HasSubstr("conflicts:\n  edited    notes.txt: has been changed since\n"));
  EXPECT_THAT(text.err, HasSubstr("without --force it would be refused\n"));
  const Ended json = Sandglass({"undo", "--dry-run", "--json"});
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_EQ(At(ParseOutput(json), "conflicts").AsArray()->size(), 1u);
  EXPECT_EQ(Sandglass({"restore", "-n", "1", "notes.txt"}).exit_code, 3);
  const Ended forced = Sandglass({"undo", "--dry-run", "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "mine\n");
}

TEST_F(SandglassProgram, ARefusalAndAReportNameAConflictInTheSameWords) {
  ChangeNotes();
  workspace_.WriteFile("notes.txt", "mine\n");
  const std::string line = "\n  edited    notes.txt: has been changed since\n";
  EXPECT_THAT(Sandglass({"undo"}).err, HasSubstr(line));
  EXPECT_THAT(Sandglass({"restore", "1", "notes.txt"}).err, HasSubstr(line));
  EXPECT_THAT(Sandglass({"undo", "--force"}).out, HasSubstr(line));
}

TEST_F(SandglassProgram, UndoOfAnIncompleteStepSaysWhatToDoNext) {
  undo::UndoOptions options;
  options.limits.max_step_copied_bytes = 1;
  options.on_oversize = undo::OversizePolicy::kUnprotected;
  {
    auto log = Must(undo::UndoLog::Open(Paths(), options));
    ProjectOps ops(*log, workspace_.project());
    Must(log->OpenStep({.label = "too much"}));
    Must(ops.WriteAt("notes.txt", 0, "F", undo::WriteVisibility::kAnnounced));
    Must(ops.WriteNew("new.txt", "new"));
    Must(log->CloseStep());
  }
  const Ended run = Sandglass({"undo"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("undo --force"));
  EXPECT_THAT(Sandglass({"show", "1"}).out, HasSubstr("only with --force"));
}

TEST_F(SandglassProgram, WhatForceReplacesCanBeBroughtBack) {
  ChangeNotes();
  workspace_.WriteFile("notes.txt", "mine\n");
  const Ended forced = Sandglass({"undo", "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_THAT(forced.out, HasSubstr("conflicts:\n  edited    notes.txt"));
  EXPECT_THAT(forced.out, HasSubstr("modified  notes.txt (5 B -> 13 B)\n"));
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nsecond\n");
  EXPECT_EQ(Sandglass({"redo"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "mine\n");
}

TEST_F(SandglassProgram, RestoreBringsSinglePathsBackAndIsAStep) {
  DeleteSources();
  ChangeNotes();
  const Ended run = Sandglass({"restore", "1", "src"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("step 3: made by this restore\n"));
  EXPECT_EQ(workspace_.ReadFile("src/main.cc"), "int main() {}\n");
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nchanged\n");
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("src"));
}

TEST_F(SandglassProgram, ARestoreOfWhatIsSoAlreadyMakesNoStep) {
  ChangeNotes();
  ASSERT_EQ(Sandglass({"restore", "1", "notes.txt"}).exit_code, 0);
  for (const Words& words : {Words{"restore", "1", "notes.txt"},
                             {"restore", "1", "src"},
                             {"restore", "-n", "1", "notes.txt"}}) {
    const Ended run = Sandglass(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, StartsWith("nothing to do"));
  }
  EXPECT_EQ(At(ParseOutput(Sandglass({"history", "--json"})), "history").AsArray()->size(), 2u);
  const Ended json = Sandglass({"restore", "1", "notes.txt", "--json"});
  EXPECT_TRUE(At(ParseOutput(json), "steps").AsArray()->empty());
}

TEST_F(SandglassProgram, ARestoreThatFailsNamesThePath) {
  ChangeNotes();
  for (const char* path : {"nowhere.txt", "/etc/passwd", "../out"}) {
    const Ended run = Sandglass({"restore", "1", path});
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(path));
  }
}

TEST_F(SandglassProgram, ADryRunOfARestoreSaysWhatWouldChangeAndTouchesNothing) {
  ChangeNotes();
  DeleteSources();
  const auto before = workspace_.Snapshot();
  const Ended run = Sandglass({"restore", "--dry-run", "1", "notes.txt", "src/main.cc"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("would be made"));
  EXPECT_THAT(run.out, HasSubstr("modified  notes.txt"));
  EXPECT_THAT(run.out, HasSubstr("created   src/main.cc"));
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
}

TEST_F(SandglassProgram, RestoreRefusesToGoOverAnEdit) {
  ChangeNotes();
  workspace_.WriteFile("notes.txt", "mine\n");
  EXPECT_EQ(Sandglass({"restore", "1", "notes.txt"}).exit_code, 3);
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "mine\n");
  EXPECT_EQ(Sandglass({"restore", "-f", "1", "notes.txt"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nsecond\n");
}

TEST_F(SandglassProgram, ReadersWorkWhileAnotherProcessOwnsTheStore) {
  ChangeNotes();
  const auto log = Must(undo::UndoLog::Open(Paths()));
  EXPECT_EQ(Sandglass({"history"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"show", "1"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"diff", "1"}).exit_code, 0);

  const Json status = ParseOutput(Sandglass({"status", "--json"}));
  EXPECT_TRUE(status.GetBool("in_use").value());
  EXPECT_EQ(status.GetUint("steps").value(), 1u);
  EXPECT_THAT(Sandglass({"status"}).out, HasSubstr("in use"));

  const Ended undo = Sandglass({"undo", "--json"});
  EXPECT_EQ(undo.exit_code, 1);
  EXPECT_EQ(At(ParseOutput(undo), "error").GetString("code").value(), "locked");
}

TEST_F(SandglassProgram, StatusSaysWhereTheStoreIsAndWhatItCanDo) {
  ChangeNotes();
  const Ended text = Sandglass({"status"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(workspace_.store()));
  EXPECT_THAT(text.out, HasSubstr("steps        1 (0 not recorded in full)\n"));
  const Json json = ParseOutput(Sandglass({"status", "--json"}));
  EXPECT_TRUE(At(json, "abilities").GetBool("leases").ok());
  EXPECT_FALSE(At(json, "recovery").GetBool("recovered").value());
}

TEST_F(SandglassProgram, NothingCreatesAStoreByLooking) {
  const Ended elsewhere = Execute({SANDGLASS_BINARY, "history", "-p", workspace_.project(),
                                   "--store", workspace_.root() + "/none"});
  EXPECT_THAT(elsewhere.err, HasSubstr("nothing has been recorded for " + workspace_.project()));
  EXPECT_FALSE(std::filesystem::exists(workspace_.root() + "/none"));
  for (const Words& words : {Words{"history"},
                             {"show", "1"},
                             {"diff", "1"},
                             {"undo"},
                             {"redo"},
                             {"restore", "1", "x"},
                             {"discard", "-y"}}) {
    const Ended run = Sandglass(words);
    EXPECT_EQ(run.exit_code, 1) << words[0];
    EXPECT_THAT(run.err, StartsWith("sandglass: ")) << words[0];
  }
  EXPECT_THAT(Sandglass({"status"}).out, EndsWith("nothing has been recorded\n"));
  EXPECT_TRUE(std::filesystem::is_empty(workspace_.store()));
}

// --- Damage.

class SandglassOnDamage : public SandglassProgram {
 protected:
  std::string StepFile(int step, const std::string& name) const {
    return workspace_.store() + "/steps/" + std::to_string(step) + "/" + name;
  }
  void Spoil(int step) const { WriteOver(StepFile(step, "journal"), "rubbish"); }
  static void WriteOver(const std::string& path, std::string_view content) {
    const Fd file(MustCall(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), "open"));
    Must(WriteFully(file.get(), AsBytes(content)));
  }
};

TEST_F(SandglassOnDamage, HistoryInventsNoDate) {
  ChangeNotes();
  DeleteSources();
  Spoil(1);
  const Ended text = Sandglass({"history"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, ::testing::ContainsRegex(" 1  damaged .*cannot be read"));
  EXPECT_THAT(text.out, Not(HasSubstr("1970")));
  const Json json = ParseOutput(Sandglass({"history", "--json"}));
  const Json& step = At(At(json, "history").AsArray()->at(0), "step");
  EXPECT_TRUE(step.GetBool("damaged").value());
  EXPECT_TRUE(At(step, "opened_ns").is_null());
  EXPECT_TRUE(At(step, "closed_ns").is_null());
}

TEST_F(SandglassOnDamage, AConflictAboutAWholeStepNamesTheStep) {
  ChangeNotes();
  Spoil(1);
  const Ended plan = Sandglass({"undo", "-n"});
  EXPECT_EQ(plan.exit_code, 1);
  EXPECT_THAT(plan.out, HasSubstr("corrupt   step 1: cannot be read; force sets it aside\n"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 1);
  const Json json = ParseOutput(Sandglass({"undo", "-n", "--json"}));
  EXPECT_EQ(At(json, "conflicts").AsArray()->at(0).GetInt("step_id").value(), 1);
}

TEST_F(SandglassOnDamage, ADiffGoesPastADamagedStepWhereThatDidNothingToItsPaths) {
  ChangeNotes();
  DeleteSources();
  InStep("touch", [](ProjectOps& ops) { Must(ops.WriteNew("new.txt", "new\n")); });
  Spoil(2);
  const Ended older = Sandglass({"diff", "1"});
  EXPECT_EQ(older.exit_code, 0) << older.err;
  EXPECT_THAT(older.out, HasSubstr("-second\n+changed\n"));
  EXPECT_EQ(Sandglass({"diff", "3"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"diff", "2"}).exit_code, 1);
}

TEST_F(SandglassOnDamage, ADiffDoesNotTakeADamagedStepsWorkForAnothers) {
  ChangeNotes();
  InStep("again", [](ProjectOps& ops) { Must(ops.Overwrite("notes.txt", "other\n")); });
  Spoil(2);
  const Ended run = Sandglass({"diff", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, Not(HasSubstr("other")));
  EXPECT_THAT(run.err, HasSubstr("notes.txt: step 2 may have changed it"));
}

TEST_F(SandglassOnDamage, ADiffThatIsNotCompleteSaysWhereAndFails) {
  const std::string large(1'000'000, 'x');
  workspace_.WriteFile("large.txt", large);
  InStep("sed", [](ProjectOps& ops) {
    Must(ops.WriteAt("large.txt", 0, "J", undo::WriteVisibility::kUnseen));
    Must(ops.Overwrite("notes.txt", "first\nchanged\n"));
  });
  std::filesystem::remove_all(StepFile(1, "blobs"));
  const Ended run = Sandglass({"diff", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("large.txt: what was kept of it is missing from the store"));
}

// --- Places.

// The program with a state folder of its own, and stores where the library puts them.
class SandglassAtHome : public SandglassProgram {
 protected:
  void SetUp() override {
    SandglassProgram::SetUp();
    MustCall(::setenv("SANDGLASS_HOME", (workspace_.root() + "/home").c_str(), 1), "setenv");
    auto log = Must(undo::UndoLog::Open({.project = workspace_.project(), .store = ""}));
    ProjectOps ops(*log, workspace_.project());
    Must(log->OpenStep({.label = "sed -i notes.txt"}));
    Must(ops.Overwrite("notes.txt", "first\nchanged\n"));
    Must(log->CloseStep());
  }
  void TearDown() override { MustCall(::unsetenv("SANDGLASS_HOME"), "unsetenv"); }

  static Ended Run(const Words& words) {
    Words line = {SANDGLASS_BINARY};
    line.insert(line.end(), words.begin(), words.end());
    return Execute(line);
  }
};

TEST_F(SandglassAtHome, AMovedProjectIsToldWhereItsStoreIs) {
  const std::string store = Must(undo::StoreLocationFor(workspace_.project()));
  const std::string moved = workspace_.root() + "/moved";
  std::filesystem::rename(workspace_.project(), moved);
  for (const char* command : {"history", "undo"}) {
    const Ended run = Run({command, "-p", moved});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr("this folder was " + workspace_.project()));
    EXPECT_THAT(run.err, HasSubstr("--store " + store));
  }
  EXPECT_THAT(Run({"status", "-p", moved}).out, HasSubstr("--store " + store));
  const Ended undone = Run({"undo", "-p", moved, "--store", store});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  std::filesystem::rename(moved, workspace_.project());
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nsecond\n");
}

TEST_F(SandglassAtHome, AFolderInsideAProjectIsToldWhichOne) {
  const Ended run = Run({"history", "-p", workspace_.Path("src")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("did you mean -p " + workspace_.project() + "?"));
}

TEST_F(SandglassAtHome, ARelativeStateFolderIsAnError) {
  MustCall(::setenv("SANDGLASS_HOME", "state", 1), "setenv");
  const Ended run = Run({"history", "-p", workspace_.project()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("SANDGLASS_HOME must be an absolute path, and is state"));
}

TEST_F(SandglassProgram, AnotherProjectsStoreIsRefusedAndThatIsNoConflict) {
  ChangeNotes();
  const TempWorkspace other;
  for (const char* command : {"history", "undo", "status"}) {
    const Ended run = Execute({SANDGLASS_BINARY, command, "-p", other.project(), "--store",
                               workspace_.store(), "--json"});
    EXPECT_EQ(run.exit_code, 1) << command;
    EXPECT_THAT(run.err, HasSubstr("belongs to another folder"));
    EXPECT_THAT(run.err, HasSubstr(workspace_.project()));
    EXPECT_EQ(At(ParseOutput(run), "error").GetString("code").value(), "foreign");
  }
}

TEST_F(SandglassProgram, AnOrdinaryFolderIsNoStore) {
  for (const char* command : {"history", "undo"}) {
    const Ended run = Execute(
        {SANDGLASS_BINARY, command, "-p", workspace_.Path("src"), "--store", workspace_.project()});
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, ::testing::AnyOf(HasSubstr("is not an undo store"),
                                          HasSubstr("must not contain each other")));
  }
  const TempWorkspace other;
  other.WriteFile("a.txt", "a");
  const Ended run = Execute(
      {SANDGLASS_BINARY, "history", "-p", workspace_.project(), "--store", other.project()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr(other.project() + " is not an undo store"));
}

TEST_F(SandglassProgram, AProjectMustBeAFolderThatCanBeRead) {
  const Ended file = Execute({SANDGLASS_BINARY, "history", "-p", workspace_.Path("notes.txt")});
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_THAT(file.err, HasSubstr("notes.txt is not a folder"));

  const Fd binary(MustCall(::open(SANDGLASS_BINARY, O_RDONLY | O_CLOEXEC), "open sandglass"));
  MustCall(::chmod(workspace_.root().c_str(), 0755), "chmod");
  MustCall(::chmod(workspace_.project().c_str(), 0), "chmod");
  const std::string program = "/proc/self/fd/" + std::to_string(binary.get());
  const Ended closed = Execute({program, "history", "-p", workspace_.project()}, [] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(126);
  });
  MustCall(::chmod(workspace_.project().c_str(), 0755), "chmod");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.err, HasSubstr("Permission denied"));
  EXPECT_THAT(closed.err, HasSubstr(workspace_.project()));
}

TEST_F(SandglassProgram, AnEmptyHistorySaysWhatCanBeRedone) {
  ChangeNotes();
  DeleteSources();
  ASSERT_EQ(Sandglass({"undo", "2"}).exit_code, 0);
  EXPECT_THAT(Sandglass({"history"}).err, HasSubstr("the history is empty; 2 steps can be redone"));
  EXPECT_EQ(ParseOutput(Sandglass({"history", "--json"})).GetUint("redo_steps").value(), 2u);
}

// What a killed program leaves behind.
TEST_F(SandglassProgram, AnInterruptedStepIsTakenBackAndThatIsSaid) {
  ChangeNotes();
  const auto before = workspace_.Snapshot();
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    auto log = Must(undo::UndoLog::Open(Paths()));
    ProjectOps ops(*log, workspace_.project());
    Must(log->OpenStep({.label = "killed"}));
    Must(ops.RemoveTree("src"));
    ::_exit(0);
  }
  ASSERT_EQ(WaitFor(child), 0);
  const Ended run = Sandglass({"status"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("recovery:\nthe interrupted step 2 has been taken back\n"));
  EXPECT_TREE_EQ(before, workspace_.Snapshot());
  EXPECT_THAT(Sandglass({"status"}).out, Not(HasSubstr("recovery")));
}

TEST_F(SandglassProgram, DiscardNeedsYesWhereNobodyCanBeAsked) {
  ChangeNotes();
  const Ended refused = Sandglass({"discard"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--yes"));
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("sed -i"));

  EXPECT_EQ(Sandglass({"discard", "--yes"}).exit_code, 0);
  EXPECT_THAT(Sandglass({"history"}).out, IsEmpty());
  EXPECT_EQ(workspace_.ReadFile("notes.txt"), "first\nchanged\n");
}

// The program on a terminal, with someone who answers.
class Terminal {
 public:
  explicit Terminal(const Words& words)
      : master_(MustCall(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "open a terminal")) {
    MustCall(::grantpt(master_.get()), "grantpt");
    MustCall(::unlockpt(master_.get()), "unlockpt");
    char name[64];
    MustCall(-::ptsname_r(master_.get(), name, sizeof name), "ptsname");
    const Fd slave(
        MustCall(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC), "open the terminal's other side"));
    const auto argv = Argv(words);
    child_ = MustCall(::fork(), "fork");
    if (child_ != 0) return;
    for (int fd = 0; fd <= 2; ++fd) ::dup2(slave.get(), fd);
    Become(argv);
  }

  // Everything until the program says `text`.
  std::string ReadUntil(std::string_view text) {
    std::string seen;
    char byte = 0;
    while (!seen.ends_with(text) && ::read(master_.get(), &byte, 1) == 1) seen += byte;
    return seen;
  }
  void Type(std::string_view text) { Must(WriteFully(master_.get(), AsBytes(text))); }
  int Wait() {
    while (!ReadUntil("\n").empty()) continue;
    return WaitFor(child_);
  }

 private:
  Fd master_;
  pid_t child_ = -1;
};

TEST_F(SandglassProgram, DiscardAsksOnATerminal) {
  ChangeNotes();
  Terminal no(Line({"discard"}));
  EXPECT_THAT(no.ReadUntil("[y/N] "),
              HasSubstr("Forget 1 recorded step of " + workspace_.project()));
  no.Type("what\n");
  no.ReadUntil("[y/N] ");
  no.Type("n\n");
  EXPECT_EQ(no.Wait(), 1);
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("sed -i"));

  Terminal yes(Line({"discard"}));
  yes.ReadUntil("[y/N] ");
  yes.Type("y\n");
  EXPECT_EQ(yes.Wait(), 0);
  EXPECT_THAT(Sandglass({"history"}).out, IsEmpty());
}

TEST_F(SandglassProgram, ADiffCannotSteerTheTerminal) {
  InStep("tput", [](ProjectOps& ops) { Must(ops.Overwrite("notes.txt", "\033[1mbold\n")); });
  Terminal terminal(Line({"diff", "1"}));
  EXPECT_THAT(terminal.ReadUntil("bold"), EndsWith("+\\x1b[1mbold"));
  EXPECT_EQ(terminal.Wait(), 0);
}

TEST_F(SandglassProgram, ADiffOnATerminalSaysWhichStepItTook) {
  ChangeNotes();
  Terminal chosen(Line({"diff"}));
  EXPECT_EQ(chosen.ReadUntil("\n"), "step 1: sed -i notes.txt\r\n");
  EXPECT_EQ(chosen.Wait(), 0);
  Terminal named(Line({"diff", "1"}));
  EXPECT_THAT(named.ReadUntil("\n"), StartsWith("diff --git"));
  EXPECT_EQ(named.Wait(), 0);
}

TEST_F(SandglassProgram, OddNamesAreEscapedForPeopleAndWholeInJson) {
  const std::string name = "a\n\033[2J\xff";
  InStep("touch", [&](ProjectOps& ops) { Must(ops.WriteNew(name, "")); });
  EXPECT_THAT(Sandglass({"show", "1"}).out, HasSubstr("created   a\\n\\x1b[2J\\xff (0 B)\n"));
  const Json json = ParseOutput(Sandglass({"undo", "--json"}));
  const Json& path = At(At(json, "changes").AsArray()->at(0), "path");
  EXPECT_EQ(BytesFromJson(path).value(), name);
}

TEST_F(SandglassProgram, ConfigShowsAndChecksWhatTheProjectSays) {
  const Words project = {"--project", workspace_.project()};
  const auto config = [&](Words words) {
    words.insert(words.begin(), {"/usr/bin/env", "SANDGLASS_HOME=" + workspace_.root() + "/home",
                                 SANDGLASS_BINARY, "config"});
    words.insert(words.end(), project.begin(), project.end());
    return Execute(words);
  };
  EXPECT_THAT(config({"validate"}).err, HasSubstr("there is no sandglass.toml"));
  workspace_.WriteFile("sandglass.toml", "[sandbox]\nmemory = \"1G\"\n");
  const Ended shown = config({"show"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("\nmemory = \"1G\" "));
  EXPECT_THAT(shown.out, HasSubstr("# project: at most so much memory"));
  EXPECT_THAT(shown.out, HasSubstr("# max_step_count = 100"));
  EXPECT_THAT(ParseOutput(config({"show", "--json"})).Find("files")->AsArray()->size(), 1u);
  EXPECT_THAT(config({"validate"}).out, EndsWith("sandglass.toml: ok\n"));
  workspace_.WriteFile("sandglass.toml", "[sandbox]\nmemry = 1\n[gitignore]\nenabled = true\n");
  const Ended wrong = config({"validate"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("line 2: [sandbox] has no key 'memry'; did you mean 'memory'?"));
  EXPECT_THAT(wrong.err, HasSubstr("line 4: gitignore.enabled may stand in the user's file only"));
  EXPECT_EQ(config({"validate", "--user"}).exit_code, 0);
  EXPECT_EQ(config({"other"}).exit_code, 2);
  EXPECT_THAT(config({"edit"}).err, HasSubstr("needs a terminal"));
}

TEST_F(SandglassProgram, WrongUsageExitsWith2) {
  for (const Words& words : {Words{},
                             {"frobnicate"},
                             {"undo", "zero"},
                             {"undo", "--frob"},
                             {"restore", "1"},
                             {"help", "frob"},
                             {"completion", "tcsh"},
                             {"show"}}) {
    Words line = {SANDGLASS_BINARY};
    line.insert(line.end(), words.begin(), words.end());
    const Ended run = Execute(line);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, StartsWith("sandglass: "));
    EXPECT_THAT(run.err, HasSubstr("sandglass help"));
  }
  const Ended json = Execute({SANDGLASS_BINARY, "undo", "zero", "--json"});
  EXPECT_EQ(At(ParseOutput(json), "error").GetString("code").value(), "invalid");
}

TEST_F(SandglassProgram, AProjectThatIsNotThereIsSaidSo) {
  const Ended run =
      Execute({SANDGLASS_BINARY, "history", "--project", workspace_.root() + "/nowhere"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("nowhere"));
}

TEST_F(SandglassProgram, TheCurrentFolderIsTheDefaultProject) {
  ChangeNotes();
  const std::string project = workspace_.project();
  const Ended run = Execute({SANDGLASS_BINARY, "history", "--store", workspace_.store()}, [&] {
    if (::chdir(project.c_str()) != 0) ::_exit(126);
  });
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("sed -i"));
}

TEST_F(SandglassProgram, HelpAndVersionAnswerToTheirCommonSpellings) {
  EXPECT_THAT(Execute({SANDGLASS_BINARY, "--help"}).out, StartsWith("usage: sandglass COMMAND"));
  EXPECT_THAT(Execute({SANDGLASS_BINARY, "undo", "-h"}).out,
              StartsWith("usage: sandglass undo [N]"));
  EXPECT_THAT(Execute({SANDGLASS_BINARY, "help", "undo"}).out,
              StartsWith("usage: sandglass undo [N]"));
  EXPECT_THAT(Execute({SANDGLASS_BINARY, "--version"}).out, StartsWith("sandglass "));
  EXPECT_TRUE(
      ParseOutput(Execute({SANDGLASS_BINARY, "version", "--json"})).GetUint("store_format").ok());
}

// Its number would go to a file of the store, and messages into it.
TEST_F(SandglassProgram, ClosedStreamsHarmNothing) {
  const auto original = workspace_.Snapshot();
  ChangeNotes();
  const Ended run = Execute(Line({"undo"}), [] {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  });
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TREE_EQ(original, workspace_.Snapshot());
  EXPECT_EQ(Sandglass({"redo"}).exit_code, 0);
}

TEST_F(SandglassProgram, OutputThatCannotBeWrittenIsAFailure) {
  ChangeNotes();
  const Ended run = Execute(Line({"history"}), [] { ::dup2(::open("/dev/full", O_WRONLY), 1); });
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("write the output"));
}

// --- Completion scripts, in the shells that are there.

bool HasShell(const std::string& shell) {
  return Execute({"/bin/sh", "-c", "command -v " + shell}).exit_code == 0;
}

Ended InShell(const std::string& shell, const std::string& script) {
  return Execute({"/usr/bin/env", shell, "-c", script});
}

std::string BashCompletes(const std::string& line) {
  return InShell("bash", "source <('" SANDGLASS_BINARY "' completion bash); COMP_WORDS=(" + line +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; "
                             "_sandglass; echo ${COMPREPLY[*]}")
      .out;
}

TEST(Completion, BashOffersCommandsOptionsAndChoices) {
  ASSERT_TRUE(HasShell("bash"));
  EXPECT_EQ(BashCompletes("sandglass re"), "redo restore\n");
  EXPECT_EQ(BashCompletes("sandglass undo --f"), "--force\n");
  EXPECT_EQ(BashCompletes("sandglass completion ''"), "bash zsh fish\n");
  EXPECT_EQ(BashCompletes("sandglass help hi"), "history\n");
  EXPECT_EQ(BashCompletes("sandglass undo --project /et"), "/etc\n");
  EXPECT_EQ(BashCompletes("sandglass help --m"), "\n");
}

TEST(Completion, BashKnowsOptionsBeforeTheCommandAndTheirValues) {
  ASSERT_TRUE(HasShell("bash"));
  EXPECT_EQ(BashCompletes("sandglass --l"), "--log-level\n");
  EXPECT_EQ(BashCompletes("sandglass --v"), "--version\n");
  EXPECT_EQ(BashCompletes("sandglass --log-level d"), "debug\n");
  EXPECT_EQ(BashCompletes("sandglass --log-level = ''"), "trace debug info warn error\n");
  EXPECT_EQ(BashCompletes("sandglass --log-level = in"), "info\n");
  for (const std::string level :
       {"--log-level debug", "--log-level = debug", "--log-level=debug"}) {
    EXPECT_EQ(BashCompletes("sandglass " + level + " re"), "redo restore\n") << level;
    EXPECT_EQ(BashCompletes("sandglass " + level + " undo --f"), "--force\n") << level;
  }
}

TEST(Completion, BashKnowsWhatValuesOptionsTake) {
  ASSERT_TRUE(HasShell("bash"));
  for (const std::string option : {"-C", "--directory", "--undo-dir", "--directory ="})
    EXPECT_EQ(BashCompletes("sandglass run " + option + " /et"), "/etc\n") << option;
  for (const std::string option : {"--ro", "--rw", "--json ="})
    EXPECT_EQ(BashCompletes("sandglass run " + option + " /etc/os-rel"), "/etc/os-release\n")
        << option;
  EXPECT_EQ(BashCompletes("sandglass run --memory ''"), "\n");
  EXPECT_THAT(BashCompletes("sandglass run --json --no"), HasSubstr("--no-undo-for"));
  EXPECT_THAT(BashCompletes("sandglass run -- mkdi"), HasSubstr("mkdir"));
  EXPECT_EQ(BashCompletes("sandglass run -- cat /etc/os-rel"), "/etc/os-release\n");
  EXPECT_EQ(BashCompletes("sandglass run -- cat --no"), "\n");
}

TEST(Completion, FishAndZshKnowTheLevelsOfTheLog) {
  for (const std::string shell : {"fish", "zsh"}) {
    const Ended script = Execute({SANDGLASS_BINARY, "completion", shell});
    EXPECT_THAT(script.out, HasSubstr("trace debug info warn error")) << shell;
  }
}

TEST(Completion, EveryScriptIsValidWhereItsShellIsInstalled) {
  for (const std::string_view shell : kShells) {
    const Ended script = Execute({SANDGLASS_BINARY, "completion", std::string(shell)});
    EXPECT_EQ(script.exit_code, 0);
    EXPECT_THAT(script.out, HasSubstr("restore"));
    if (!HasShell(std::string(shell))) continue;
    const Ended checked = Execute({"/bin/sh", "-c",
                                   "'" SANDGLASS_BINARY "' completion " + std::string(shell) +
                                       " | " + std::string(shell) + " -n"});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
  }
}

}  // namespace
}  // namespace sandglass::cli

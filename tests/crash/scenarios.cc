#include "tests/crash/scenarios.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/io.h"
#include "tests/crash/works.h"

namespace sandglass::crash {
namespace {

using undo::UndoOptions;

constexpr auto kUnseen = undo::WriteVisibility::kUnseen;

// Plays one after the other up to the first that fails.
Play InTurn(std::vector<Play> parts) {
  return [parts = std::move(parts)](Stage& stage) -> Status {
    for (const Play& part : parts) TRY(part(stage));
    return Ok();
  };
}
Play StepOf(int64_t id, Work work) {
  return [id, work = std::move(work)](Stage& stage) { return stage.Step(id, work); };
}
Play RollbackOf(uint32_t count) {
  return [count](Stage& stage) { return stage.Rollback(count); };
}
Play RedoOf(std::vector<int64_t> steps) {
  return [steps = std::move(steps)](Stage& stage) { return stage.Redo(steps); };
}
Play ThreeSteps() {
  return InTurn({StepOf(1, MixedWork), StepOf(2, SecondWork), StepOf(3, ThirdWork)});
}

// The analyzer loses track of a std::function that is moved as part of an aggregate.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDeleteLeaks)

// Each work three times: while it happens, while it is taken back, while it is redone.
void AddWorks(std::vector<Scenario>& all) {
  for (const WorkRow& row : AllWorks()) {
    const std::string name(row.name);
    const std::string about(row.about);
    all.push_back({.name = name, .about = about, .run = StepOf(1, row.work)});
    if (row.name == "empty") continue;
    all.push_back({.name = name + ".rollback",
                   .about = about + ": taken back",
                   .setup = StepOf(1, row.work),
                   .run = RollbackOf(1)});
    all.push_back({.name = name + ".redo",
                   .about = about + ": redone",
                   .setup = InTurn({StepOf(1, row.work), RollbackOf(1)}),
                   .run = RedoOf({1})});
  }
}

Status AmbientThenStep(Stage& stage) {
  stage.Say("ambient -1");
  TRY(stage.Do(SecondWork));
  TRY(stage.OpenStep(1));
  TRY(stage.SayState());  // the ambient step is closed; step 1 is open and has changed nothing
  TRY(stage.Do(
      [](ProjectOps& ops, const Means&) { return ops.WriteNew("after.txt", "in a step"); }));
  return stage.CloseStep();
}

Status MixedThenAbort(Stage& stage) {
  TRY(stage.OpenStep(1));
  TRY(stage.Do(MixedWork));
  return stage.AbortStep();
}

// A watcher tells of paths while the step is open. Nobody edited them, so that the project is what the step alone makes of it.
Status ToldWork(Stage& stage) {
  const auto told = [&](const std::string& path) {
    const std::vector<std::string> paths = {path};
    const Status noted = stage.log().NoteExternalModification(paths);
    return noted.ok() ? noted : stage.Refuse(noted.error());
  };
  TRY(stage.OpenStep(2));
  TRY(stage.Do([](ProjectOps& ops, const Means&) { return ops.Overwrite("README.md", "short"); }));
  TRY(told("data/table.csv"));
  TRY(stage.Do([](ProjectOps& ops, const Means&) { return ops.Unlink("src/main.cc"); }));
  TRY(told("misc/tool"));
  return stage.Do([](ProjectOps& ops, const Means&) { return ops.WriteNew("new.txt", "new"); });
}

Status ToldThenClose(Stage& stage) {
  TRY(ToldWork(stage));
  return stage.CloseStep();
}

Status ToldThenAbort(Stage& stage) {
  TRY(ToldWork(stage));
  return stage.AbortStep();
}

Status EarlierStep(Stage& stage) {
  return stage.Step(
      1, [](ProjectOps& ops, const Means&) { return ops.WriteNew("earlier.txt", "a step"); });
}

// The third deletion is refused, and with it the step.
Status DeniedDeletions(Stage& stage) {
  TRY(stage.OpenStep(1));
  TRY(stage.Do([](ProjectOps& ops, const Means&) { return ops.WriteNew("new.txt", "goes too"); }));
  Status last = Ok();
  for (const char* path : {"README.md", "data/large.bin", "src/main.cc", "misc/tool"}) {
    last = stage.ops().Unlink(path);
    if (!last.ok()) break;
  }
  if (last.ok()) return Error{Code::kInvalid, "the safeguard let four deletions pass"};
  if (last.error().code() != Code::kDenied) return stage.Refuse(last.error());
  return stage.log().open_step() ? stage.AbortStep() : stage.SayState();
}

// What does not fit is refused; the rest of the step stands.
Status OversizeRefused(Stage& stage) {
  TRY(stage.OpenStep(1));
  TRY(stage.Do([](ProjectOps& ops, const Means&) { return ops.Overwrite("README.md", "fits"); }));
  const Status big = stage.ops().WriteAt("data/large.bin", 5, "does not fit", kUnseen);
  if (big.ok()) return Error{Code::kInvalid, "more was copied than the limit allows"};
  if (big.error().code() != Code::kLimit) return stage.Refuse(big.error());
  return stage.CloseStep();
}

Status Write(int fd, std::string_view text) {
  return WriteFully(fd, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// A descriptor that outlives its step: what it writes in the next one belongs to that.
Status LiveWriter(Stage& stage) {
  TRY(stage.OpenStep(1));
  Result<Fd> opened = stage.ops().OpenFile("data/table.csv", O_WRONLY, kUnseen);
  if (!opened.ok()) return stage.Refuse(opened.error());
  const Fd file = std::move(opened).value();
  TRY(stage.Do([&](ProjectOps&, const Means&) { return Write(file.get(), "in the first step"); }));
  const undo::ObjectRef writer{file.get(), "data/table.csv"};
  TRY(stage.CloseStep({&writer, 1}));
  TRY(stage.OpenStep(2));
  TRY(stage.Do([&](ProjectOps&, const Means&) { return Write(file.get(), "in the second step"); }));
  return stage.CloseStep();
}

// The step that is given up changed what the descriptor of the one before is open on.
Status LiveWriterThenAbort(Stage& stage) {
  TRY(stage.OpenStep(1));
  Result<Fd> opened = stage.ops().OpenFile("data/table.csv", O_WRONLY, kUnseen);
  if (!opened.ok()) return stage.Refuse(opened.error());
  const Fd file = std::move(opened).value();
  const undo::ObjectRef writer{file.get(), "data/table.csv"};
  TRY(stage.CloseStep({&writer, 1}));
  TRY(stage.OpenStep(2));
  TRY(stage.Do([&](ProjectOps&, const Means&) { return Write(file.get(), "to be given up"); }));
  return stage.AbortStep();
}

Status CompressedStep(Stage& stage) {
  TRY(stage.Step(1, PackedWork));
  stage.log().WaitForBackground();
  return stage.SayState();
}

// A program with two names, then a change to it.
Status ProgramSteps(Stage& stage) {
  const Fd bin(::open("/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY_ASSIGN(const std::string bytes, ReadFileAt(bin.get(), "sleep", 16 << 20));
  TRY(stage.Step(1, [&](ProjectOps& ops, const Means&) -> Status {
    TRY(ops.WriteNew("misc/program", bytes, 0755));
    return ops.Link("misc/program", "links/program");
  }));
  return stage.Step(2, [](ProjectOps& ops, const Means&) {
    return ops.Append("misc/program", "behind its end", kUnseen);
  });
}

// Starts the program, which outlives this process and everything that the trial does. Where programs cannot be run, the scenario is an
// ordinary one.
Status StartProgram(Stage& stage) {
  const std::string path = stage.paths().project + "/links/program";
  int started[2];
  if (::pipe2(started, O_CLOEXEC) != 0) return Error::FromErrno(errno, "pipe");
  const pid_t child = ::fork();
  if (child < 0) return Error::FromErrno(errno, "fork");
  if (child == 0) {
    ::dup2(started[1], 3);
    ::fcntl(3, F_SETFD, FD_CLOEXEC);
    ::close_range(4, ~0U, 0);
    ::execl(path.c_str(), "sleep", "20", nullptr);
    ::_exit(1);
  }
  ::close(started[1]);
  char nothing = 0;
  (void)!::read(started[0], &nothing, 1);  // returns once the program runs
  ::close(started[0]);
  return Ok();
}

void Background(UndoOptions& options) { options.compression = undo::Compression::kBackground; }
void TwoSteps(UndoOptions& options) { options.limits.max_steps = 2; }
void FewBytes(UndoOptions& options) { options.limits.max_copied_bytes = 30'000; }
void SmallStep(UndoOptions& options) {
  options.limits.max_step_copied_bytes = 50'000;
  options.on_oversize = undo::OversizePolicy::kRefuse;
}
void Guarded(UndoOptions& options) { options.safeguards.delete_count = 2; }
void PowerSafe(UndoOptions& options) { options.durability = undo::Durability::kPower; }

void AddSteps(std::vector<Scenario>& all) {
  all.push_back({.name = "first_open", .about = "a store is made", .store = StoreBefore::kMissing});
  all.push_back({.name = "open", .about = "a store with steps is opened", .setup = ThreeSteps()});
  all.push_back(
      {.name = "three_steps", .about = "steps closed one after the other", .run = ThreeSteps()});
  all.push_back(
      {.name = "ambient", .about = "changes outside of any step", .run = AmbientThenStep});
  all.push_back({.name = "abort", .about = "a step given up", .run = MixedThenAbort});
  all.push_back({.name = "told",
                 .about = "a step during which edits are told of",
                 .setup = EarlierStep,
                 .run = ToldThenClose});
  all.push_back({.name = "told.abort",
                 .about = "the same, given up",
                 .setup = EarlierStep,
                 .run = ToldThenAbort});
  all.push_back({.name = "safeguard_deny",
                 .about = "a step that a safeguard ends",
                 .run = DeniedDeletions,
                 .configure = Guarded});
  all.push_back({.name = "oversize_refused",
                 .about = "a copy that the limit refuses",
                 .run = OversizeRefused,
                 .configure = SmallStep});
  all.push_back(
      {.name = "live_writer", .about = "a descriptor kept over two steps", .run = LiveWriter});
  all.push_back({.name = "live_writer.abort",
                 .about = "a descriptor kept over a step that is given up",
                 .run = LiveWriterThenAbort});
  all.push_back({.name = "power_safe",
                 .about = "a bit of everything, durable against power loss",
                 .run = StepOf(1, MixedWork),
                 .configure = PowerSafe});
  all.push_back({.name = "power_safe.rollback",
                 .about = "the same, taken back",
                 .setup = StepOf(1, MixedWork),
                 .run = RollbackOf(1),
                 .configure = PowerSafe});
}

void AddHistories(std::vector<Scenario>& all) {
  all.push_back({.name = "rollback_three",
                 .about = "three steps taken back at once",
                 .setup = ThreeSteps(),
                 .run = RollbackOf(3)});
  all.push_back({.name = "rollback_one_by_one",
                 .about = "three steps taken back one by one",
                 .setup = ThreeSteps(),
                 .run = InTurn({RollbackOf(1), RollbackOf(1), RollbackOf(1)})});
  all.push_back({.name = "running.rollback",
                 .about = "a change to a running program taken back",
                 .setup = InTurn({ProgramSteps, StartProgram}),
                 .run = RollbackOf(1)});
  all.push_back({.name = "running.redo",
                 .about = "a change to a running program redone",
                 .setup = InTurn({ProgramSteps, RollbackOf(1), StartProgram}),
                 .run = RedoOf({2})});
  all.push_back({.name = "redo_three",
                 .about = "three steps redone at once",
                 .setup = InTurn({ThreeSteps(), RollbackOf(3)}),
                 .run = RedoOf({1, 2, 3})});
  all.push_back({.name = "step_drops_redo",
                 .about = "a new step empties the redo stack",
                 .setup = InTurn({ThreeSteps(), RollbackOf(2)}),
                 .run = StepOf(7, [](ProjectOps& ops, const Means&) {
                   return ops.WriteNew("new.txt", "instead");
                 })});
  all.push_back(
      {.name = "restore",
       .about = "single paths brought back",
       .setup = ThreeSteps(),
       .run = [](Stage& stage) { return stage.Restore(1, {"README.md", "src/util.cc", "tree"}); }});
  all.push_back(
      {.name = "restore_large",
       .about = "large files brought back",
       .setup = InTurn({StepOf(1, LargeWork), StepOf(2, SecondWork)}),
       .run = [](Stage& stage) { return stage.Restore(1, {"data", "tree/two/sub/big"}); }});
}

void AddUpkeep(std::vector<Scenario>& all) {
  // The step that goes has anchors of a file that lives on, and that a step that stays has changed.
  const auto unlink_one = [](ProjectOps& ops, const Means& means) -> Status {
    TRY(LargeWork(ops, means));
    TRY(ops.Unlink("src/third"));
    return ops.Unlink("links/two");
  };
  const auto write_other = [](ProjectOps& ops, const Means& means) -> Status {
    TRY(SecondWork(ops, means));
    return ops.Overwrite("links/one", "its last name");
  };
  const auto two_steps = InTurn({StepOf(1, unlink_one), StepOf(2, write_other)});
  all.push_back({.name = "eviction",
                 .about = "the oldest step goes when there are too many",
                 .setup = two_steps,
                 .run = InTurn({StepOf(3, PackedWork), StepOf(4, ThirdWork)}),
                 .configure = TwoSteps,
                 .eviction = Eviction::kOldest});
  all.push_back(
      {.name = "eviction_by_size",
       .about = "the oldest step goes when too much is copied",
       .setup = StepOf(1, [](ProjectOps& ops,
                             const Means&) { return ops.Overwrite("data/table.csv", "short"); }),
       .run = StepOf(2,
                     [](ProjectOps& ops, const Means&) -> Status {
                       TRY(ops.WriteAt("data/large.bin", 100'000, "announced",
                                       undo::WriteVisibility::kAnnounced));
                       return ops.Overwrite("src/main.cc", "short");
                     }),
       .configure = FewBytes,
       .eviction = Eviction::kOldest});
  all.push_back({.name = "step_drops_shared_redo",
                 .about = "a new step empties a redo with names of a file that lives on",
                 .setup = InTurn({StepOf(1,
                                         [](ProjectOps& ops, const Means&) -> Status {
                                           return ops.Overwrite("links/one", "changed");
                                         }),
                                  StepOf(2,
                                         [](ProjectOps& ops, const Means&) -> Status {
                                           TRY(ops.Link("links/one", "links/four"));
                                           return ops.Link("links/one", "links/five");
                                         }),
                                  RollbackOf(1)}),
                 .run = StepOf(7, [](ProjectOps& ops, const Means&) {
                   return ops.WriteNew("new.txt", "instead");
                 })});
  all.push_back({.name = "compression",
                 .about = "a closed step is compressed",
                 .run = CompressedStep,
                 .configure = Background});
  all.push_back({.name = "compression.rollback",
                 .about = "a compressed step is taken back",
                 .setup = CompressedStep,
                 .run = RollbackOf(1),
                 .configure = Background});
}

// Recovery that is killed itself. The number is how far the other scenario got.
void AddRecoveries(std::vector<Scenario>& all) {
  const auto add = [&](std::string_view base, uint32_t percent) {
    all.push_back({.name = fmt::format("recovery.{}.{}", base, percent),
                   .about = fmt::format("opened after {} was killed at {} %", base, percent),
                   .after_crash_of = std::string(base),
                   .crash_percent = percent});
  };
  add("mixed", 50);
  add("mixed", 95);
  add("remove_tree", 80);
  add("truncate_open_large", 80);
  add("rename_folder", 70);
  add("hard_links", 75);
  add("metadata", 80);
  add("ambient", 40);
  add("mixed.rollback", 30);
  add("mixed.rollback", 70);
  add("mixed.redo", 50);
  add("large.rollback", 60);
  add("rollback_three", 60);
  add("redo_three", 60);
  add("restore", 60);
  add("running.rollback", 80);
  add("abort", 85);
  add("told", 80);
  add("eviction", 60);
  // What recovery itself wrote must not pass for a person's edit when time has passed.
  const auto add_late = [&](std::string_view base, uint32_t percent) {
    add(base, percent);
    all.back().name += ".late";
    all.back().pause_ms = 400;
  };
  add_late("mixed", 90);
  add_late("abort", 70);
  add_late("mixed.rollback", 60);
}

// The same again, with a person who edits files before the log is opened.
void AddEdits(std::vector<Scenario>& all) {
  for (const char* base : {"mixed", "mixed.rollback", "mixed.redo", "abort", "rollback_three",
                           "recovery.mixed.50", "recovery.mixed.rollback.70"}) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const Scenario& scenario) { return scenario.name == base; });
    Scenario edited = *found;
    edited.name += ".edited";
    edited.about += ", and files are edited before the log is opened";
    edited.pause_ms = 300;
    edited.edits = {"README.md", "data/large.bin", "data/table.csv", "src/main.cc", "src/util.cc"};
    all.push_back(std::move(edited));
  }
}

// NOLINTEND(clang-analyzer-cplusplus.NewDeleteLeaks)

}  // namespace

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> all;
  AddWorks(all);
  AddSteps(all);
  AddHistories(all);
  AddUpkeep(all);
  AddRecoveries(all);
  AddEdits(all);
  return all;
}

}  // namespace sandglass::crash

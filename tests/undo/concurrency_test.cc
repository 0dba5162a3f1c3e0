// Several threads of a bridge in one step: whatever the order, the rollback is exact. Meant for ThreadSanitizer too.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"
#include "undo/past_reader.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

using test::Must;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kThreads = 4;
constexpr int kRounds = 60;

class UndoConcurrency : public UndoTest {
 protected:
  void SetUp() override {
    for (int thread = 0; thread < kThreads; ++thread) {
      for (int i = 0; i < 10; ++i) workspace().WriteFile(Own(thread, i), Noise(2000, i));
    }
    for (int i = 0; i < 20; ++i) workspace().WriteFile(Shared(i), Noise(3000, i));
    test::AgeTree(workspace().project());
    OpenLog();
  }

  static std::string Own(int thread, int i) { return fmt::format("own{}/{}.txt", thread, i); }
  static std::string Shared(int i) { return fmt::format("shared/{}.txt", i); }

  static void Run(const std::function<void(int thread)>& body) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(body, thread);
    for (std::thread& thread : threads) thread.join();
  }

  // One change among files that only this thread uses; each must work.
  void ChangeOwn(int thread, int round) {
    const std::string path = Own(thread, round % 10);
    const std::string made = fmt::format("own{}/made{}.txt", thread, round);
    EXPECT_OK(ops().WriteNew(made, "new"));
    EXPECT_OK(ops().Overwrite(path, fmt::format("round {}", round)));
    EXPECT_OK(ops().Rename(made, path));
    EXPECT_OK(ops().Chmod(path, 0600 + static_cast<mode_t>(round % 8)));
    if (round % 3 == 0) {
      EXPECT_OK(ops().Unlink(path));
      EXPECT_OK(ops().WriteNew(path, "again"));
    }
  }

  // One change in the directory and to the files that all threads use. Another may have been quicker: then the system call
  // fails, and that is no one's fault. Returns whether it worked.
  bool ChangeShared(std::mt19937& random) {
    const std::string path = Shared(static_cast<int>(random() % 20));
    const std::string other = Shared(static_cast<int>(random() % 20));
    switch (random() % 7) {
      case 0:
        return ops().WriteNew(path, "created by one of many").ok();
      case 1:
        return ops().Unlink(path).ok();
      case 2:
        return ops().Rename(path, other).ok();
      case 3:
        return ops().WriteAt(path, random() % 3000, "written", WriteVisibility::kUnseen).ok();
      case 4:
        return ops().WriteAt(path, random() % 3000, "written", WriteVisibility::kAnnounced).ok();
      case 5:
        return ops().Link(path, other).ok();
      default:
        return ops().Overwrite(path, "truncated").ok();
    }
  }
};

TEST_F(UndoConcurrency, ThreadsInDirectoriesOfTheirOwn) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    Run([&](int thread) {
      for (int round = 0; round < kRounds; ++round) ChangeOwn(thread, round);
    });
  });
  const TreeSnapshot after = Snapshot();
  RollBack();
  ExpectTree(before);
  RedoSteps();
  ExpectTree(after);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConcurrency, ThreadsThatShareADirectoryAndItsFiles) {
  const TreeSnapshot before = Snapshot();
  std::atomic<int> worked = 0;
  InStep([&] {
    Run([&](int thread) {
      std::mt19937 random(static_cast<unsigned>(thread) + 1);
      for (int round = 0; round < kRounds; ++round) worked += ChangeShared(random) ? 1 : 0;
    });
  });
  EXPECT_GT(worked.load(), kThreads * kRounds / 4) << "hardly anything happened";
  const TreeSnapshot after = Snapshot();
  RollBack();
  ExpectTree(before);
  RedoSteps();
  ExpectTree(after);
}

TEST_F(UndoConcurrency, OneFirstTouchAmongManyThreads) {
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    Run([&](int thread) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_OK(ops().WriteAt(Shared(i), static_cast<uint64_t>(thread) * 700,
                                fmt::format("thread {}", thread), WriteVisibility::kUnseen));
      }
    });
  });
  EXPECT_LE(InfoOf(step).copied_bytes, 20u * 3000);
  EXPECT_EQ(InfoOf(step).counts.modified, 20u);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConcurrency, RenamesAcrossDirectoriesInBothDirectionsDoNotDeadlock) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().WriteNew("left.txt", "the only thing that is left of this step"));
    Run([&](int thread) {
      const int other = (thread + 1) % kThreads;
      for (int round = 0; round < kRounds; ++round) {
        const std::string here = fmt::format("own{}/ball{}", thread, thread);
        const std::string there = fmt::format("own{}/ball{}", other, thread);
        EXPECT_OK(ops().WriteNew(here, "ball"));
        EXPECT_OK(ops().Rename(here, there));
        EXPECT_OK(ops().Rename(there, here));
        EXPECT_OK(ops().Unlink(here));
      }
    });
  });
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConcurrency, ARenameBetweenTwoNamesOfOneObjectHoldsThemUntilItIsDone) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Link(Shared(0), "shared/link"));
  const Fd dir(::open(workspace().Path("shared").c_str(), O_PATH | O_CLOEXEC));
  const DirRef shared{dir.get(), "shared"};
  Result<Ticket> ticket =
      log().interceptor().BeginRename({shared, "0.txt"}, {shared, "link"}, RenameMode::kReplace);
  ASSERT_OK(ticket);
  std::atomic<bool> removed = false;
  std::thread other([&] {
    EXPECT_OK(ops().Unlink("shared/link"));
    removed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(removed) << "the rename, which nobody recorded, would now do something";
  EXPECT_OK(ticket->Commit(Outcome::Done()));
  other.join();
  EXPECT_OK(log().CloseStep());
}

TEST_F(UndoConcurrency, DirectoriesMadeAndRemovedSideBySide) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    Run([&](int thread) {
      for (int round = 0; round < kRounds / 2; ++round) {
        const std::string dir = fmt::format("shared/dir{}_{}", thread, round);
        EXPECT_OK(ops().Mkdir(dir));
        EXPECT_OK(ops().WriteNew(dir + "/file", "x"));
        EXPECT_OK(ops().Rename(dir, dir + "_renamed"));
        if (round % 2 == 0) EXPECT_OK(ops().RemoveTree(dir + "_renamed"));
      }
      EXPECT_OK(ops().RemoveTree(fmt::format("own{}", thread)));
    });
  });
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConcurrency, ReadersOfTheHistoryDoNotDisturbWriters) {
  const TreeSnapshot before = Snapshot();
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      EXPECT_OK(log().History());
      (void)log().open_step();
      (void)log().redo_depth();
      Result<StoreReader> store = StoreReader::Open(paths());
      EXPECT_OK(store);
      if (store.ok()) EXPECT_OK(store->History());
    }
  });
  for (int step = 0; step < 3; ++step) {
    InStep([&] {
      Run([&](int thread) {
        for (int round = 0; round < 10; ++round) ChangeOwn(thread, round);
      });
    });
    RollBack();
    RedoSteps();
  }
  done = true;
  reader.join();
  RollBack(3);
  ExpectTree(before);
}

TEST_F(UndoConcurrency, AmbientWritesOfManyThreadsFormOneStep) {
  const TreeSnapshot before = Snapshot();
  Run([&](int thread) {
    for (int round = 0; round < 10; ++round) ChangeOwn(thread, round);
  });
  EXPECT_EQ(log().open_step(), StepId{-1});
  InStep([] {});
  RollBack();
  EXPECT_THAT(Steps(), IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoConcurrency, AQuestionOnOneThreadIsAskedOnce) {
  ScriptedHandler handler(Decision::kAllow);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 5;
  OpenLog();
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    Run([&](int thread) {
      for (int i = 0; i < 10; ++i) EXPECT_OK(ops().Unlink(Own(thread, i)));
    });
  });
  EXPECT_THAT(handler.questions(), SizeIs(1));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConcurrency, ADenialOnOneThreadUndoesTheWorkOfAll) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 15;
  OpenLog();
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  std::atomic<int> denied = 0;
  Run([&](int thread) {
    for (int i = 0; i < 10; ++i) {
      const Status removed = ops().Unlink(Own(thread, i));
      if (removed.ok()) continue;
      EXPECT_CODE(removed, Code::kDenied);
      ++denied;
      return;
    }
  });
  EXPECT_GE(denied.load(), 1);
  // What other threads did after the denial belongs to no step of the command any more: it is ambient, and undoable.
  if (log().open_step().has_value()) InStep([] {});
  while (!Steps().empty()) {
    if (!log().Rollback(1).ok()) break;
  }
  ExpectTree(before);
}

// Bridges at work while somebody opens and closes steps, rolls back, redoes, restores and aborts.
class UndoStorm : public UndoConcurrency {
 protected:
  static constexpr auto kLength = std::chrono::seconds(2);

  void SetUp() override {
    options_.limits.max_steps = 100'000;
    StartWith([&](const std::string&) {
      for (int dir = 0; dir < 3; ++dir) {
        for (int i = 0; i < 4; ++i)
          workspace().WriteFile(fmt::format("d{}/f{}", dir, i), Noise(i == 0 ? 300'000 : 2000, i));
      }
    });
  }

  // Those without changes do not count.
  uint32_t StepsToUndo() {
    const auto steps = Steps();
    return static_cast<uint32_t>(std::count_if(
        steps.begin(), steps.end(), [](const auto& step) { return step.counts.total() > 0; }));
  }

  // Most of them fail: the names are not there, or are taken.
  void Change(std::mt19937& random) {
    const auto dir = [&] { return fmt::format("d{}", random() % 5); };
    const auto file = [&] { return fmt::format("d{}/f{}", random() % 3, random() % 5); };
    switch (random() % 14) {
      case 0:
        return (void)ops().Mknod(file(), NodeType::kFile, 0644);
      case 1:
        return (void)ops().Unlink(file());
      case 2:
        return (void)ops().Rename(file(), file());
      case 3:
        return (void)ops().TruncateTo(file(), random() % 3000);
      case 4:
        return (void)ops().WriteAt(file(), random() % 3000, "announced",
                                   WriteVisibility::kAnnounced);
      case 5:
        return (void)ops().Link(file(), file());
      case 6:
        return (void)ops().TruncateTo(file(), 0);
      case 7:
        return (void)ops().Rename(dir(), dir(), RenameMode::kExchange);
      case 8:
        return (void)ops().Rename(dir(), dir());
      case 9:
        return (void)ops().Chmod(file(), 0600 + random() % 64);
      case 10:
      case 11:
        return (void)ops().Mkdir(dir());
      case 12:
        return (void)ops().Rmdir(dir());
      default:
        return (void)ops().Rename(file(), file(), RenameMode::kExchange);
    }
  }

  Status Act(std::mt19937& random) {
    const auto status = [](const auto& result) { return result.ok() ? Ok() : result.error(); };
    switch (random() % 9) {
      case 0:
      case 1:
        return status(log().OpenStep({}));
      case 2:
        return status(log().CloseStep());
      case 3:
        return status(log().AbortStep());
      case 4:
        return StepsToUndo() > 1 ? status(log().Rollback(1)) : Ok();
      case 5:
        return status(log().Redo(1));
      case 6:
        return status(log().CloseAmbientStep());
      case 7:
        return status(log().AnnounceStep({}, IfUnchanged::kForgotten));
      default: {
        const auto steps = Steps();
        const std::vector<std::string> paths = {"d0"};
        return steps.empty() ? Ok()
                             : status(log().Restore(steps[random() % steps.size()].id, paths));
      }
    }
  }
};

TEST_F(UndoStorm, EverythingIsTakenBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().WriteNew("first", "so that all that follows can be undone")); });
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread + 1);
      while (!done) Change(random);
    });
  }
  std::mt19937 random(10);
  const auto until = std::chrono::steady_clock::now() + kLength;
  while (std::chrono::steady_clock::now() < until && !HasFailure()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    const Status acted = Act(random);
    // There may be nothing to take back, or a step open.
    if (!acted.ok() && acted.error().code() != Code::kBusy &&
        acted.error().code() != Code::kNotFound)
      ADD_FAILURE() << acted.error().ToString();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  (void)log().CloseStep();
  (void)log().CloseAmbientStep();
  EXPECT_GT(StepsToUndo(), 1u) << "hardly anything happened";
  RollBack(StepsToUndo());
  ExpectTree(before);
}

// Reading beside a log that evicts, rolls back, redoes and compresses.
class UndoReaders : public UndoTest {
 protected:
  // `read` again and again while `write` runs; what it returns must be "" or is an error of the test.
  void Beside(const std::function<void()>& write, const std::function<std::string()>& read) {
    std::atomic<bool> done = false;
    std::set<std::string> errors;
    std::thread reader([&] {
      while (!done) {
        if (std::string error = read(); !error.empty()) errors.insert(std::move(error));
      }
    });
    write();
    done = true;
    reader.join();
    EXPECT_THAT(errors, IsEmpty());
  }
  template <class T>
  static std::string ErrorOf(const Result<T>& result) {
    const bool expected = result.ok() || result.error().code() == Code::kNotFound;
    return expected ? "" : result.error().ToString();
  }
};

TEST_F(UndoReaders, AStepThatIsEvictedMeanwhileIsNotListedAsDamaged) {
  options_.limits.max_steps = 3;
  StartWith([&](const std::string&) { workspace().WriteFile("a.txt", "one"); });
  const StoreReader store = Must(StoreReader::Open(paths()));
  const auto write = [&] {
    for (int i = 0; i < 1000; ++i)
      InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", fmt::format("{}", i))); });
  };
  Beside(write, [&]() -> std::string {
    const auto history = store.History();
    if (!history.ok()) return history.error().ToString();
    for (const HistoryEntry& entry : *history) {
      if (entry.step && entry.step->damaged) return "damaged";
    }
    return "";
  });
}

TEST_F(UndoReaders, AHistoryThatChangesIsReadWithoutErrors) {
  options_.limits.max_steps = 4;
  StartWith([&](const std::string&) {
    for (int i = 0; i < 20; ++i)
      workspace().WriteFile(fmt::format("f{}", i), Noise(20'000, static_cast<uint64_t>(i)));
    workspace().WriteFile("big", Noise(600'000));
  });
  const auto write = [&] {
    for (int i = 0; i < 150; ++i) {
      InStep([&] {
        for (int f = 0; f < 20; ++f)
          EXPECT_OK(ops().Overwrite(fmt::format("f{}", f), fmt::format("{}\n{}\n", i, f)));
        EXPECT_OK(ops().WriteAt("big", 1000u * static_cast<uint64_t>(i), "xx",
                                WriteVisibility::kAnnounced));
        EXPECT_OK(ops().Unlink("f1"));
        EXPECT_OK(ops().WriteNew("f1", "again"));
      });
      if (i % 3 == 0) {
        RollBack();
        RedoSteps();
      }
    }
  };
  const StoreReader store = Must(StoreReader::Open(paths()));
  Beside(write, [&]() -> std::string {
    const auto history = store.History();
    if (!history.ok()) return history.error().ToString();
    std::string errors;
    for (const HistoryEntry& entry : *history) {
      if (!entry.step) continue;
      errors += ErrorOf(store.Changes(entry.step->id));
      const auto diff = store.Diff(entry.step->id);
      errors += ErrorOf(diff);
      for (const Conflict& missing : diff.ok() ? diff->missing : std::vector<Conflict>())
        errors += ConflictText(missing);
    }
    return errors;
  });
}

// The moment between a rollback and the end of its step's folder, held on by a trash that takes nothing.
TEST_F(UndoReaders, AStepThatWasTakenBackButIsStillThereIsNotUpToDate) {
  options_.compression = Compression::kOff;
  StartWith([&](const std::string&) { workspace().WriteFile("a", "one"); });
  InStep([&] { EXPECT_OK(ops().Unlink("a")); });
  const StepId step = Steps().front().id;
  const auto place = Must(OpenPlace(paths(), StoreAccess::kReadOnly));
  const PastReader past = Must(PastReader::Before(*place, step, PastReader::Purpose::kShow));
  EXPECT_TRUE(past.IsUpToDate());
  ASSERT_EQ(::unlinkat(place->store.get(), "trash", AT_REMOVEDIR), 0) << errno;
  RollBack();
  ASSERT_TRUE(NameExists(place->store.get(), fmt::format("steps/{}", step.value).c_str()));
  EXPECT_FALSE(past.IsUpToDate());
}

TEST_F(UndoReaders, AFileThatIsWrittenToMeanwhileIsReadAgain) {
  StartWith([&](const std::string&) { workspace().WriteFile("notes", std::string(300'000, 'n')); });
  const auto note = [&](uint64_t offset) {
    EXPECT_OK(ops().WriteAt("notes", offset, "xx", WriteVisibility::kAnnounced));
  };
  InStep([&] { note(0); });
  const StepId first = Steps().front().id;
  const StoreReader store = Must(StoreReader::Open(paths()));
  const auto write = [&] {
    InStep([&] {
      for (uint64_t i = 1; i < 300; ++i) {
        note(100 * i);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  };
  Beside(write, [&]() -> std::string {
    const auto diff = store.Diff(first);
    return !diff.ok()              ? diff.error().ToString()
           : diff->missing.empty() ? ""
                                   : ConflictText(diff->missing.front());
  });
}

}  // namespace
}  // namespace sandglass::undo

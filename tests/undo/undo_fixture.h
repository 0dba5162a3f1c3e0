// UndoTest: a project, a store and an open UndoLog for one test, and the sentences that the tests of undo are made of.
//
// The project changes in two ways: through ops(), as a bridge would, and through workspace(), as a person would. One thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "tests/support/fixtures.h"
#include "tests/support/project_ops.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_builder.h"
#include "tests/support/tree_snapshot.h"
#include "undo/undo_log.h"

namespace sandglass::undo {

using ::sandglass::testing::ProjectOps;
using test::TempWorkspace;
using test::TreeBuilder;
using test::TreeSnapshot;

template <class T>
::testing::AssertionResult IsOk(const Result<T>& result) {
  if (result.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().ToString();
}

template <class T>
::testing::AssertionResult FailsWith(const Result<T>& result, Code code) {
  if (result.ok())
    return ::testing::AssertionFailure() << "succeeded instead of " << CodeName(code);
  if (result.error().code() == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "wanted " << CodeName(code) << ", got " << result.error().ToString();
}

#define EXPECT_OK(expr) EXPECT_TRUE(::sandglass::undo::IsOk(expr))
#define ASSERT_OK(expr) ASSERT_TRUE(::sandglass::undo::IsOk(expr))
#define EXPECT_CODE(expr, code) EXPECT_TRUE(::sandglass::undo::FailsWith(expr, code))
#define ASSERT_CODE(expr, code) ASSERT_TRUE(::sandglass::undo::FailsWith(expr, code))

// Remembers what the log told. Thread-safe.
class RecordingObserver final : public UndoObserver {
 public:
  void OnEvicted(const std::vector<StepId>& steps) override;
  void OnExternalModification(const Barrier& barrier) override;
  void OnUnprotected(StepId step, std::string_view why) override;

  std::vector<StepId> evicted() const;
  std::vector<Barrier> external() const;
  std::vector<StepId> unprotected() const;

 private:
  mutable std::mutex mutex_;
  std::vector<StepId> evicted_;
  std::vector<Barrier> external_;
  std::vector<StepId> unprotected_;
};

// Answers every question with one decision, remembers the question, and first runs `look`, so that a test can see the
// project at the very moment of asking.
class ScriptedHandler final : public SafeguardHandler {
 public:
  explicit ScriptedHandler(Decision decision,
                           std::function<void(const SafeguardQuestion&)> look = {})
      : decision_(decision), look_(std::move(look)) {}

  Decision Decide(const SafeguardQuestion& question) override;

  std::vector<SafeguardQuestion> questions() const;
  std::vector<SafeguardKind> kinds() const;

 private:
  const Decision decision_;
  const std::function<void(const SafeguardQuestion&)> look_;
  mutable std::mutex mutex_;
  std::vector<SafeguardQuestion> questions_;
};

class UndoTest : public ::testing::Test {
 protected:
  // Fills the project and opens the log. The tree is as old as AgeTree makes it.
  void StartWith(const std::function<void(const std::string& root)>& build);
  // Opens the log with `options`, after closing one that is open.
  void OpenLog();
  void CloseLog();

  const TempWorkspace& workspace() const { return workspace_; }
  UndoLog& log() { return *log_; }
  ProjectOps& ops() { return *ops_; }
  UndoPaths paths() const { return {.project = workspace_.project(), .store = workspace_.store()}; }

  TreeSnapshot Snapshot() const { return workspace_.Snapshot(); }
  // What the project holds at `path` now; "(missing)" and zeros when there is nothing, since that is for the test to judge.
  std::string Content(std::string_view path) const;
  struct stat StatOf(std::string_view path) const;
  // The project holds exactly what it held then. False also fails the test.
  void ExpectTree(const TreeSnapshot& wanted) const { EXPECT_TREE_EQ(wanted, Snapshot()); }

  // Runs `body` within one step and returns its id.
  StepId InStep(const std::function<void()>& body, std::string label = "a command");
  // Rolls back and expects that to work.
  RewindReport RollBack(uint32_t count = 1, Force force = Force::kNo);
  RewindReport RedoSteps(uint32_t count = 1, Force force = Force::kNo);
  // `body` within a step, then its rollback: the tree is as before, and a redo and a second rollback agree.
  void ExpectUndone(const std::function<void()>& body);

  std::vector<StepInfo> Steps();
  std::vector<Barrier> Barriers();
  StepInfo InfoOf(StepId id);
  // "created src/a.txt", "renamed a.txt -> b.txt", ... sorted.
  std::vector<std::string> ChangeLines(StepId id);

  TempWorkspace workspace_;
  UndoOptions options_;
  std::unique_ptr<UndoLog> log_;
  std::unique_ptr<ProjectOps> ops_;
};

std::vector<std::string> Lines(const std::vector<Change>& changes);
// "edited a.txt", ... sorted.
std::vector<std::string> Lines(const std::vector<Conflict>& conflicts);
bool HasConflict(const std::vector<Conflict>& conflicts, ConflictKind kind, std::string_view path);

// The names in a directory of the host, sorted; none when it is missing.
std::vector<std::string> NamesIn(const std::string& dir);
// Regular files below `dir` with their paths, sorted.
std::vector<std::string> FilesBelow(const std::string& dir);
// Where the store keeps a closed step, and what in that folder is not the journal.
std::string StepFolder(const TempWorkspace& workspace, StepId id);
std::vector<std::string> KeptDataOf(const TempWorkspace& workspace, StepId id);
std::string OpenStepFolder(const TempWorkspace& workspace);
// Disk space of everything below `dir`, each inode once and without those in `but`.
uint64_t DiskUsage(const std::string& dir, const std::set<uint64_t>& but = {});
std::set<uint64_t> InodesBelow(const std::string& dir);
void FlipByte(const std::string& path, uint64_t offset);
uint64_t FileSize(const std::string& path);

// Bytes that no compressor shrinks and no accident repeats; the same for the same seed.
std::string Noise(size_t size, uint64_t seed = 1);

// A sanitizer keeps what was freed for a while, and has notes and threads of its own.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kPlainBuild = false;
#else
inline constexpr bool kPlainBuild = true;
#endif

// "ext4", "tmpfs", ...: the file system under test, for the reason of a skip.
std::string FileSystemName(const std::string& path);

}  // namespace sandglass::undo

// Four threads change one project within one step: folders of their own and one that they share. Whatever order their
// operations take, the step must roll back, redo and roll back again exactly.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/model/choices.h"
#include "tests/model/command.h"
#include "tests/model/settings.h"
#include "tests/support/project_ops.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::model {
namespace {

using undo::WriteVisibility;

constexpr uint32_t kThreads = 4;
constexpr uint32_t kOperations = 60;
constexpr uint32_t kNames = 5;
constexpr const char* kShared = "shared";

std::string OwnFolder(uint32_t thread) { return fmt::format("own{}", thread); }

void Plant(const test::TempWorkspace& workspace) {
  std::vector<std::string> folders = {kShared};
  for (uint32_t i = 0; i < kThreads; ++i) folders.push_back(OwnFolder(i));
  for (const std::string& folder : folders) {
    workspace.WriteFile(folder + "/n0", Pattern(1, 100));
    workspace.WriteFile(folder + "/n1", Pattern(2, 5'000));
    workspace.WriteFile(folder + "/n2", Pattern(3, 300'000));
  }
}

// In a shared folder a name may be gone, taken or of another kind by the time it is used.
bool IsRace(const Error& error) {
  switch (error.sys_errno()) {
    case ENOENT:
    case ESTALE:  // removed by another thread between the look-up and the operation
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ELOOP:
    case EOPNOTSUPP:  // chmod of what is a symlink by now
    case EINVAL:
      return true;
    default:
      return error.code() == Code::kNotFound || error.code() == Code::kExists;
  }
}

class Worker {
 public:
  Worker(undo::UndoLog& log, const std::string& project, uint32_t index, uint64_t seed)
      : ops_(log, project), own_(OwnFolder(index)), dice_(seed * kThreads + index + 1) {}

  void Run() {
    for (uint32_t i = 0; i < kOperations; ++i) {
      const Status status = One();
      if (!status.ok() && !IsRace(status.error())) failures_.push_back(status.error().ToString());
    }
  }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::string Somewhere() {
    return fmt::format("{}/n{}", dice_.OneIn(2) ? kShared : own_, dice_.Below(kNames));
  }
  WriteVisibility SomeVisibility() {
    return dice_.OneIn(2) ? WriteVisibility::kAnnounced : WriteVisibility::kUnseen;
  }

  Status One() {
    const std::string at = Somewhere();
    const std::string to = Somewhere();
    const std::string data = Pattern(dice_.Below(1'000), 1 + dice_.Below(3'000));
    switch (dice_.Below(14)) {
      case 0:
      case 1:
        return ops_.WriteNew(at, data);
      case 2:
        return ops_.Overwrite(at, data);
      case 3:
      case 4:
        return ops_.WriteAt(at, dice_.Below(200'000), data, SomeVisibility());
      case 5:
        return ops_.Append(at, data, SomeVisibility());
      case 6:
        return ops_.TruncateTo(at, dice_.Below(2) * 77);
      case 7:
        return ops_.Unlink(at);
      case 8:
        return ops_.Rename(at, to);
      case 9:
        return ops_.Rename(at, to, undo::RenameMode::kExchange);
      case 10:
        return ops_.Link(at, to);
      case 11:
        return ops_.Chmod(at, 0600 + dice_.Below(64));
      case 12:
        return ops_.Symlink("elsewhere", at);
      default:
        return OwnDirectories();
    }
  }

  // Renaming a folder that others work in would make their paths wrong, which no bridge does.
  Status OwnDirectories() {
    TRY(ops_.Mkdir(own_ + "/sub"));
    TRY(ops_.WriteNew(own_ + "/sub/inside", "x"));
    TRY(ops_.Rename(own_ + "/sub", own_ + "/moved"));
    TRY(ops_.WriteAt(own_ + "/moved/inside", 1, "y", SomeVisibility()));
    return ops_.RemoveTree(own_ + "/moved");
  }

  testing::ProjectOps ops_;
  const std::string own_;
  Dice dice_;
  std::vector<std::string> failures_;
};

void RunWorkers(undo::UndoLog& log, const std::string& project, uint64_t seed) {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    workers.push_back(std::make_unique<Worker>(log, project, i, seed));
    threads.emplace_back([worker = workers.back().get()] { worker->Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) EXPECT_THAT(worker->failures(), ::testing::IsEmpty());
}

TEST(UndoModel, ConcurrentOperationsOfOneStepRollBackExactly) {
  const Settings settings = Settings::FromEnvironment();
  const uint64_t rounds = std::max<uint64_t>(3, std::min<uint64_t>(settings.sequences / 20, 400));
  for (uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("SANDGLASS_MODEL_SEED={}", settings.seed + round));
    const test::TempWorkspace workspace;
    Plant(workspace);
    auto log = undo::UndoLog::Open({workspace.project(), workspace.store()});
    ASSERT_TRUE(log.ok()) << log.error().ToString();
    const test::TreeSnapshot before = workspace.Snapshot();
    ASSERT_TRUE((*log)->OpenStep({.label = "threads"}).ok());
    RunWorkers(**log, workspace.project(), settings.seed + round);
    const auto closed = (*log)->CloseStep();
    ASSERT_TRUE(closed.ok()) << closed.error().ToString();
    const test::TreeSnapshot after = workspace.Snapshot();

    const auto rolled_back = (*log)->Rollback(1);
    ASSERT_TRUE(rolled_back.ok()) << rolled_back.error().ToString();
    ASSERT_TREE_EQ(before, workspace.Snapshot());
    const auto redone = (*log)->Redo(1);
    ASSERT_TRUE(redone.ok()) << redone.error().ToString();
    ASSERT_TREE_EQ(after, workspace.Snapshot());
    ASSERT_TRUE((*log)->Rollback(1).ok());
    ASSERT_TREE_EQ(before, workspace.Snapshot());
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sandglass::model

#include "tests/undo/undo_fixture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/fd.h"
#include "tests/support/must.h"
#include "tests/support/tree_walk.h"

namespace sandglass::undo {

using test::Must;
using test::MustCall;
using test::WalkEntry;

void RecordingObserver::OnEvicted(const std::vector<StepId>& steps) {
  const std::lock_guard lock(mutex_);
  evicted_.insert(evicted_.end(), steps.begin(), steps.end());
}

void RecordingObserver::OnExternalModification(const Barrier& barrier) {
  const std::lock_guard lock(mutex_);
  external_.push_back(barrier);
}

void RecordingObserver::OnUnprotected(StepId step, std::string_view /*why*/) {
  const std::lock_guard lock(mutex_);
  unprotected_.push_back(step);
}

std::vector<StepId> RecordingObserver::evicted() const {
  const std::lock_guard lock(mutex_);
  return evicted_;
}

std::vector<Barrier> RecordingObserver::external() const {
  const std::lock_guard lock(mutex_);
  return external_;
}

std::vector<StepId> RecordingObserver::unprotected() const {
  const std::lock_guard lock(mutex_);
  return unprotected_;
}

Decision ScriptedHandler::Decide(const SafeguardQuestion& question) {
  if (look_) look_(question);
  const std::lock_guard lock(mutex_);
  questions_.push_back(question);
  return decision_;
}

std::vector<SafeguardQuestion> ScriptedHandler::questions() const {
  const std::lock_guard lock(mutex_);
  return questions_;
}

std::vector<SafeguardKind> ScriptedHandler::kinds() const {
  std::vector<SafeguardKind> kinds;
  for (const SafeguardQuestion& question : questions()) kinds.push_back(question.kind);
  return kinds;
}

void UndoTest::StartWith(const std::function<void(const std::string& root)>& build) {
  build(workspace_.project());
  OpenLog();
}

std::string UndoTest::Content(std::string_view path) const {
  return S_ISREG(StatOf(path).st_mode) ? workspace_.ReadFile(path) : "(missing)";
}

struct stat UndoTest::StatOf(std::string_view path) const {
  struct stat st{};
  (void)::lstat(workspace_.Path(path).c_str(), &st);
  return st;
}

void UndoTest::OpenLog() {
  CloseLog();
  log_ = Must(UndoLog::Open(paths(), options_));
  ops_ = std::make_unique<ProjectOps>(*log_, workspace_.project());
}

void UndoTest::CloseLog() {
  ops_.reset();
  log_.reset();
}

StepId UndoTest::InStep(const std::function<void()>& body, std::string label) {
  const StepId id = Must(log().OpenStep({.label = std::move(label)}));
  body();
  EXPECT_OK(log().CloseStep());
  return id;
}

RewindReport UndoTest::RollBack(uint32_t count, Force force) {
  Result<RewindReport> report = log().Rollback(count, force);
  EXPECT_OK(report);
  return report.ok() ? *report : RewindReport{};
}

RewindReport UndoTest::RedoSteps(uint32_t count, Force force) {
  Result<RewindReport> report = log().Redo(count, force);
  EXPECT_OK(report);
  return report.ok() ? *report : RewindReport{};
}

void UndoTest::ExpectUndone(const std::function<void()>& body) {
  const TreeSnapshot before = Snapshot();
  InStep(body);
  const TreeSnapshot after = Snapshot();
  EXPECT_FALSE(test::Diff(before, after).empty()) << "the step did nothing that could be undone";
  RollBack();
  EXPECT_TREE_EQ(before, Snapshot());
  RedoSteps();
  EXPECT_TREE_EQ(after, Snapshot());
  RollBack();
  EXPECT_TREE_EQ(before, Snapshot());
}

std::vector<StepInfo> UndoTest::Steps() {
  std::vector<StepInfo> steps;
  for (const HistoryEntry& entry : Must(log().History())) {
    if (entry.step) steps.push_back(*entry.step);
  }
  return steps;
}

std::vector<Barrier> UndoTest::Barriers() {
  std::vector<Barrier> barriers;
  for (const HistoryEntry& entry : Must(log().History())) {
    if (entry.barrier) barriers.push_back(*entry.barrier);
  }
  return barriers;
}

StepInfo UndoTest::InfoOf(StepId id) {
  for (const StepInfo& step : Steps()) {
    if (step.id == id) return step;
  }
  ADD_FAILURE() << "step " << id.value << " is not in the history";
  return {};
}

std::vector<std::string> UndoTest::ChangeLines(StepId id) { return Lines(Must(log().Changes(id))); }

std::vector<std::string> Lines(const std::vector<Change>& changes) {
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    const std::string from = change.kind == ChangeKind::kRenamed ? change.old_path + " -> " : "";
    lines.push_back(fmt::format("{} {}{}", ChangeName(change.kind), from, change.path));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> Lines(const std::vector<Conflict>& conflicts) {
  std::vector<std::string> lines;
  for (const Conflict& conflict : conflicts) {
    lines.push_back(fmt::format("{} {}", ConflictName(conflict.kind), conflict.path));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool HasConflict(const std::vector<Conflict>& conflicts, ConflictKind kind, std::string_view path) {
  return std::any_of(conflicts.begin(), conflicts.end(), [&](const Conflict& conflict) {
    return conflict.kind == kind && conflict.path == path;
  });
}

std::vector<std::string> NamesIn(const std::string& dir) {
  Result<Fd> fd = test::OpenDirectory(dir);
  if (!fd.ok()) return {};
  std::vector<std::string> names = Must(test::ListDirectory(fd->get()));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> FilesBelow(const std::string& dir) {
  Result<Fd> top = test::OpenDirectory(dir);
  if (!top.ok()) return {};
  std::vector<std::string> files;
  Must(test::WalkTree(top->get(), [&](const WalkEntry& entry) -> Status {
    if (S_ISREG(entry.st.stx_mode)) files.push_back(fmt::format("{}/{}", dir, entry.path));
    return Ok();
  }));
  std::sort(files.begin(), files.end());
  return files;
}

std::string StepFolder(const TempWorkspace& workspace, StepId id) {
  return fmt::format("{}/steps/{}", workspace.store(), id.value);
}

std::string OpenStepFolder(const TempWorkspace& workspace) {
  return workspace.store() + "/wal/in_progress";
}

std::vector<std::string> KeptDataOf(const TempWorkspace& workspace, StepId id) {
  const std::string folder = StepFolder(workspace, id);
  std::vector<std::string> files = FilesBelow(folder);
  std::erase(files, folder + "/journal");
  std::erase_if(files, [](const std::string& file) { return FileSize(file) == 0; });
  return files;
}

uint64_t DiskUsage(const std::string& dir, const std::set<uint64_t>& but) {
  const Fd top = Must(test::OpenDirectory(dir));
  std::set<uint64_t> seen = but;
  uint64_t bytes = 0;
  Must(test::WalkTree(top.get(), [&](const WalkEntry& entry) -> Status {
    if (seen.insert(entry.st.stx_ino).second) bytes += entry.st.stx_blocks * 512;
    return Ok();
  }));
  return bytes;
}

std::set<uint64_t> InodesBelow(const std::string& dir) {
  const Fd top = Must(test::OpenDirectory(dir));
  std::set<uint64_t> inodes;
  Must(test::WalkTree(top.get(), [&](const WalkEntry& entry) -> Status {
    inodes.insert(entry.st.stx_ino);
    return Ok();
  }));
  return inodes;
}

void FlipByte(const std::string& path, uint64_t offset) {
  const Fd file(MustCall(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open " + path));
  uint8_t byte = 0;
  MustCall(::pread(file.get(), &byte, 1, static_cast<off_t>(offset)), "read " + path);
  byte ^= 0x5a;
  MustCall(::pwrite(file.get(), &byte, 1, static_cast<off_t>(offset)), "write " + path);
}

uint64_t FileSize(const std::string& path) {
  struct stat st;
  MustCall(::stat(path.c_str(), &st), "stat " + path);
  return static_cast<uint64_t>(st.st_size);
}

std::string Noise(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (size_t at = 0; at < size; at += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + at, &state, std::min(size - at, sizeof state));
  }
  return bytes;
}

std::string FileSystemName(const std::string& path) {
  struct statfs info{};
  MustCall(::statfs(path.c_str(), &info), "statfs " + path);
  switch (static_cast<unsigned long>(info.f_type)) {
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case TMPFS_MAGIC:
      return "tmpfs";
    case BTRFS_SUPER_MAGIC:
      return "btrfs";
    case XFS_SUPER_MAGIC:
      return "xfs";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlayfs";
    default:
      return fmt::format("file system {:#x}", static_cast<unsigned long>(info.f_type));
  }
}

}  // namespace sandglass::undo

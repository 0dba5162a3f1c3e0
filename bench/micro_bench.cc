// The parts by size: keeping a preimage, compressing a pack, bringing content back, writing and
// promoting a journal, and the snapshot that the tests compare trees with. Times, not ratios.

#include <fcntl.h>

#include "base/io.h"
#include "bench/bench_project.h"
#include "bench/comparison.h"
#include "bench/registry.h"
#include "tests/support/must.h"
#include "tests/support/tree_snapshot.h"
#include "undo/pack.h"

namespace sandglass::bench {
namespace {

using test::Must;
using test::MustCall;
using undo::Outcome;
using undo::Ticket;
using undo::Truncate;
using undo::WriteVisibility;

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

Fd OpenPath(const std::string& path, int flags) {
  return Fd(MustCall(open(path.c_str(), flags | O_CLOEXEC, 0644), path));
}

// A project with one file of `bytes`, in a log that keeps two steps.
struct OneFile {
  explicit OneFile(int64_t bytes) : project(InlineOptions(2)), path(project.root() + "/file") {
    const std::string content = SampleContent(static_cast<size_t>(bytes));
    Must(WriteFully(OpenPath(path, O_WRONLY | O_CREAT).get(), AsBytes(content)));
  }
  // What an open without truncation makes the store keep: all of it, since no later write is seen.
  Ticket BeginWrite(const Fd& object) {
    return Must(project.interceptor().BeginOpenForWrite({object.get(), "file"}, Truncate::kNo,
                                                        WriteVisibility::kUnseen));
  }

  BenchProject project;
  std::string path;
};

void CapturePreimage(benchmark::State& state) {
  OneFile file(state.range(0));
  const Fd object = OpenPath(file.path, O_PATH);
  for (auto _ : state) {
    file.project.OpenStep();
    state.SetIterationTime(
        TimeOf([&] { Must(file.BeginWrite(object).Commit(Outcome::Done())); }).count());
    Must(file.project.log().AbortStep());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void RestoreContent(benchmark::State& state) {
  OneFile file(state.range(0));
  for (auto _ : state) {
    file.project.Step([&] {
      const Fd object = OpenPath(file.path, O_PATH);
      Ticket ticket = file.BeginWrite(object);
      Must(WriteFully(OpenPath(file.path, O_WRONLY).get(), AsBytes("changed")));
      Must(ticket.Commit(Outcome::Done()));
    });
    const auto restore = [&] { Must(file.project.log().Rollback(1)); };
    state.SetIterationTime(TimeOf(restore).count());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void CompressPack(benchmark::State& state) {
  const OneFile file(state.range(0));
  const Fd raw = OpenPath(file.path, O_RDONLY);
  const auto raw_bytes = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    const Fd out = OpenPath(file.project.plain_root() + "/pack", O_RDWR | O_CREAT | O_TRUNC);
    const auto compress = [&] { Must(undo::WriteCompressedPack(raw.get(), raw_bytes, out.get())); };
    state.SetIterationTime(TimeOf(compress).count());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Metadata alone is recorded, so that the journal is all there is to write.
void WriteJournal(benchmark::State& state) {
  BenchProject project(InlineOptions(2));
  const FileSet files(project.root(), "d", static_cast<size_t>(state.range(0)));
  files.ForEach([](const FileAt& at) { PlainCreate(at, ""); });
  std::vector<std::pair<Fd, std::string>> objects;
  files.ForEach([&](const FileAt& at) {
    objects.emplace_back(openat(at.dir, at.name.c_str(), O_PATH | O_CLOEXEC), at.path);
  });
  const auto touch_all = [&] {
    for (const auto& [object, path] : objects) {
      Must(Must(project.interceptor().BeginMetadata({object.get(), path})).Commit(Outcome::Done()));
    }
  };
  for (auto _ : state) state.SetIterationTime(TimeOf([&] { project.Step(touch_all); }).count());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void CaptureSnapshot(benchmark::State& state) {
  const test::TempWorkspace workspace;
  const FileSet files(workspace.project(), "d", static_cast<size_t>(state.range(0)));
  const std::string content = SampleContent(kKiB);
  files.ForEach([&](const FileAt& at) { PlainCreate(at, content); });
  for (auto _ : state) {
    state.SetIterationTime(TimeOf([&] { benchmark::DoNotOptimize(workspace.Snapshot()); }).count());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void Register(const char* name, void (*body)(benchmark::State&), std::vector<int64_t> sizes) {
  auto* family = benchmark::RegisterBenchmark(name, body);
  for (int64_t size : sizes) family->Arg(size);
  // The untimed part can be far longer than the timed one: many iterations would take for ever.
  family->UseManualTime()->Iterations(5)->Unit(benchmark::kMicrosecond);
}

}  // namespace

void RegisterMicro() {
  const std::vector<int64_t> bytes{4 * kKiB, kMiB, 100 * kMiB};
  Register("capture_preimage", CapturePreimage, bytes);
  Register("compress_pack", CompressPack, bytes);
  Register("restore_content", RestoreContent, bytes);
  Register("write_and_promote_journal", WriteJournal, {10, 100, 1'000});
  Register("capture_snapshot", CaptureSnapshot, {100, 1'000, 10'000});
}

}  // namespace sandglass::bench

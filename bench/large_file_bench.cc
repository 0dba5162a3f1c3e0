// One file of 1 GiB: what a small change costs the store, and what a truncation costs at all.

#include <fcntl.h>

#include <algorithm>

#include "base/io.h"
#include "bench/bench_project.h"
#include "bench/comparison.h"
#include "bench/registry.h"
#include "tests/support/must.h"

namespace sandglass::bench {
namespace {

using test::Must;
using test::MustCall;
using undo::ContentChange;
using undo::Outcome;
using undo::Ticket;
using undo::Truncate;
using undo::WriteVisibility;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;
constexpr uint64_t kChangeAt = kGiB / 2;
constexpr size_t kChangeBytes = 4096;

class LargeFile {
 public:
  LargeFile(BenchProject& project, std::string name, uint64_t bytes)
      : project_(project),
        name_(std::move(name)),
        root_(MustCall(open(project.root().c_str(), O_PATH | O_CLOEXEC), project.root())) {
    const Fd file = Open(O_WRONLY | O_CREAT);
    MustCall(fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)), "fallocate");
    // Allocated but never written blocks read as a hole, and a hole costs the store nothing.
    const uint64_t data_at = bytes > kChangeAt ? kChangeAt - kMiB : 0;
    Must(PWriteFully(file.get(), AsBytes(SampleContent(std::min(bytes, 2 * kMiB))),
                     static_cast<off_t>(data_at)));
  }

  Fd Open(int flags) const {
    return Fd(MustCall(openat(root_.get(), name_.c_str(), flags | O_CLOEXEC, 0644), name_));
  }

  void Change() const {
    const Fd file = Open(O_WRONLY);
    Ticket ticket = Must(project_.interceptor().BeginContent(
        {file.get(), name_}, ContentChange::Range(kChangeAt, kChangeBytes)));
    Must(PWriteFully(file.get(), AsBytes(std::string(kChangeBytes, 'x')), kChangeAt));
    Must(ticket.Commit(Outcome::Done()));
  }

  void CutToNothing() const {
    const Fd object = Open(O_PATH | O_NOFOLLOW);
    Ticket ticket = Must(project_.interceptor().BeginOpenForWrite(
        {object.get(), name_}, Truncate::kYes, WriteVisibility::kUnseen));
    const Fd file = Open(O_WRONLY | O_TRUNC);
    Must(ticket.Commit(Outcome::Done()));
  }

 private:
  BenchProject& project_;
  std::string name_;
  Fd root_;
};

// The ratio is the growth of the store in MiB.
void ChangeFourKiB(benchmark::State& state) {
  BenchProject project(InlineOptions(100));
  const LargeFile file(project, "large.bin", kGiB);
  for (auto _ : state) {
    const uint64_t before = BytesBelow(project.store());
    state.SetIterationTime(TimeOf([&] { project.Step([&] { file.Change(); }); }).count());
    const uint64_t growth = BytesBelow(project.store()) - before;
    ReportRatio(state, static_cast<double>(growth) / kMiB, 1);
    state.counters["growth_bytes"] = static_cast<double>(growth);
  }
}

// The twin of a file of 1 GiB is one of 1 MiB: a cost that does not depend on the size has ratio 1.
void TruncateGiB(benchmark::State& state) {
  BenchProject project(InlineOptions(100));
  const LargeFile large(project, "large.bin", kGiB), small(project, "small.bin", kMiB);
  bool used = false;
  uint64_t copied = 0;
  const auto restore = [&] {
    if (used) Must(project.log().Rollback(1));
    used = true;
    project.OpenStep();  // here and not in the timed part: it drops the redo of the rollback
  };
  const auto truncate = [&](const LargeFile& file) {
    file.CutToNothing();
    project.CloseStep();
    copied = std::max(copied, project.CopiedByNewestStep());
  };
  Compare(state, 3, {restore, [&] { truncate(large); }}, {restore, [&] { truncate(small); }});
  state.counters["copied_bytes"] = static_cast<double>(copied);
  if (copied != 0) state.SkipWithError("the truncation copied content");
}

}  // namespace

void RegisterLargeFile() {
  RegisterOnce("change_4_kib_in_1_gib", ChangeFourKiB);
  RegisterOnce("truncate_1_gib", TruncateGiB);
}

}  // namespace sandglass::bench

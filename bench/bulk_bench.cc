// 10,000 files of 4 KiB, through the interceptor and plainly. Ours are whole steps, from opening to
// closing them, with the log in its steady state: each step evicts an equal one, which happens in
// the background as it does for users, and all of that has ended before the clock stops.

#include <fmt/format.h>

#include "bench/bench_project.h"
#include "bench/comparison.h"
#include "bench/registry.h"
#include "tests/support/must.h"

namespace sandglass::bench {
namespace {

constexpr size_t kFiles = 10'000;
constexpr size_t kFileBytes = 4096;

// The work of one round comes as several steps, so that eviction runs beside the next one.
constexpr size_t kParts = 4;

// The same files twice: in a project with its log, and beside it.
struct Twins {
  BenchProject project{Keeping(kParts)};
  FileSet ours{project.root(), "d", kFiles};
  FileSet plain{project.plain_root(), "d", kFiles};
  std::string content = SampleContent(kFileBytes);

  template <class Work>
  void InSteps(const Work& work) {
    for (size_t part = 0; part < kParts; ++part) {
      project.Step([&] { ours.ForEachOfPart(part, kParts, work); });
    }
    project.log().WaitForBackground();
  }
  void CreateOurs() {
    InSteps([&](const FileAt& at) { BridgeCreate(project.interceptor(), at, content); });
  }
  void RemoveOurs() {
    InSteps([&](const FileAt& at) { BridgeRemove(project.interceptor(), at); });
  }
  void CreateIn(const FileSet& files) const {
    files.ForEach([&](const FileAt& at) { PlainCreate(at, content); });
  }
};

void Delete(benchmark::State& state) {
  Twins twins;
  Compare(state, 1.5, {[&] { twins.CreateIn(twins.ours); }, [&] { twins.RemoveOurs(); }},
          {[&] { twins.CreateIn(twins.plain); }, [&] { twins.plain.ForEach(PlainRemove); }});
}

// In new folders each round: ext4 gives no inode away that was freed within the last minute and
// looks at every one of them for each file that it creates, so that files deleted just before would
// be all that is measured.
void Create(benchmark::State& state) {
  Twins twins;
  int round = 0;
  const auto renew = [&](FileSet& files, const std::string& root) {
    files = FileSet(root, fmt::format("r{}_", round++), kFiles);
  };
  Compare(state, 1.4,
          {[&] { renew(twins.ours, twins.project.root()); }, [&] { twins.CreateOurs(); }},
          {[&] { renew(twins.plain, twins.project.plain_root()); },
           [&] { twins.CreateIn(twins.plain); }});
}

// A deleted file comes back by a rename out of the store, so moving files between folders is the
// plain twin. All files are of one step here.
void RollBackDelete(benchmark::State& state) {
  Twins twins;
  const FileSet elsewhere(twins.project.plain_root(), "e", kFiles);
  twins.CreateIn(twins.ours);
  twins.CreateIn(twins.plain);
  const auto remove_ours = [&] {
    twins.project.Step([&] {
      twins.ours.ForEach([&](const FileAt& at) { BridgeRemove(twins.project.interceptor(), at); });
    });
    twins.project.log().WaitForBackground();
  };
  const FileSet* from = &twins.plain;
  const FileSet* to = &elsewhere;
  const auto move_all = [&] {
    FileSet::ForEachPair(*from, *to, PlainRename);
    std::swap(from, to);
  };
  const auto roll_back = [&] { test::Must(twins.project.log().Rollback(1)); };
  // The emptied folders of the step go in the background afterwards: that must not slow the plain twin down.
  const auto rest = [&] { twins.project.log().WaitForBackground(); };
  Compare(state, 1.5, {remove_ours, roll_back}, {rest, move_all});
}

using BridgeChange = void (*)(undo::Interceptor&, const FileAt&, std::string_view);
using PlainChange = void (*)(const FileAt&, std::string_view);

void ChangeAll(benchmark::State& state, double limit, BridgeChange bridge, PlainChange plainly) {
  Twins twins;
  twins.CreateIn(twins.ours);
  twins.CreateIn(twins.plain);
  const auto ours = [&] {
    twins.InSteps(
        [&](const FileAt& at) { bridge(twins.project.interceptor(), at, twins.content); });
  };
  const auto plain = [&] {
    twins.plain.ForEach([&](const FileAt& at) { plainly(at, twins.content); });
  };
  Compare(state, limit, {{}, ours}, {{}, plain});
}

void Overwrite(benchmark::State& state) { ChangeAll(state, 2.2, BridgeOverwrite, PlainOverwrite); }
void Patch(benchmark::State& state) { ChangeAll(state, 0, BridgePatch, PlainPatch); }

}  // namespace

void RegisterBulk() {
  RegisterOnce("delete_10000_files", Delete);
  RegisterOnce("roll_back_delete_10000_files", RollBackDelete);
  RegisterOnce("overwrite_10000_files", Overwrite);
  RegisterOnce("patch_10000_files_in_place", Patch);
  RegisterOnce("create_10000_files", Create);
}

}  // namespace sandglass::bench

// 10,000 files of 4 KiB, through the interceptor and plainly. Every timed part of ours is a whole
// step, from opening to closing it, and evicts an equal one: the log is in its steady state.

#include "bench/bench_project.h"
#include "bench/comparison.h"
#include "bench/registry.h"
#include "tests/support/must.h"

namespace sandglass::bench {
namespace {

constexpr size_t kFiles = 10'000;
constexpr size_t kFileBytes = 4096;

// The same files twice: in a project with its log, and beside it.
struct Twins {
  explicit Twins(uint32_t max_steps) : project(InlineOptions(max_steps)) {}

  BenchProject project;
  FileSet ours{project.root(), "d", kFiles};
  FileSet plain{project.plain_root(), "d", kFiles};
  std::string content = SampleContent(kFileBytes);

  void CreateOurs() {
    project.Step([&] {
      ours.ForEach([&](const FileAt& at) { BridgeCreate(project.interceptor(), at, content); });
    });
  }
  void RemoveOurs() {
    project.Step(
        [&] { ours.ForEach([&](const FileAt& at) { BridgeRemove(project.interceptor(), at); }); });
  }
  void CreatePlain() {
    plain.ForEach([&](const FileAt& at) { PlainCreate(at, content); });
  }
  void RemovePlain() { plain.ForEach(PlainRemove); }
};

// Steps that create and steps that delete alternate, and two are kept: each evicts one of its kind.
constexpr uint32_t kTwoKinds = 2;

void Delete(benchmark::State& state) {
  Twins twins(kTwoKinds);
  Compare(state, 1.5, {[&] { twins.CreateOurs(); }, [&] { twins.RemoveOurs(); }},
          {[&] { twins.CreatePlain(); }, [&] { twins.RemovePlain(); }});
}

void Create(benchmark::State& state) {
  Twins twins(kTwoKinds);
  twins.CreateOurs();
  twins.CreatePlain();
  Compare(state, 1.4, {[&] { twins.RemoveOurs(); }, [&] { twins.CreateOurs(); }},
          {[&] { twins.RemovePlain(); }, [&] { twins.CreatePlain(); }});
}

// A deleted file comes back by a rename out of the store, so moving files between folders is the
// plain twin.
void RollBackDelete(benchmark::State& state) {
  Twins twins(kTwoKinds);
  const FileSet elsewhere(twins.project.plain_root(), "e", kFiles);
  twins.CreateOurs();
  twins.CreatePlain();
  const FileSet* from = &twins.plain;
  const FileSet* to = &elsewhere;
  const auto move_all = [&] {
    FileSet::ForEachPair(*from, *to, PlainRename);
    std::swap(from, to);
  };
  Compare(state, 1.5,
          {[&] { twins.RemoveOurs(); }, [&] { test::Must(twins.project.log().Rollback(1)); }},
          {{}, move_all});
}

using BridgeChange = void (*)(undo::Interceptor&, const FileAt&, std::string_view);
using PlainChange = void (*)(const FileAt&, std::string_view);

void ChangeAll(benchmark::State& state, double limit, BridgeChange bridge, PlainChange plainly) {
  Twins twins(1);
  twins.CreateOurs();
  twins.CreatePlain();
  const auto ours = [&] {
    twins.project.Step([&] {
      twins.ours.ForEach(
          [&](const FileAt& at) { bridge(twins.project.interceptor(), at, twins.content); });
    });
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

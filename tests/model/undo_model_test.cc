// Random sequences of operations, judged by whole-tree snapshots. See model_run.h for what is promised and settings.h for how
// to run more of them or one of them again.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/model/command.h"
#include "tests/model/counts.h"
#include "tests/model/isolated_run.h"
#include "tests/model/model_run.h"
#include "tests/model/settings.h"
#include "tests/model/verdict.h"

namespace sandglass::model {
namespace {

constexpr size_t kCommandsDrawn = 300;  // more than a sequence needs: some find nothing to act on
constexpr std::chrono::seconds kPatience{120};

// Fewer commands first, then simpler ones.
rc::Seq<Sequence> Shrink(const Sequence& sequence) {
  const auto simplify = [](const Command& command) {
    return rc::seq::fromContainer(Simplify(command));
  };
  return rc::seq::map(rc::seq::concat(rc::shrink::removeChunks(sequence.commands),
                                      rc::shrink::eachElement(sequence.commands, simplify)),
                      [sequence](Commands commands) {
                        Sequence shrunk = sequence;
                        shrunk.commands = std::move(commands);
                        return shrunk;
                      });
}

// Not by RapidCheck's own generators, because these scale with a size that grows from case to case.
rc::Gen<Sequence> AnySequence() {
  return [](const rc::Random& random, int) {
    rc::Random source(random);
    Sequence sequence = SequenceFrom(source.next());
    for (size_t i = 0; i < kCommandsDrawn; ++i)
      sequence.commands.push_back(CommandFrom(source.next()));
    return rc::shrinkable::shrinkRecur(sequence, &Shrink);
  };
}

std::optional<std::string> Failure(const test::TempWorkspace& workspace, Counts& counts,
                                   const Sequence& sequence) {
  ModelRun run(workspace, counts, sequence);
  const Status status = run.Run();
  if (!status.ok()) {
    return fmt::format("{}\nWhat happened:\n{}", status.error().message(), run.trace().Text());
  }
  if (sequence.commands.size() == kCommandsDrawn) counts.AddSequence(run.operations(), run.steps());
  return std::nullopt;
}

// One sequence; shrunk when it fails.
rc::detail::TestResult CheckSequence(const Settings& settings, uint64_t seed, Counts& counts) {
  rc::detail::TestParams params;
  params.seed = seed;
  params.disableShrinking = !settings.shrink;
  params.maxSuccess = 1;
  std::string kind;
  return rc::detail::checkTestable(
      [&] {
        const Sequence sequence = *AnySequence();
        const test::TempWorkspace workspace;
        const auto failure =
            RunIsolated([&] { return Failure(workspace, counts, sequence); }, kPatience);
        if (!failure) return;
        // Shrinking must not end at some other fault.
        if (kind.empty()) kind = KindOf(*failure);
        if (kind == KindOf(*failure)) RC_FAIL(*failure);
      },
      rc::detail::TestMetadata{}, params);
}

std::string Explain(const rc::detail::TestResult& result, uint64_t seed) {
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  text << "\nAgain: SANDGLASS_MODEL_SEED=" << seed << " SANDGLASS_MODEL_SEQUENCES=1\n";
  return text.str();
}

void WriteReport(const Settings& settings, const Counts& counts) {
  if (settings.report.empty()) return;
  struct stat st;
  const bool folder = stat(settings.report.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
  const std::string fs = settings.file_system.empty() ? "default" : settings.file_system;
  std::ofstream out(folder ? fmt::format("{}/{}.json", settings.report, fs) : settings.report);
  out << CountsJson(counts, settings.seed, fs);
  EXPECT_TRUE(out.flush().good()) << settings.report;
}

TEST(UndoModel, RandomSequencesRollBackRedoAndRestoreExactly) {
  const Settings settings = Settings::FromEnvironment();
  const SharedCounts counts;
  std::printf("%lu sequences from seed %lu\n", settings.sequences, settings.seed);
  for (uint64_t i = 0; i < settings.sequences; ++i) {
    const auto result = CheckSequence(settings, settings.seed + i, *counts);
    ASSERT_TRUE(result.is<rc::detail::SuccessResult>()) << Explain(result, settings.seed + i);
    if ((i + 1) % 1000 == 0) std::printf("%lu sequences done\n", i + 1);
    std::fflush(stdout);
  }
  std::printf("%s", CountsTable(*counts).c_str());
  WriteReport(settings, *counts);
  EXPECT_EQ(counts->sequences, settings.sequences);
  EXPECT_GE(counts->shortest_sequence, 30u);
  EXPECT_GE(counts->fewest_steps, 3u);
  for (const std::string& rare : TooRare(*counts, settings.required))
    ADD_FAILURE() << "too rare: " << rare;
}

}  // namespace
}  // namespace sandglass::model

// A second thread swaps the path of a call between the moment in which it is judged and the moment in which the kernel reads it again.
// Whatever is done to the project that way must have been recorded, so that the step's rollback takes it back.
//
// SANDGLASS_SCALE=full: 10,000 tries.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/security/victim_world.h"

namespace sandglass::test {
namespace {

constexpr int kSampledTries = 1000, kAllTries = 10'000;

int Tries() {
  const char* scale = std::getenv("SANDGLASS_SCALE");
  return scale != nullptr && std::string_view(scale) == "full" ? kAllTries : kSampledTries;
}

class SecurityRace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
  }
};

// Files that stayed although the step was rolled back.
int FilesLeft(const TempWorkspace& workspace) {
  int left = 0;
  DIR* const folder = ::opendir(workspace.Path("race").c_str());
  while (const dirent* entry = ::readdir(folder)) left += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return left;
}

int UnrecordedCreations(Removed removed, int tries) {
  VictimWorld world(removed);
  const bool whole = world.RunAndRollBack("swap_into_project", "PROJECT/race", tries);
  return whole ? FilesLeft(world.workspace()) : 1;
}

template <class Changed>
int CountFiles(int files, const Changed& changed) {
  int count = 0;
  for (int i = 0; i < files; ++i) count += changed("files/" + std::to_string(i)) ? 1 : 0;
  return count;
}

constexpr int kFilesPerRun = 400;

int UnrecordedModes(Removed removed) {
  VictimWorld world(removed);
  if (!world.RunOverTwoSteps("swap_chmod", kFilesPerRun)) return 1;
  return CountFiles(kFilesPerRun, [&](const std::string& path) {
    return (world.workspace().Stat(path).st_mode & 0777) == 0600;
  });
}

int UnrecordedWrites(Removed removed) {
  VictimWorld world(removed);
  if (!world.RunOverTwoSteps("swap_open", kFilesPerRun)) return 1;
  return CountFiles(kFilesPerRun, [&](const std::string& path) {
    return world.workspace().ReadFile(path) != "old";
  });
}

// One run has only so many files; without the protection a few runs must show it.
template <class Run>
int Sum(const Run& run, int tries) {
  int sum = 0;
  for (int done = 0; done < tries; done += kFilesPerRun) sum += run();
  return sum;
}

TEST_F(SecurityRace, SwappingIntoTheProjectMeetsTheReadOnlyMount) {
  EXPECT_EQ(UnrecordedCreations(Removed::kNothing, Tries()), 0);
}

TEST_F(SecurityRace, SwappingIntoTheProjectWorksWithoutTheReadOnlyMount) {
  EXPECT_GT(UnrecordedCreations(Removed::kReadOnlyProject, Tries()), 0);
}

TEST_F(SecurityRace, SwappingForAnOldDescriptorChangesNoModeUnrecorded) {
  EXPECT_EQ(Sum([] { return UnrecordedModes(Removed::kNothing); }, Tries()), 0);
}

TEST_F(SecurityRace, SwappingForAnOldDescriptorChangesModesWhereChmodIsNative) {
  EXPECT_GT(UnrecordedModes(Removed::kRuleForChmod), 0);
}

TEST_F(SecurityRace, SwappingForAnOldDescriptorWritesNothingUnrecorded) {
  EXPECT_EQ(Sum([] { return UnrecordedWrites(Removed::kNothing); }, Tries()), 0);
}

TEST_F(SecurityRace, SwappingForAnOldDescriptorWritesWithoutTheLockOnWriting) {
  EXPECT_GT(Sum([] { return UnrecordedWrites(Removed::kWriteLock); }, 2 * Tries()), 0);
}

}  // namespace
}  // namespace sandglass::test

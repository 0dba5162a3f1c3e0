// Limits by their effect, and how their means are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/world/world_client.h"
#include "world/local/cgroups.h"
#include "world/local/id_maps.h"

namespace sandglass::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using world::CgroupVersion;

TEST(WorldCgroups, OfVersionTwoAreMadeInOurOwnGroupOrBesideIt) {
  constexpr char kMounts[] =
      "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const auto places = world::FindCgroupPlaces(kMounts, "0::/user.slice/app.scope\n", "memory");
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].folder, "/sys/fs/cgroup/user.slice/app.scope");
  EXPECT_EQ(places[1].folder, "/sys/fs/cgroup/user.slice");
  EXPECT_EQ(places[1].version, CgroupVersion::kTwo);
}

TEST(WorldCgroups, OfVersionOneAreMadeInTheHierarchyOfTheirController) {
  constexpr char kMounts[] =
      "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "32 25 0:28 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  constexpr char kOwn[] = "4:memory:/box/inner\n1:cpu,cpuacct:/\n";
  const auto memory = world::FindCgroupPlaces(kMounts, kOwn, "memory");
  ASSERT_EQ(memory.size(), 1u);
  EXPECT_EQ(memory[0].folder, "/sys/fs/cgroup/memory/inner");
  EXPECT_EQ(memory[0].version, CgroupVersion::kOne);
  EXPECT_EQ(world::FindCgroupPlaces(kMounts, kOwn, "cpu").at(0).folder,
            "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_TRUE(world::FindCgroupPlaces(kMounts, kOwn, "pids").empty());
}

// Two groups of version 2 would not do: who joins the second one leaves the first.
TEST(WorldCgroups, OneGroupTakesSeveralLimits) {
  const TempWorkspace files;  // what the kernel would put into a group
  for (const char* name : {"memory.max", "cpu.max", "pids.max"}) files.WriteFile(name, "max");
  const std::string group = files.project();
  ASSERT_TRUE(world::LimitCgroup(group, CgroupVersion::kTwo, "memory", 1 << 20).ok());
  ASSERT_TRUE(world::LimitCgroup(group, CgroupVersion::kTwo, "cpu", 500).ok());
  EXPECT_EQ(files.ReadFile("memory.max").substr(0, 7), "1048576");
  EXPECT_EQ(files.ReadFile("cpu.max"), "50000 100000");
  EXPECT_FALSE(world::LimitCgroup(group + "/none", CgroupVersion::kTwo, "pids", 1).ok());
}

TEST(WorldIds, AreThoseOfTheHost) {
  EXPECT_EQ(world::IdentityMap("         0          0 4294967295\n"), "0 0 4294967295\n");
  EXPECT_EQ(world::IdentityMap("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
  EXPECT_EQ(world::IdentityMap("nonsense"), "");
}

class WorldLimit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
  }
  // "": it can be enforced here.
  static std::string WhyNot(const world::Limits& limits) {
    const auto prepared = world::EnforcedLimits::Prepare(limits);
    return prepared.ok() ? "" : prepared.error().message();
  }
};

TEST_F(WorldLimit, OfFileSizeHolds) {
  TestWorld world([](world::LocalWorldSpec& spec) { spec.limits.file_bytes = 10'000; });
  EXPECT_EQ(world.Run("head -c 10000 /dev/zero >/tmp/x").exit_code, 0);
  EXPECT_NE(world.Run("head -c 10001 /dev/zero >/tmp/x").exit_code, 0);
  EXPECT_THAT(world.world().notes(), Contains("file size limit: RLIMIT_FSIZE"));
  EXPECT_THAT(world.world().notes(), Contains("not limited: memory, cpu, processes"));
}

TEST_F(WorldLimit, OfProcessesHolds) {
  const world::Limits limits{.pids = 12};
  if (const std::string why = WhyNot(limits); !why.empty()) GTEST_SKIP() << why;
  TestWorld world([&](world::LocalWorldSpec& spec) { spec.limits = limits; });
  EXPECT_EQ(world.Run("true").exit_code, 0);
  const Ran ran = world.Run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait");
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("fork"));
  EXPECT_THAT(world.world().notes(), Contains(StartsWith("process limit: ")));
}

TEST_F(WorldLimit, OfMemoryHolds) {
  const world::Limits limits{.memory_bytes = 64u << 20};
  if (const std::string why = WhyNot(limits); !why.empty()) GTEST_SKIP() << why;
  TestWorld world([&](world::LocalWorldSpec& spec) { spec.limits = limits; });
  EXPECT_EQ(world.Run("python3 -c 'x = bytearray(8 << 20)'").exit_code, 0);
  EXPECT_EQ(world.Run("python3 -c 'x = bytearray(200 << 20)'").exit_code, 128 + SIGKILL);
  EXPECT_THAT(world.world().notes(), Contains(StartsWith("memory limit: cgroup v")));
}

TEST_F(WorldLimit, OfCpusHolds) {
  const world::Limits limits{.cpus = 0.2};
  if (const std::string why = WhyNot(limits); !why.empty()) GTEST_SKIP() << why;
  TestWorld world([&](world::LocalWorldSpec& spec) { spec.limits = limits; });
  const Ran ran = world.Run(
      "python3 -c 'import time\nend = time.time() + 1\nwhile time.time() < end: pass\n"
      "print(int(time.process_time() * 1000))'");
  EXPECT_LT(std::stoi(ran.out), 500);
}

TEST_F(WorldLimit, ThatCannotBeEnforcedIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may make control groups";
  const std::string why = WhyNot({.memory_bytes = 1u << 30});
  if (why.empty()) GTEST_SKIP() << "this user may make control groups";
  EXPECT_THAT(why, StartsWith("memory limit cannot be enforced here: "));
}

TEST_F(WorldLimit, ThatMakesNoSenseIsRefused) {
  EXPECT_EQ(WhyNot({.pids = 0}), "process limit: zero");
  EXPECT_EQ(WhyNot({.cpus = -1.0}), "cpu limit: less than 0.01 or too large");
}

TEST_F(WorldLimit, GroupsGoWithTheWorld) {
  const world::Limits limits{.pids = 100};
  if (::geteuid() != 0 || !WhyNot(limits).empty()) GTEST_SKIP() << "no control groups";
  const std::string folder = world::FindCgroupPlaces("pids").back().folder;
  const auto count = [&] {
    return std::system(("ls -d " + folder + "/sandglass-" + std::to_string(::getpid()) +
                        "-* >/dev/null 2>&1")
                           .c_str()) == 0;
  };
  {
    TestWorld world([&](world::LocalWorldSpec& spec) { spec.limits = limits; });
    EXPECT_TRUE(count());
  }
  EXPECT_FALSE(count());
}

}  // namespace
}  // namespace sandglass::test

#include "session/upper_folders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session {
namespace {

using test::Must;
using test::MustCall;

TEST(UpperFolders, WhatIsInUseStaysAndTheRestIsRemoved) {
  const test::TempWorkspace space;
  const LockedFolder used = Must(MakeLockedFolder(space.root(), "upper-"));
  std::string left;
  {
    LockedFolder forgotten = Must(MakeLockedFolder(space.root(), "upper-"));
    left = forgotten.path;
    MustCall(::mkdir((left + "/in").c_str(), 0700), left);
  }
  RemoveUnused(space.root(), "upper-");
  EXPECT_EQ(::access(used.path.c_str(), F_OK), 0);
  EXPECT_NE(::access(left.c_str(), F_OK), 0);
}

size_t EntriesOf(const std::string& folder) {
  std::error_code error;
  size_t entries = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    ++entries;
  return entries;
}

// Whoever got the lock meanwhile would lose what he puts there.
TEST(UpperFolders, NobodyGetsOneThatIsBeingRemoved) {
  constexpr size_t kEntries = 500;
  const test::TempWorkspace space;
  const std::string left = Must(MakeLockedFolder(space.root(), "upper-")).path;
  for (size_t i = 0; i < kEntries; ++i)
    MustCall(::mkdir(fmt::format("{}/{}", left, i).c_str(), 0700), left);
  std::thread remover([&] { RemoveUnused(space.root(), "upper-"); });
  while (EntriesOf(left) == kEntries) std::this_thread::yield();
  bool got = false;
  while (!got && ::access(left.c_str(), F_OK) == 0) got = LockFolder(left).ok();
  EXPECT_FALSE(got);
  remover.join();
  EXPECT_EQ(LockFolder(left).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace sandglass::session

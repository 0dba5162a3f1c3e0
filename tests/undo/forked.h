// Code in a child process whose verdict counts: failures of GoogleTest in the child fail the test in the parent. For what a
// process cannot do to itself: die in the middle of a step, give up its rights, or change its view of the mounts.
//
// Fork before the test opens a log of its own: a child has no threads but the one that forked.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/support/temp_workspace.h"

namespace sandglass::undo {

enum class Who {
  kSelf,
  kOrdinaryUser,  // without any right over others' files; the same as kSelf when the tests are not run by root
};

inline constexpr unsigned kOrdinaryUid = 65534;

bool RunningAsRoot();

// Runs `body` in a child and waits for it.
void RunForked(const std::function<void()>& body, Who who = Who::kSelf);

// The same for a `body` that ends with DieNow(): anything else fails the test.
void RunUntilDeath(const std::function<void()>& body, Who who = Who::kSelf);
// SIGKILL, at once and without a destructor; an ordinary exit instead when an assertion has failed so far.
[[noreturn]] void DieNow();

// Why this process cannot have mounts of its own, as the reason of a skip; nothing when it can.
std::optional<std::string> WhyNoPrivateMounts();
// Runs `body` in a child with a mount namespace of its own; what it mounts is gone with it.
void RunWithPrivateMounts(const std::function<void()>& body);

// Gives the workspace with all in it to the ordinary user.
void GiveToOrdinaryUser(const test::TempWorkspace& workspace);

}  // namespace sandglass::undo

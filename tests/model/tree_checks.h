// Questions about two snapshots of a tree. Pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "tests/support/tree_snapshot.h"

namespace sandglass::model {

// Either may be null: not there.
bool SameContent(const test::EntrySnapshot* a, const test::EntrySnapshot* b);
bool SameAttributes(const test::EntrySnapshot& a, const test::EntrySnapshot& b);
bool SameEntry(const test::EntrySnapshot* a, const test::EntrySnapshot* b);

std::set<std::string> AllPaths(const test::TreeSnapshot& a, const test::TreeSnapshot& b);

// Every path that names the same object as something at or below `top`, and every directory above one of them: all that a
// change of `top` may show in.
std::set<std::string> Neighbourhood(const test::TreeSnapshot& tree, const std::string& top);

// What is different in the directories above `path`, but for their times, which a change below them moves. Empty: nothing.
std::string ChangedAbove(const test::TreeSnapshot& before, const test::TreeSnapshot& after,
                         std::string_view path);

// A forced rewind may keep or drop a person's edit, and the edited object may have had another name before the step: the
// paths of which nothing is promised then.
std::set<std::string> UncertainAfterForce(const test::TreeSnapshot& before,
                                          const test::TreeSnapshot& after,
                                          const std::string& edited);

// A name under which a forced rewind saved what a person had put in its way.
bool IsSavedAside(std::string_view path);

}  // namespace sandglass::model

// The steps that crash scenarios are made of, each a handful of operations on the fixture.
#pragma once

#include <string_view>
#include <vector>

#include "tests/crash/stage.h"

namespace sandglass::crash {

struct WorkRow {
  std::string_view name;
  std::string_view about;
  Status (*work)(ProjectOps& ops, const Means& means);
};

// In the order of growing complexity. Static data.
std::span<const WorkRow> AllWorks();

// A bit of everything.
Status MixedWork(ProjectOps& ops, const Means& means);
// Two more steps that can follow it and each other.
Status SecondWork(ProjectOps& ops, const Means& means);
Status ThirdWork(ProjectOps& ops, const Means& means);
// Only what is kept as large: moved inodes, copies and clones.
Status LargeWork(ProjectOps& ops, const Means& means);
// Fills the pack with text.
Status PackedWork(ProjectOps& ops, const Means& means);

}  // namespace sandglass::crash

// Command: one line of a random sequence. It names no exact path: it holds numbers that pick among what exists when its turn
// comes, so that a sequence stays meaningful when shrinking takes lines out of it. Value types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace sandglass::model {

enum class Op : uint8_t {
  kCreate,
  kWriteNew,
  kOverwrite,
  kWriteUnseen,
  kWriteAnnounced,
  kAppendUnseen,
  kAppendAnnounced,
  kTruncateUp,
  kTruncateDown,
  kPunchHole,
  kFallocate,
  kCopyRange,
  kMmapWrite,
  kRenameWithin,
  kRenameAcross,
  kRenameOver,
  kRenameExchange,
  kRenameDirectory,
  kHardLink,
  kWriteOtherLink,
  kUnlinkOneLink,
  kUnlinkLast,
  kUnlinkOpen,
  kRelinkOpen,
  kRelinkGone,
  kOpenUnchanged,
  kKeepOpen,
  kWriteKept,
  kCloseKept,
  kMkdir,
  kRmdir,
  kRemoveTree,
  kRecreateName,
  kStage,
  kPassThrough,
  kSymlink,
  kMknod,
  kChmod,
  kChown,
  kUtimes,
  kSetXattr,
  kRemoveXattr,
  kSetFlags,
  kFailing,
  kAmbient,
  kWriteBetween,
  kEndStep,
  kAbortStep,
  kRollback,
  kRedo,
  kRestore,
  kExternalEdit,
  kReopen,
  kCount,
};
inline constexpr size_t kOpCount = static_cast<size_t>(Op::kCount);

enum class OpFamily : uint8_t {
  kChange,   // changes the project
  kNeutral,  // belongs into a step but changes nothing by itself
  kControl,  // drives the log
};

struct OpInfo {
  Op op;
  const char* name;
  uint8_t weight;  // how often it is drawn
  OpFamily family;
};

// In the order of Op.
inline constexpr std::array<OpInfo, kOpCount> kOps = {{
    {Op::kCreate, "create", 3, OpFamily::kChange},
    {Op::kWriteNew, "write new file", 6, OpFamily::kChange},
    {Op::kOverwrite, "overwrite (O_TRUNC)", 3, OpFamily::kChange},
    {Op::kWriteUnseen, "write at offset, unseen", 3, OpFamily::kChange},
    {Op::kWriteAnnounced, "write at offset, announced", 4, OpFamily::kChange},
    {Op::kAppendUnseen, "append, unseen", 2, OpFamily::kChange},
    {Op::kAppendAnnounced, "append, announced", 2, OpFamily::kChange},
    {Op::kTruncateUp, "truncate up", 2, OpFamily::kChange},
    {Op::kTruncateDown, "truncate down", 3, OpFamily::kChange},
    {Op::kPunchHole, "punch hole", 2, OpFamily::kChange},
    {Op::kFallocate, "fallocate", 1, OpFamily::kChange},
    {Op::kCopyRange, "copy range", 2, OpFamily::kChange},
    {Op::kMmapWrite, "mmap write", 2, OpFamily::kChange},
    {Op::kRenameWithin, "rename within directory", 2, OpFamily::kChange},
    {Op::kRenameAcross, "rename across directories", 2, OpFamily::kChange},
    {Op::kRenameOver, "rename over", 3, OpFamily::kChange},
    {Op::kRenameExchange, "rename exchange", 2, OpFamily::kChange},
    {Op::kRenameDirectory, "rename directory, change inside", 3, OpFamily::kChange},
    {Op::kHardLink, "hard link", 3, OpFamily::kChange},
    {Op::kWriteOtherLink, "write through the other link", 2, OpFamily::kChange},
    {Op::kUnlinkOneLink, "unlink one link", 2, OpFamily::kChange},
    {Op::kUnlinkLast, "unlink last link", 3, OpFamily::kChange},
    {Op::kUnlinkOpen, "unlink while open, go on writing", 2, OpFamily::kChange},
    {Op::kRelinkOpen, "relink open file", 2, OpFamily::kChange},
    {Op::kRelinkGone, "relink file without a name", 2, OpFamily::kChange},
    {Op::kOpenUnchanged, "open for writing, write nothing", 2, OpFamily::kNeutral},
    {Op::kKeepOpen, "keep a file open", 3, OpFamily::kNeutral},
    {Op::kWriteKept, "write to a file kept open", 4, OpFamily::kChange},
    {Op::kCloseKept, "close a file kept open", 1, OpFamily::kNeutral},
    {Op::kMkdir, "mkdir", 4, OpFamily::kChange},
    {Op::kRmdir, "rmdir", 2, OpFamily::kChange},
    {Op::kRemoveTree, "remove tree", 1, OpFamily::kChange},
    {Op::kRecreateName, "delete and recreate one name", 2, OpFamily::kChange},
    {Op::kStage, "build in a staging folder", 2, OpFamily::kChange},
    {Op::kPassThrough, "move through a staging folder", 2, OpFamily::kChange},
    {Op::kSymlink, "symlink", 2, OpFamily::kChange},
    {Op::kMknod, "mknod", 1, OpFamily::kChange},
    {Op::kChmod, "chmod", 2, OpFamily::kChange},
    {Op::kChown, "chown", 2, OpFamily::kChange},
    {Op::kUtimes, "utimes", 2, OpFamily::kChange},
    {Op::kSetXattr, "set xattr", 2, OpFamily::kChange},
    {Op::kRemoveXattr, "remove xattr", 2, OpFamily::kChange},
    {Op::kSetFlags, "set flags", 1, OpFamily::kChange},
    {Op::kFailing, "operation that fails", 2, OpFamily::kNeutral},
    {Op::kAmbient, "change outside of a step", 1, OpFamily::kControl},
    {Op::kWriteBetween, "write to a kept file between steps", 2, OpFamily::kControl},
    {Op::kEndStep, "end step", 2, OpFamily::kControl},
    {Op::kAbortStep, "abort step", 1, OpFamily::kControl},
    {Op::kRollback, "rollback", 3, OpFamily::kControl},
    {Op::kRedo, "redo", 3, OpFamily::kControl},
    {Op::kRestore, "restore a path", 2, OpFamily::kControl},
    {Op::kExternalEdit, "external edit", 2, OpFamily::kControl},
    {Op::kReopen, "reopen log", 1, OpFamily::kControl},
}};
inline const OpInfo& InfoOf(Op op) { return kOps[static_cast<size_t>(op)]; }

struct Command {
  Op op = Op::kCreate;
  uint16_t path = 0;   // picks what it acts on
  uint16_t other = 0;  // picks the second path of operations with two
  uint32_t salt = 0;   // decides everything else; 0 is the simplest

  friend bool operator==(const Command&, const Command&) = default;
};
using Commands = std::vector<Command>;

// A whole test case.
struct Sequence {
  uint32_t salt = 0;           // of the planted project, and of the log's options
  uint32_t most_per_step = 0;  // operations, before a step is ended
  uint32_t directories = 0;    // how many are used: the fewer, the more often operations meet
  Commands commands;

  // Enough for three steps.
  uint64_t operations_wanted() const { return 3 * uint64_t{most_per_step} + 1; }
};

std::ostream& operator<<(std::ostream& out, const Command& command);
std::ostream& operator<<(std::ostream& out, const Sequence& sequence);

// A command from 64 random bits, by the weights of kOps.
Command CommandFrom(uint64_t bits);
// A sequence without commands, from 64 random bits.
Sequence SequenceFrom(uint64_t bits);
// Simpler commands of the same kind, the simplest first.
std::vector<Command> Simplify(const Command& command);

// Small deterministic choices within one command.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  // 0 <= result < bound. Always 0 for the seed 0, so that shrinking leads to the first choice.
  uint32_t Below(uint32_t bound);
  bool OneIn(uint32_t n) { return Below(n) == n - 1; }

 private:
  uint64_t state_;
};

}  // namespace sandglass::model

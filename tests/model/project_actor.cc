#include "tests/model/project_actor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/io.h"
#include "base/rel_path.h"
#include "tests/support/fixtures.h"
#include "tests/support/tree_builder.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::model {

using undo::NodeType;
using undo::RenameMode;
using undo::WriteVisibility;

namespace {

constexpr uint32_t kKiB = 1024;
constexpr uint64_t kLarge = 256 * kKiB;  // from here on the store does not copy into its pack
constexpr uint64_t kMaxFile = 1536 * kKiB;
constexpr size_t kMaxKept = 4;
constexpr const char* kXattr = "user.model";

// One of the sizes at which keeping content works differently.
uint64_t SomeSize(Dice& dice) {
  switch (dice.Below(6)) {
    case 0:
      return dice.Below(64);
    case 1:
      return 1 + dice.Below(300);
    case 2:
      return 4 * kKiB;
    case 3:
      return 90 * kKiB + dice.Below(20 * kKiB);
    case 4:
      return kLarge + dice.Below(3);  // around the threshold
    default:
      return 300 * kKiB + dice.Below(400 * kKiB);
  }
}

uint64_t SomeLength(Dice& dice) {
  switch (dice.Below(4)) {
    case 0:
      return 1 + dice.Below(16);
    case 1:
      return 4 * kKiB;
    case 2:
      return 1 + dice.Below(5000);
    default:
      return 70 * kKiB;  // more than one block of a range
  }
}

// Within the file, at a block's edge, at its end, or behind a new hole.
uint64_t SomeOffset(Dice& dice, uint64_t size) {
  switch (dice.Below(5)) {
    case 0:
      return 0;
    case 1:
      return size / 2;
    case 2:
      return size > 64 * kKiB ? 64 * kKiB - 1 : size / 3;
    case 3:
      return size;
    default:
      return size + 1 + dice.Below(80 * kKiB);
  }
}

std::string Shown(const std::string& path) { return path.empty() ? "." : test::Printable(path); }

bool IsFile(const Spot& spot) { return spot.is_file(); }
bool IsFileWithContent(const Spot& spot) { return spot.is_file() && spot.size() > 0; }
bool IsLargeFile(const Spot& spot) { return spot.is_file() && spot.size() >= kLarge; }
bool IsSmallEnough(const Spot& spot) { return spot.is_file() && spot.size() < kMaxFile; }
bool IsOther(const Spot& spot) { return spot.is_other(); }
bool IsDirectory(const Spot& spot) { return spot.is_directory(); }
bool Exists(const Spot& spot) { return spot.exists; }
bool IsFree(const Spot& spot) { return spot.free(); }
bool IsFreeForFile(const Spot& spot) { return spot.free() && !spot.for_directory; }
bool IsFreeForDirectory(const Spot& spot) { return spot.free() && spot.for_directory; }

// A file that fits; large ones are preferred now and then, because few files are large.
const Spot* PickFile(const Inventory& inventory, uint32_t choice, Dice& dice,
                     const Inventory::Predicate& fits) {
  if (dice.OneIn(3)) {
    const Spot* large =
        inventory.Pick(choice, [&](const Spot& spot) { return IsLargeFile(spot) && fits(spot); });
    if (large != nullptr) return large;
  }
  return inventory.Pick(choice, fits);
}

}  // namespace

std::string Pattern(uint32_t salt, size_t length) {
  std::string bytes(length, '\0');
  uint64_t state = (uint64_t{salt} << 1 | 1) * 0x9e3779b97f4a7c15;
  for (size_t at = 0; at < length; at += sizeof(state)) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof(state), length - at));
  }
  return bytes;
}

void PlantProject(const std::string& project, uint32_t salt) {
  const test::TreeBuilder tree(project);
  for (const char* dir : {"a", "b", "a/d"}) tree.Dir(dir);
  tree.File("f0", "tiny");
  tree.File("a/f0", Pattern(salt, 4 * kKiB), 0600);
  tree.File("a/f1", Pattern(salt + 1, 100 * kKiB));
  tree.File("a/d/f0", Pattern(salt + 2, 300 * kKiB), 0755);
  tree.File("b/f0", Pattern(salt + 3, 700 * kKiB));
  tree.File("b/f1", "");
  tree.SparseFile("b/f2", 400 * kKiB, 200 * kKiB, "island");
  tree.File(FileNames().back(), Pattern(salt + 4, 300));
  tree.Link("a/f1", "b/" + FileNames().back());
  tree.Symlink("a/f2", "../f0");
  tree.Xattr("a/f0", kXattr, "first");
  tree.Xattr("b", kXattr, "of a directory");
  test::AgeTree(project);
}

ProjectActor::ProjectActor(undo::UndoLog& log, const std::string& project, Trace& trace)
    : ops_(log, project), trace_(trace) {}

ProjectActor::Handler ProjectActor::HandlerOf(Op op) {
  static constexpr std::array<Handler, static_cast<size_t>(Op::kFailing) + 1> kHandlers = {
      &ProjectActor::Create,          &ProjectActor::WriteNew,       &ProjectActor::Overwrite,
      &ProjectActor::WriteUnseen,     &ProjectActor::WriteAnnounced, &ProjectActor::AppendUnseen,
      &ProjectActor::AppendAnnounced, &ProjectActor::TruncateUp,     &ProjectActor::TruncateDown,
      &ProjectActor::PunchHole,       &ProjectActor::Fallocate,      &ProjectActor::CopyRange,
      &ProjectActor::MmapWrite,       &ProjectActor::RenameWithin,   &ProjectActor::RenameAcross,
      &ProjectActor::RenameOver,      &ProjectActor::RenameExchange, &ProjectActor::RenameDirectory,
      &ProjectActor::HardLink,        &ProjectActor::WriteOtherLink, &ProjectActor::UnlinkOneLink,
      &ProjectActor::UnlinkLast,      &ProjectActor::UnlinkOpen,     &ProjectActor::RelinkOpen,
      &ProjectActor::RelinkGone,      &ProjectActor::OpenUnchanged,  &ProjectActor::KeepOpen,
      &ProjectActor::WriteKept,       &ProjectActor::CloseKept,      &ProjectActor::Mkdir,
      &ProjectActor::Rmdir,           &ProjectActor::RemoveTree,     &ProjectActor::RecreateName,
      &ProjectActor::Symlink,         &ProjectActor::Mknod,          &ProjectActor::Chmod,
      &ProjectActor::Chown,           &ProjectActor::Utimes,         &ProjectActor::SetXattr,
      &ProjectActor::RemoveXattr,     &ProjectActor::SetFlags,       &ProjectActor::Failing,
  };
  CHECK(static_cast<size_t>(op) < kHandlers.size());
  return kHandlers[static_cast<size_t>(op)];
}

Result<Effect> ProjectActor::Apply(const Command& command) {
  Turn turn{command, Inventory(ops_.root_fd()), Dice(command.salt)};
  Result<Effect> effect = (this->*HandlerOf(command.op))(turn);
  if (!effect.ok()) {
    return effect.error().WithContext(InfoOf(command.op).name);
  }
  return effect;
}

std::vector<undo::ObjectRef> ProjectActor::LiveWriters() const {
  std::vector<undo::ObjectRef> writers;
  for (const KeptFile& file : kept_) {
    if (file.writable) writers.push_back({file.fd.get()});
  }
  return writers;
}

void ProjectActor::CloseWriters() {
  std::erase_if(kept_, [](const KeptFile& file) { return file.writable; });
}

void ProjectActor::Note(const Command& command, std::string text) {
  trace_.Add(fmt::format("{}: {}", InfoOf(command.op).name, text));
}

void ProjectActor::Keep(KeptFile file) {
  if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
  kept_.push_back(std::move(file));
}

// What was chosen is possible, so only a missing ability of the place may be in the way.
Result<Effect> ProjectActor::Judge(const Status& status) const {
  if (status.ok()) return Effect::kDone;
  const int failure = status.error().sys_errno();
  if (failure == EOPNOTSUPP || failure == ENOTTY) return Effect::kUnsupported;
  if (geteuid() != 0 && (failure == EPERM || failure == EACCES)) return Effect::kUnsupported;
  return status.error();
}

Status ProjectActor::MustFail(const Status& status, int expected_errno) const {
  const int seen = status.ok() ? 0 : ErrnoFor(status.error());
  if (seen == expected_errno) return Ok();
  return Error{Code::kInvalid, fmt::format("expected {}, got {}", std::strerror(expected_errno),
                                           status.ok() ? "success" : status.error().ToString())};
}

// New files.

Result<Effect> ProjectActor::Create(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsFreeForFile);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Create(at->path, turn.dice.OneIn(4) ? 0600 : 0644));
}

Result<Effect> ProjectActor::WriteNew(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsFreeForFile);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t size = SomeSize(turn.dice);
  Note(turn.command, fmt::format("{}, {} bytes", Shown(at->path), size));
  return Judge(ops_.WriteNew(at->path, Pattern(turn.command.salt, size)));
}

// Content.

Result<Effect> ProjectActor::Overwrite(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsFile);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t size = SomeSize(turn.dice);
  Note(turn.command, fmt::format("{}, {} -> {} bytes", Shown(at->path), at->size(), size));
  return Judge(ops_.Overwrite(at->path, Pattern(turn.command.salt, size)));
}

Result<Effect> ProjectActor::WriteSomewhere(Turn& turn, WriteVisibility visibility) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t offset = SomeOffset(turn.dice, at->size());
  const uint64_t length = SomeLength(turn.dice);
  Note(turn.command,
       fmt::format("{} ({} bytes), {} at {}", Shown(at->path), at->size(), length, offset));
  return Judge(ops_.WriteAt(at->path, offset, Pattern(turn.command.salt, length), visibility));
}
Result<Effect> ProjectActor::WriteUnseen(Turn& turn) {
  return WriteSomewhere(turn, WriteVisibility::kUnseen);
}
Result<Effect> ProjectActor::WriteAnnounced(Turn& turn) {
  return WriteSomewhere(turn, WriteVisibility::kAnnounced);
}

Result<Effect> ProjectActor::AppendSomething(Turn& turn, WriteVisibility visibility) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t length = SomeLength(turn.dice);
  Note(turn.command, fmt::format("{} ({} bytes), {} bytes", Shown(at->path), at->size(), length));
  return Judge(ops_.Append(at->path, Pattern(turn.command.salt, length), visibility));
}
Result<Effect> ProjectActor::AppendUnseen(Turn& turn) {
  return AppendSomething(turn, WriteVisibility::kUnseen);
}
Result<Effect> ProjectActor::AppendAnnounced(Turn& turn) {
  return AppendSomething(turn, WriteVisibility::kAnnounced);
}

Result<Effect> ProjectActor::TruncateUp(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t size = at->size() + SomeLength(turn.dice);
  Note(turn.command, fmt::format("{}, {} -> {}", Shown(at->path), at->size(), size));
  return Judge(ops_.TruncateTo(at->path, size));
}

Result<Effect> ProjectActor::TruncateDown(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsFileWithContent);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t size = turn.dice.OneIn(2) ? at->size() * turn.dice.Below(8) / 8 : 0;
  Note(turn.command, fmt::format("{}, {} -> {}", Shown(at->path), at->size(), size));
  return Judge(ops_.TruncateTo(at->path, size));
}

Result<Effect> ProjectActor::PunchHole(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsFileWithContent);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t offset = turn.dice.OneIn(2) ? at->size() / 3 : 0;
  const uint64_t length = SomeLength(turn.dice);
  Note(turn.command,
       fmt::format("{} ({} bytes), {} at {}", Shown(at->path), at->size(), length, offset));
  return Judge(ops_.PunchHole(at->path, offset, length));
}

Result<Effect> ProjectActor::Fallocate(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t offset = SomeOffset(turn.dice, at->size());
  const uint64_t length = SomeLength(turn.dice);
  Note(turn.command,
       fmt::format("{} ({} bytes), {} at {}", Shown(at->path), at->size(), length, offset));
  return Judge(ops_.Fallocate(at->path, offset, length));
}

Result<Effect> ProjectActor::CopyRange(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsFileWithContent);
  const Spot* to = PickFile(turn.inventory, turn.command.other, turn.dice, [&](const Spot& spot) {
    return IsSmallEnough(spot) && from != nullptr && spot.st.st_ino != from->st.st_ino;
  });
  if (to == nullptr) return Effect::kNothing;
  const uint64_t from_offset = turn.dice.Below(static_cast<uint32_t>(from->size()));
  const uint64_t length = std::min(SomeLength(turn.dice), from->size() - from_offset);
  const uint64_t to_offset = SomeOffset(turn.dice, to->size());
  Note(turn.command, fmt::format("{} at {} -> {} ({} bytes) at {}, {} bytes", Shown(from->path),
                                 from_offset, Shown(to->path), to->size(), to_offset, length));
  return Judge(ops_.CopyRange(from->path, from_offset, to->path, to_offset, length));
}

Result<Effect> ProjectActor::MmapWrite(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsFileWithContent);
  if (at == nullptr) return Effect::kNothing;
  const uint64_t offset = turn.dice.Below(static_cast<uint32_t>(at->size()));
  const uint64_t length = std::min(SomeLength(turn.dice), at->size() - offset);
  Note(turn.command,
       fmt::format("{} ({} bytes), {} at {}", Shown(at->path), at->size(), length, offset));
  return Judge(ops_.MmapWrite(at->path, offset, Pattern(turn.command.salt, length)));
}

// Names.

Result<Effect> ProjectActor::RenameTo(Turn& turn, const Spot* from, const Spot* to,
                                      RenameMode mode) {
  if (from == nullptr || to == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} -> {}", Shown(from->path), Shown(to->path)));
  return Judge(ops_.Rename(from->path, to->path, mode));
}

Result<Effect> ProjectActor::RenameWithin(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsOther);
  const Spot* to = turn.inventory.Pick(turn.command.other, [&](const Spot& spot) {
    return from != nullptr && IsFreeForFile(spot) && ParentOf(spot.path) == ParentOf(from->path);
  });
  return RenameTo(turn, from, to, RenameMode::kReplace);
}

Result<Effect> ProjectActor::RenameAcross(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsOther);
  const Spot* to = turn.inventory.Pick(turn.command.other, [&](const Spot& spot) {
    return from != nullptr && IsFreeForFile(spot) && ParentOf(spot.path) != ParentOf(from->path);
  });
  return RenameTo(turn, from, to,
                  turn.dice.OneIn(2) ? RenameMode::kNoReplace : RenameMode::kReplace);
}

// Also between two names of one object, which does nothing and must stay nothing.
Result<Effect> ProjectActor::RenameOver(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsOther);
  const Spot* to = turn.inventory.Pick(
      turn.command.other, [&](const Spot& spot) { return IsOther(spot) && &spot != from; });
  return RenameTo(turn, from, to, RenameMode::kReplace);
}

Result<Effect> ProjectActor::RenameExchange(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, Exists);
  const Spot* to = turn.inventory.Pick(turn.command.other, [&](const Spot& spot) {
    return from != nullptr && spot.exists && !IsBeneath(spot.path, from->path) &&
           !IsBeneath(from->path, spot.path) && spot.is_directory() == from->is_directory();
  });
  return RenameTo(turn, from, to, RenameMode::kExchange);
}

Status ProjectActor::ChangeInside(const std::string& dir, Turn& turn) {
  const std::string inside = JoinPath(dir, FileNames()[turn.dice.Below(3)]);
  struct stat st;
  if (fstatat(ops_.root_fd(), inside.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return ops_.WriteNew(inside, Pattern(turn.command.salt, 100));
  }
  if (S_ISREG(st.st_mode)) {
    return ops_.WriteAt(inside, 1, Pattern(turn.command.salt, 100), WriteVisibility::kUnseen);
  }
  return S_ISDIR(st.st_mode) ? ops_.Chmod(inside, 0711) : ops_.Unlink(inside);
}

Result<Effect> ProjectActor::RenameDirectory(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsDirectory);
  const Spot* to = turn.inventory.Pick(turn.command.other, [&](const Spot& spot) {
    return from != nullptr && !IsBeneath(spot.path, from->path) &&
           !IsBeneath(from->path, spot.path) &&
           (IsFreeForDirectory(spot) || turn.inventory.IsEmptyDirectory(spot));
  });
  TRY_ASSIGN(Effect effect, RenameTo(turn, from, to, RenameMode::kReplace));
  if (effect != Effect::kDone) return effect;
  return Judge(ChangeInside(to->path, turn));
}

Result<Effect> ProjectActor::HardLink(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, turn.dice.OneIn(5) ? IsOther : IsFile);
  const Spot* to = turn.inventory.Pick(turn.command.other, IsFreeForFile);
  if (from == nullptr || to == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} = {}", Shown(to->path), Shown(from->path)));
  return Judge(ops_.Link(from->path, to->path));
}

Result<Effect> ProjectActor::WriteOtherLink(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, [&](const Spot& spot) {
    return IsSmallEnough(spot) && turn.inventory.HasPeer(spot);
  });
  if (at == nullptr) return Effect::kNothing;
  const std::string path = turn.inventory.PeerOf(*at)->path;
  const auto visibility =
      turn.dice.OneIn(2) ? WriteVisibility::kAnnounced : WriteVisibility::kUnseen;
  const uint64_t offset = SomeOffset(turn.dice, at->size());
  Note(turn.command, fmt::format("{} (also {}, {} bytes), at {}", Shown(path), Shown(at->path),
                                 at->size(), offset));
  return Judge(
      ops_.WriteAt(path, offset, Pattern(turn.command.salt, SomeLength(turn.dice)), visibility));
}

Result<Effect> ProjectActor::UnlinkOneLink(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, [&](const Spot& spot) {
    return spot.is_other() && turn.inventory.HasPeer(spot);
  });
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Unlink(at->path));
}

Result<Effect> ProjectActor::UnlinkLast(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, [&](const Spot& spot) {
    return spot.is_other() && !turn.inventory.HasPeer(spot);
  });
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} ({} bytes)", Shown(at->path), at->size()));
  return Judge(ops_.Unlink(at->path));
}

// Open files.

Result<Effect> ProjectActor::UnlinkOpen(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const bool keep = turn.dice.OneIn(2);
  const uint64_t offset = SomeOffset(turn.dice, at->size());
  Note(turn.command, fmt::format("{} ({} bytes), then at {}{}", Shown(at->path), at->size(), offset,
                                 keep ? ", kept open" : ""));
  Result<Fd> file = ops_.OpenFile(at->path, O_RDWR, WriteVisibility::kUnseen);
  if (!file.ok()) return Judge(file.error());
  const std::string data = Pattern(turn.command.salt, SomeLength(turn.dice));
  if (turn.dice.OneIn(2)) TRY(PWriteFully(file->get(), AsBytes(data), 0));
  TRY(ops_.Unlink(at->path));
  TRY(PWriteFully(file->get(), AsBytes(data), static_cast<off_t>(offset)));
  if (keep) Keep({std::move(*file), "", true});
  return Effect::kDone;
}

// A file with two names loses the one it was opened by and gets a third through the descriptor.
Result<Effect> ProjectActor::RelinkOpen(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsFile);
  const Spot* second = turn.inventory.Pick(turn.command.other, IsFreeForFile);
  if (at == nullptr || second == nullptr) return Effect::kNothing;
  const bool writable = turn.dice.OneIn(2);
  Note(turn.command, fmt::format("{}, other name {}{}", Shown(at->path), Shown(second->path),
                                 writable ? ", writable" : ""));
  TRY(ops_.Link(at->path, second->path));
  Result<Fd> file = ops_.OpenFile(at->path, writable ? O_RDWR : O_RDONLY, WriteVisibility::kUnseen);
  if (!file.ok()) return Judge(file.error());
  TRY(ops_.Unlink(at->path));
  TRY(ops_.LinkOpenFile(file->get(), at->path));
  if (turn.dice.OneIn(3)) TRY(ops_.Unlink(second->path));
  if (writable) TRY(PWriteFully(file->get(), AsBytes("relinked"), 0));
  return Effect::kDone;
}

Result<Effect> ProjectActor::RelinkGone(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_file() && spot.st.st_nlink == 1; });
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} ({} bytes)", Shown(at->path), at->size()));
  Result<Fd> file = ops_.OpenFile(at->path, O_RDONLY, WriteVisibility::kUnseen);
  if (!file.ok()) return Judge(file.error());
  TRY(ops_.Unlink(at->path));
  TRY(MustFail(ops_.LinkOpenFile(file->get(), at->path), ENOENT));
  if (turn.dice.OneIn(2)) Keep({std::move(*file), "", false});
  return Effect::kDone;
}

Result<Effect> ProjectActor::OpenUnchanged(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsFile);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} ({} bytes)", Shown(at->path), at->size()));
  Result<Fd> file = ops_.OpenFile(at->path, O_WRONLY, WriteVisibility::kUnseen);
  return Judge(file.ok() ? Ok() : file.error());
}

Result<Effect> ProjectActor::KeepOpen(Turn& turn) {
  const Spot* at = PickFile(turn.inventory, turn.command.path, turn.dice, IsSmallEnough);
  if (at == nullptr) return Effect::kNothing;
  const bool writable = !turn.dice.OneIn(4);
  Note(turn.command,
       fmt::format("{} ({} bytes){}", Shown(at->path), at->size(), writable ? ", writable" : ""));
  Result<Fd> file = ops_.OpenFile(at->path, writable ? O_RDWR : O_RDONLY, WriteVisibility::kUnseen);
  if (!file.ok()) return Judge(file.error());
  Keep({std::move(*file), at->path, writable});
  return Effect::kDone;
}

Result<Effect> ProjectActor::WriteKept(Turn& turn) {
  const auto file = std::find_if(kept_.rbegin(), kept_.rend(),
                                 [](const KeptFile& kept) { return kept.writable; });
  if (file == kept_.rend()) return Effect::kNothing;
  struct stat st;
  if (fstat(file->fd.get(), &st) != 0) return Error::FromErrno(errno, "fstat of a file kept open");
  const auto size = static_cast<uint64_t>(st.st_size);
  const uint64_t offset = std::min(SomeOffset(turn.dice, size), kMaxFile);
  const uint64_t length = SomeLength(turn.dice);
  Note(turn.command,
       fmt::format("once {} ({} bytes), {} at {}", Shown(file->path), size, length, offset));
  TRY(PWriteFully(file->fd.get(), AsBytes(Pattern(turn.command.salt, length)),
                  static_cast<off_t>(offset)));
  return Effect::kDone;
}

Result<Effect> ProjectActor::CloseKept(Turn& turn) {
  if (kept_.empty()) return Effect::kNothing;
  const size_t index = turn.command.path % kept_.size();
  Note(turn.command, fmt::format("once {}", Shown(kept_[index].path)));
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
  return Effect::kDone;
}

// Directories and special files.

Result<Effect> ProjectActor::Mkdir(Turn& turn) {
  const Spot* at =
      turn.inventory.Pick(turn.command.path, turn.dice.OneIn(4) ? IsFree : IsFreeForDirectory);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Mkdir(at->path, turn.dice.OneIn(3) ? 0700 : 0755));
}

Result<Effect> ProjectActor::Rmdir(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [&](const Spot& spot) { return turn.inventory.IsEmptyDirectory(spot); });
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Rmdir(at->path));
}

Result<Effect> ProjectActor::RemoveTree(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsDirectory);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.RemoveTree(at->path));
}

// The name is a file, a directory, a symlink and a file again, up to three times over.
Result<Effect> ProjectActor::RecreateName(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_other() || IsFreeForFile(spot); });
  if (at == nullptr) return Effect::kNothing;
  const uint32_t rounds = 1 + turn.dice.Below(3);
  Note(turn.command, fmt::format("{}, {} rounds", Shown(at->path), rounds));
  if (at->exists) TRY(ops_.Unlink(at->path));
  for (uint32_t round = 0; round < rounds; ++round) {
    TRY(ops_.Mkdir(at->path));
    TRY(ops_.Rmdir(at->path));
    TRY(ops_.Symlink("nowhere", at->path));
    TRY(ops_.Unlink(at->path));
    TRY(ops_.WriteNew(at->path, Pattern(turn.command.salt + round, SomeSize(turn.dice))));
    if (round + 1 < rounds) TRY(ops_.Unlink(at->path));
  }
  return Effect::kDone;
}

Result<Effect> ProjectActor::Symlink(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsFreeForFile);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Symlink(fmt::format("target-{}", turn.command.salt % 100), at->path));
}

Result<Effect> ProjectActor::Mknod(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, IsFreeForFile);
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  return Judge(
      ops_.Mknod(at->path, turn.dice.OneIn(2) ? NodeType::kSocket : NodeType::kFifo, 0640));
}

// Metadata, of the root too.

Result<Effect> ProjectActor::Chmod(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.exists && !S_ISLNK(spot.st.st_mode); });
  const std::string path = at == nullptr || turn.dice.OneIn(8) ? "" : at->path;
  constexpr std::array<mode_t, 7> kModes = {0600, 0755, 0444, 0000, 04755, 02711, 01777};
  const mode_t mode = kModes[turn.dice.Below(geteuid() == 0 ? kModes.size() : 2)];
  Note(turn.command, fmt::format("{} {:o}", Shown(path), mode));
  return Judge(ops_.Chmod(path, mode));
}

Result<Effect> ProjectActor::Chown(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, Exists);
  if (at == nullptr) return Effect::kNothing;
  if (geteuid() != 0) return Effect::kUnsupported;
  Note(turn.command, Shown(at->path));
  return Judge(ops_.Chown(at->path, 1 + turn.dice.Below(500), 1 + turn.dice.Below(500)));
}

Result<Effect> ProjectActor::Utimes(Turn& turn) {
  const Spot* at = turn.inventory.Pick(turn.command.path, Exists);
  const std::string path = at == nullptr || turn.dice.OneIn(8) ? "" : at->path;
  Note(turn.command, Shown(path));
  return Judge(ops_.SetMtime(path, int64_t{turn.command.salt} * 400'000'001));
}

Result<Effect> ProjectActor::SetXattr(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_file() || spot.is_directory(); });
  const std::string path = at == nullptr || turn.dice.OneIn(8) ? "" : at->path;
  Note(turn.command, Shown(path));
  return Judge(ops_.SetXattr(path, kXattr, Pattern(turn.command.salt, turn.dice.Below(60))));
}

Result<Effect> ProjectActor::RemoveXattr(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_file() || spot.is_directory(); });
  if (at == nullptr) return Effect::kNothing;
  Note(turn.command, Shown(at->path));
  const Status removed = ops_.RemoveXattr(at->path, kXattr);
  if (removed.ok() || removed.error().sys_errno() != ENODATA) return Judge(removed);
  // It had none: give it one first, so that there is something to remove.
  TRY_ASSIGN(Effect effect, Judge(ops_.SetXattr(at->path, kXattr, "short-lived")));
  if (effect != Effect::kDone) return effect;
  return Judge(ops_.RemoveXattr(at->path, kXattr));
}

Result<Effect> ProjectActor::SetFlags(Turn& turn) {
  const Spot* at = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_file() || spot.is_directory(); });
  if (at == nullptr) return Effect::kNothing;
  const uint32_t flags = turn.dice.OneIn(3) ? 0 : FS_NODUMP_FL;
  Note(turn.command, fmt::format("{} {:#x}", Shown(at->path), flags));
  return Judge(ops_.SetFlags(at->path, flags));
}

// What the file system refuses must leave no trace.
Result<Effect> ProjectActor::Failing(Turn& turn) {
  const Spot* taken = turn.inventory.Pick(turn.command.path, IsOther);
  const Spot* missing = turn.inventory.Pick(turn.command.other, IsFreeForFile);
  const Spot* full = turn.inventory.Pick(turn.command.other, [&](const Spot& spot) {
    return spot.is_directory() && !turn.inventory.IsEmptyDirectory(spot);
  });
  if (taken == nullptr || missing == nullptr || full == nullptr) return Effect::kNothing;
  const uint32_t which = turn.dice.Below(7);
  Note(turn.command, fmt::format("kind {}, {}, {}, {}", which, Shown(taken->path),
                                 Shown(missing->path), Shown(full->path)));
  switch (which) {
    case 0:
      TRY(MustFail(ops_.Create(taken->path), EEXIST));
      break;
    case 1:
      TRY(MustFail(ops_.Mkdir(taken->path), EEXIST));
      break;
    case 2:
      TRY(MustFail(ops_.Unlink(missing->path), ENOENT));
      break;
    case 3:
      TRY(MustFail(ops_.Rmdir(full->path), ENOTEMPTY));
      break;
    case 4:
      TRY(MustFail(ops_.Rename(missing->path, taken->path), ENOENT));
      break;
    case 5:
      TRY(MustFail(ops_.Rename(full->path, taken->path, RenameMode::kNoReplace), EEXIST));
      break;
    default:
      TRY(MustFail(ops_.Link(taken->path, full->path), EEXIST));
      break;
  }
  return Effect::kDone;
}

}  // namespace sandglass::model

// ProjectActor: names, directories and special files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "tests/model/choices.h"
#include "tests/model/project_actor.h"

namespace sandglass::model {

using undo::NodeType;
using undo::RenameMode;
using undo::WriteVisibility;

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
  // A program outside may have it open for writing; then keeping the inode is not enough.
  const bool open = at->is_file() && turn.dice.OneIn(2);
  const auto elsewhere =
      open ? OpenBeneath(ops_.root_fd(), at->path, O_WRONLY | O_NOFOLLOW) : Result<Fd>(Fd());
  Note(turn.command,
       fmt::format("{} ({} bytes{})", Shown(at->path), at->size(), open ? ", open elsewhere" : ""));
  return Judge(ops_.Unlink(at->path));
}

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

// A forced rollback leaves a folder where it was made anew if a person's file is in it.
std::string ProjectActor::FreeName(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 1; faccessat(ops_.root_fd(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0; ++i)
    name = fmt::format("{}{}", wanted, i);
  return name;
}

// As package managers and archivers do: a folder of one's own, whose contents go to their places, over others or not. The folder
// goes too, sometimes with what is left in it.
Result<Effect> ProjectActor::Stage(Turn& turn) {
  const Spot* file = turn.inventory.Pick(
      turn.command.path, [](const Spot& spot) { return spot.is_other() || IsFreeForFile(spot); });
  const Spot* folder = turn.inventory.Pick(turn.command.other, IsFreeForDirectory);
  if (file == nullptr) return Effect::kNothing;
  const bool nested = turn.dice.OneIn(2), leftover = turn.dice.OneIn(3);
  const std::string outer = FreeName("staging"), staging = nested ? outer + "/inner" : outer;
  Note(turn.command,
       fmt::format("{} -> {}{}", staging, Shown(file->path),
                   folder == nullptr ? "" : fmt::format(", {}", Shown(folder->path))));
  TRY(ops_.Mkdir(outer));
  if (nested) TRY(ops_.Mkdir(staging));
  TRY(ops_.WriteNew(staging + "/file", Pattern(turn.command.salt, SomeSize(turn.dice))));
  if (turn.dice.OneIn(2))
    TRY(ops_.Rename(staging + "/file", staging + "/other"));
  else
    TRY(ops_.Link(staging + "/file", staging + "/other"));
  if (folder != nullptr) {
    TRY(ops_.Mkdir(staging + "/folder"));
    TRY(ops_.WriteNew(staging + "/folder/f0", "in the folder"));
    TRY(ops_.Rename(staging + "/folder", folder->path));
  }
  TRY(ops_.Rename(staging + "/other", file->path));
  if (leftover) TRY(ops_.WriteNew(outer + "/left", "over"));
  return Judge(ops_.RemoveTree(outer));
}

// Something older goes into a new folder, is changed there and comes back under a free name.
Result<Effect> ProjectActor::PassThrough(Turn& turn) {
  const Spot* from = turn.inventory.Pick(turn.command.path, IsOther);
  const Spot* to = turn.inventory.Pick(turn.command.other, IsFreeForFile);
  if (from == nullptr || to == nullptr) return Effect::kNothing;
  Note(turn.command, fmt::format("{} -> {}", Shown(from->path), Shown(to->path)));
  const std::string outer = FreeName("staging"), renamed = FreeName("renamed");
  TRY(ops_.Mkdir(outer));
  TRY(ops_.Rename(from->path, outer + "/passing"));
  if (from->is_file()) TRY(ops_.Chmod(outer + "/passing", 0640));
  if (turn.dice.OneIn(2)) TRY(ops_.WriteNew(from->path, "in its old place"));
  if (turn.dice.OneIn(2)) {
    TRY(ops_.Rename(outer, renamed));
    TRY(ops_.Rename(renamed + "/passing", to->path));
    return Judge(ops_.Rmdir(renamed));
  }
  TRY(ops_.Rename(outer + "/passing", to->path));
  return Judge(ops_.Rmdir(outer));
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

// ProjectActor: new files and their content.
#include <fmt/format.h>

#include <algorithm>

#include "tests/model/choices.h"
#include "tests/model/project_actor.h"

namespace sandglass::model {

using undo::WriteVisibility;

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

}  // namespace sandglass::model

// ProjectActor: files that are open while their names change, or kept open across steps.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "tests/model/choices.h"
#include "tests/model/project_actor.h"

namespace sandglass::model {

using undo::WriteVisibility;

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

}  // namespace sandglass::model

// ProjectActor: metadata, of the root too.
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/model/choices.h"
#include "tests/model/project_actor.h"

namespace sandglass::model {

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

}  // namespace sandglass::model

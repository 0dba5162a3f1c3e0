#include "session/watch/judge.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/verify.h"

namespace sandglass::session {

std::vector<Judge::Sight> Judge::See(const PathNotes& notes) const {
  std::vector<Sight> sights;
  undo::Looker looker(place_);
  for (const auto& [path, note] : notes) {
    Sight sight{.path = path, .kinds = note.kinds, .first = note.first, .found = looker.At(path)};
    if (!sight.found) sight.path = TopmostMissing(looker, path);
    if (sight.path != path) sight.kinds = ExternalKind::kRemoved;
    sights.push_back(std::move(sight));
  }
  return sights;
}

std::string Judge::TopmostMissing(undo::Looker& looker, std::string path) {
  while (true) {
    std::string parent(ParentOf(path));
    if (parent.empty() || looker.Stat(parent)) return path;
    path = std::move(parent);
  }
}

PathNotes Judge::External(const std::vector<Sight>& sights, const PathNotes& notes) {
  PathNotes external;
  for (const Sight& sight : sights) {
    const Verdict verdict =
        sight.found ? OfFound(sight, *sight.found) : OfMissing(sight.path, notes);
    if (verdict == Verdict::kExternal) external[sight.path].kinds.Add(sight.kinds);
  }
  return external;
}

Verdict Judge::OfMissing(const std::string& path, const PathNotes& notes) {
  if (work_.IsTouched(path, undo::kNoObject) || work_.IsReplacedAbove(path)) return Verdict::kOwn;
  if (const auto left = work_.LeftAt(path))
    return *left == undo::kNoObject ? Verdict::kOwn : Verdict::kExternal;
  if (work_.WasTakenBack(path, undo::kNoObject)) return Verdict::kOwn;
  const auto note = notes.find(path);
  const bool came_and_went = note != notes.end() && note->second.first != FirstHeard::kItWasThere;
  return came_and_went ? Verdict::kOwn : Verdict::kExternal;
}

Verdict Judge::OfFound(const Sight& sight, const undo::Found& found) {
  const std::string& path = sight.path;
  if (found.stat.IsSymlink() && symlinks_ == undo::SymlinkPolicy::kIgnore) return Verdict::kOwn;
  if (work_.IsTouched(path, found.id)) return Verdict::kOwn;
  const auto signature = work_.signatures().Find(found.id);
  const bool came_along = sight.first == FirstHeard::kItWasFound && found.stat.ctime_ns < began_ns_;
  if (!signature && came_along) return Verdict::kOwn;
  const bool as_left = signature
                           ? LooksAsLeft(path, found, *signature)
                           : work_.LeftAt(path) == found.id || work_.WasTakenBack(path, found.id);
  return as_left || HasLiveWriter(path) ? Verdict::kOwn : Verdict::kExternal;
}

bool Judge::LooksAsLeft(const std::string& path, const undo::Found& found,
                        const undo::Signature& signature) const {
  if (!signature.Matches(found.stat)) return false;
  const auto then = found.stat.IsDirectory() ? work_.signatures().FindAttributes(found.id)
                                             : std::optional<uint64_t>();
  if (!then) return true;
  const auto now = undo::AttributesAt(place_, path);
  return now.ok() && (!*now || **now == *then);
}

bool Judge::HasLiveWriter(const std::string& path) const {
  if (!is_live_writer_) return false;
  const auto object = OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW);
  struct stat info{};
  return object.ok() && ::fstat(object->get(), &info) == 0 &&
         is_live_writer_(info.st_dev, info.st_ino);
}

}  // namespace sandglass::session

#include "undo/verify.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/looker.h"

namespace sandglass::undo {
namespace {

std::optional<Conflict> Compare(const ObjectsTable& objects, const StepView& view, const Shadows& shadows,
                                const std::string& path, const Expected& expected, const std::optional<Found>& found) {
  if (expected.object == kNoObject) {
    if (!found || view.InitialAt(path) == kNoObject) return std::nullopt;
    return Conflict{ConflictKind::kOccupied, path, "has been created since"};
  }
  const ObjectId object = objects.Current(expected.object);
  if (!found) return Conflict{ConflictKind::kMissing, path, "has been removed since"};
  if (found->id != object) return Conflict{ConflictKind::kReplaced, path, "has been replaced since"};
  if (expected.parent_only || !(expected.changed || view.IsBorn(expected.object))) return std::nullopt;
  if (shadows.Has(object)) return Conflict{ConflictKind::kBusy, path, "a running process has it open for writing"};
  const auto signature = objects.Find(object);
  if (signature && !signature->Matches(found->stat)) {
    return Conflict{ConflictKind::kEdited, path, "has been changed since"};
  }
  return std::nullopt;
}

std::optional<Conflict> CheckContent(const ContentRecord& r, StepFiles& files) {
  const auto damaged = [&](std::string why) { return Conflict{ConflictKind::kCorrupt, std::string(r.path), std::move(why)}; };
  if (r.length == 0) return std::nullopt;
  if (r.keeping == Keeping::kPack) {
    auto bytes = files.ReadPack(r.where, r.length);
    if (!bytes.ok()) return damaged(bytes.error().message());
    if (HashBytes64(*bytes) != r.checksum) return damaged("its kept bytes fail their checksum");
    return std::nullopt;
  }
  auto blobs = files.Blobs();
  if (!blobs.ok()) return damaged(blobs.error().message());
  Fd blob(::openat(*blobs, SlotName({static_cast<uint32_t>(r.where)}).c_str(), O_RDONLY | O_CLOEXEC));
  if (!blob.valid()) return damaged("what was kept of it is missing from the store");
  auto stat = StatFd(blob.get());
  if (!stat.ok() || stat->size != r.file_size) return damaged("what was kept of it has another size");
  if (r.checksum == 0) return std::nullopt;
  auto checksum = ChecksumFile(blob.get(), r.file_size);
  if (!checksum.ok() || *checksum != r.checksum) return damaged("its kept bytes fail their checksum");
  return std::nullopt;
}

std::optional<Conflict> CheckAnchor(const std::string& path, SlotId anchor, StepFiles& files) {
  auto anchors = files.Anchors();
  if (anchors.ok() && NameExists(*anchors, SlotName(anchor).c_str())) return std::nullopt;
  return Conflict{ConflictKind::kCorrupt, path, "what was kept of it is missing from the store"};
}

}  // namespace

std::vector<Conflict> FindEdits(const Place& place, const ObjectsTable& objects, const StepView& view, const Shadows& shadows,
                                const PathMap<Expected>* later) {
  std::vector<Conflict> conflicts;
#ifdef SANDGLASS_MUTANT_no_conflict_check
  return conflicts;
#endif
  Looker looker(place);
  for (const auto& [path, expected] : view.expected().map()) {
    if (later != nullptr && later->contains(path)) continue;
    auto conflict = Compare(objects, view, shadows, path, expected, looker.At(path));
    if (conflict) conflicts.push_back(std::move(*conflict));
  }
  return conflicts;
}

std::vector<Conflict> FindDamage(const StepView& view, StepFiles& files) {
  std::vector<Conflict> conflicts;
  const auto note = [&](std::optional<Conflict> conflict) {
    if (conflict) conflicts.push_back(std::move(*conflict));
  };
  if (view.journal().damaged() > 0) {
    note(Conflict{ConflictKind::kCorrupt, "", fmt::format("{} records of its journal are damaged", view.journal().damaged())});
  }
  for (size_t i = 0; i < view.journal().size(); ++i) {
    auto record = view.journal().At(i);
    if (!record.ok()) continue;
    if (const auto* content = std::get_if<ContentRecord>(&*record)) {
      if (!view.IsDropped(*content)) note(CheckContent(*content, files));
    } else if (const auto* remove = std::get_if<RemoveRecord>(&*record)) {
      if (remove->kept == Kept::kAnchor && !view.Outcome(remove->seq).failed()) {
        note(CheckAnchor(JoinPath(remove->at.dir, remove->at.name), remove->anchor, files));
      }
    } else if (const auto* rename = std::get_if<RenameRecord>(&*record)) {
      if (rename->target_kept == Kept::kAnchor && !view.Outcome(rename->seq).failed()) {
        note(CheckAnchor(JoinPath(rename->to.dir, rename->to.name), rename->anchor, files));
      }
    } else if (const auto* replace = std::get_if<ReplaceRecord>(&*record)) {
      if (!view.Outcome(replace->seq).failed()) {
        note(CheckAnchor(JoinPath(replace->at.dir, replace->at.name), replace->anchor, files));
      }
    }
  }
  return conflicts;
}

std::vector<ObjectId> FindLateChanges(const Place& place, const StepView& view, int64_t cutoff_ns) {
  std::vector<ObjectId> late;
  Looker looker(place);
  for (const auto& [path, expected] : view.expected().map()) {
    auto found = looker.At(path);
    if (found && !found->stat.IsDirectory() && found->stat.ctime_ns > cutoff_ns) late.push_back(found->id);
  }
  return late;
}

}  // namespace sandglass::undo

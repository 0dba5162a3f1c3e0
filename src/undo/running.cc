#include "undo/running.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/beneath.h"
#include "undo/link_index.h"

namespace sandglass::undo {
namespace {

constexpr uint32_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;

bool IsRunning(const Place& place, const std::string& path) {
  const auto fd = OpenBeneath(place.root.get(), path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
  return !fd.ok() && fd.error().sys_errno() == ETXTBSY;
}

}  // namespace

NamesInProject NamesOf(const Place& place, ObjectId object, const FileStat& stat,
                       const std::string& path) {
  if (stat.nlink == 1) return {.paths = {path}, .all = true};
  NamesInProject names{.paths = {}, .all = false};
  LinkIndex(place).ForEachBelow(place.root.get(), "", LinkIndex::Which::kSeveralNames,
                                [&](ObjectId id, const std::string& at) {
                                  if (id == object) names.paths.push_back(at);
                                });
  names.all = names.paths.size() == stat.nlink;
  return names;
}

bool RunningPrograms::IsWritten(ObjectId object) {
  if (!written_) {
    written_.emplace();
    view_.journal().ForEachOf<ContentRecord>([&](const ContentRecord& r, size_t) {
      if (!view_.IsDropped(r)) written_->insert(objects_.Current(r.object));
    });
  }
  return written_->contains(object);
}

std::optional<Conflict> RunningPrograms::Check(const std::string& path, const std::string& now,
                                               const Found& found) {
  const bool replaceable = place_.abilities.exchange;
  if (!found.stat.IsRegular() || (found.stat.mode & kAnyExecute) == 0) return std::nullopt;
  // Trying to open it for writing is the only way to find out, so it is tried only where the answer matters.
  if (replaceable && found.stat.nlink == 1) return std::nullopt;
  if (!IsWritten(found.id) || !IsRunning(place_, now)) return std::nullopt;
  if (replaceable && NamesOf(place_, found.id, found.stat, now).all) return std::nullopt;
  return Conflict{ConflictKind::kBusy, path,
                  replaceable ? "is a running program with names that are not in the project"
                              : "is a running program"};
}

}  // namespace sandglass::undo

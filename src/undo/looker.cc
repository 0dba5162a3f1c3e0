#include "undo/looker.h"

#include <cerrno>

#include "base/beneath.h"
#include "base/rel_path.h"

namespace sandglass::undo {

bool SaysAbsent(int sys_errno) {
  switch (sys_errno) {
    case 0:  // refused before the kernel was asked
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
    case EACCES:
    case EPERM:
    case EOPNOTSUPP:  // of another file system
      return true;
    default:
      return false;
  }
}

void Looker::NoteFailure(const Error& error) {
  if (failure_.ok() && !SaysAbsent(error.sys_errno())) failure_ = error;
}

std::optional<Looker::Spot> Looker::Approach(const std::string& path) {
  denied_ = false;
  if (path.empty()) return Spot{place_.root.get(), "."};
  const std::string_view dir = ParentOf(path);
  if (!folder_.valid() || dir != folder_path_) {
    auto fd = OpenDirBeneath(place_.root.get(), dir);
    folder_path_ = std::string(dir);
    folder_denied_ = !fd.ok() && fd.error().code() == Code::kDenied;
    if (!fd.ok()) NoteFailure(fd.error());
    folder_ = fd.ok() ? std::move(*fd) : Fd();
  }
  denied_ = folder_denied_;
  if (!folder_.valid()) return std::nullopt;
  return Spot{folder_.get(), std::string(BaseName(path))};
}

std::optional<FileStat> Looker::StatSpot(const std::optional<Spot>& spot) {
  if (!spot) return std::nullopt;
  auto stat = LookAt(spot->dir, spot->name.c_str());
  denied_ = !stat && errno == EACCES;
  if (!stat && !SaysAbsent(errno)) NoteFailure(Error::FromErrno(errno, "look at " + spot->name));
  return stat;
}

std::optional<FileStat> Looker::Stat(const std::string& path) { return StatSpot(Approach(path)); }

std::optional<Found> Looker::At(const std::string& path) {
  const auto spot = Approach(path);
  const auto stat = StatSpot(spot);
  if (!stat) return std::nullopt;
  auto id = place_.identifier.OfName(spot->dir, spot->name.c_str());
  if (!id.ok()) {
    NoteFailure(id.error());
    return std::nullopt;
  }
  return Found{*id, *stat};
}

}  // namespace sandglass::undo

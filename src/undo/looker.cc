#include "undo/looker.h"

#include <cerrno>

#include "base/beneath.h"
#include "base/rel_path.h"

namespace sandglass::undo {

std::optional<Looker::Spot> Looker::Approach(const std::string& path) {
  denied_ = false;
  if (path.empty()) return Spot{place_.root.get(), "."};
  const std::string_view dir = ParentOf(path);
  if (!folder_.valid() || dir != folder_path_) {
    auto fd = OpenDirBeneath(place_.root.get(), dir);
    folder_path_ = std::string(dir);
    folder_ = fd.ok() ? std::move(*fd) : Fd();
    folder_denied_ = !fd.ok() && fd.error().code() == Code::kDenied;
  }
  denied_ = folder_denied_;
  if (!folder_.valid()) return std::nullopt;
  return Spot{folder_.get(), std::string(BaseName(path))};
}

std::optional<FileStat> Looker::StatSpot(const std::optional<Spot>& spot) {
  if (!spot) return std::nullopt;
  auto stat = LookAt(spot->dir, spot->name.c_str());
  denied_ = !stat && errno == EACCES;
  return stat;
}

std::optional<FileStat> Looker::Stat(const std::string& path) { return StatSpot(Approach(path)); }

std::optional<Found> Looker::At(const std::string& path) {
  const auto spot = Approach(path);
  const auto stat = StatSpot(spot);
  if (!stat) return std::nullopt;
  auto id = place_.identifier.OfName(spot->dir, spot->name.c_str());
  if (!id.ok()) return std::nullopt;
  return Found{*id, *stat};
}

}  // namespace sandglass::undo

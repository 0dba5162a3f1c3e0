#include "undo/looker.h"

#include "base/beneath.h"
#include "base/rel_path.h"

namespace sandglass::undo {

std::optional<Found> Looker::At(const std::string& path) {
  denied_ = false;
  if (path.empty()) return Examine(place_.root.get(), ".");
  const std::string_view dir = ParentOf(path);
  if (!folder_.valid() || dir != folder_path_) {
    auto fd = OpenDirBeneath(place_.root.get(), dir);
    folder_path_ = std::string(dir);
    folder_ = fd.ok() ? std::move(*fd) : Fd();
    folder_denied_ = !fd.ok() && fd.error().code() == Code::kDenied;
  }
  denied_ = folder_denied_;
  if (!folder_.valid()) return std::nullopt;
  return Examine(folder_.get(), std::string(BaseName(path)).c_str());
}

std::optional<Found> Looker::Examine(int dir, const char* name) {
  auto stat = StatAt(dir, name);
  auto id = place_.identifier.OfName(dir, name);
  denied_ = !stat.ok() && stat.error().code() == Code::kDenied;
  if (!stat.ok() || !id.ok()) return std::nullopt;
  return Found{*id, *stat};
}

}  // namespace sandglass::undo

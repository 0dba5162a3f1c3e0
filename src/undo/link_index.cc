#include "undo/link_index.h"

#include <dirent.h>
#include <fcntl.h>

#include <memory>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/shadows.h"

namespace sandglass::undo {
namespace {

constexpr int kMaxDepth = 512;

}  // namespace

std::optional<std::string> LinkIndex::Find(ObjectId object) {
  if (!built_) {
    built_ = true;
    Walk(place_.root.get(), "", 0, Which::kAll,
         [this](ObjectId id, const std::string& path) { paths_.emplace(id, path); });
  }
  auto found = paths_.find(object);
  if (found == paths_.end()) return std::nullopt;
  auto fd = OpenBeneath(place_.root.get(), found->second, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return std::nullopt;
  auto now = place_.identifier.OfFd(fd->get());
  if (!now.ok() || *now != object) return std::nullopt;
  return found->second;
}

std::optional<std::string> AnyPathOf(const Place& place, const OpenObject& object) {
  if (auto path = ProjectPathOf(place, object.fd.get())) return path;
  // The name that the descriptor was opened by may be gone while another one is left.
  if (object.stat.nlink == 0) return std::nullopt;
  return LinkIndex(place).Find(object.id);
}

void LinkIndex::ForEachLinkBelow(int dir_fd, const std::string& path, const Each& each) {
  Walk(dir_fd, path, 0, Which::kSeveralNames, each);
}

void LinkIndex::Walk(int dir_fd, const std::string& path, int depth, Which which,
                     const Each& each) {
  if (depth > kMaxDepth) return;
  const int fd = ::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd), &::closedir);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entry->d_type == DT_DIR) {
      Fd child(::openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (child.valid()) Walk(child.get(), JoinPath(path, name), depth + 1, which, each);
      continue;
    }
    if (which == Which::kSeveralNames) {
      auto stat = StatAt(fd, entry->d_name);
      if (!stat.ok() || stat->nlink < 2) continue;
    }
    auto id = place_.identifier.OfName(fd, entry->d_name);
    if (id.ok()) each(*id, JoinPath(path, name));
  }
}

}  // namespace sandglass::undo

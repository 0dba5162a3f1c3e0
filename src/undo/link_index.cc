#include "undo/link_index.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/shadows.h"

namespace sandglass::undo {
namespace {

// Gone since its name was read, or a mount, which is no part of the project. Nobody moves folders elsewhere meanwhile: whoever
// searches is inside the gate.
bool IsNoPart(const Error& error) {
  const int err = error.sys_errno();
  return err == ENOENT || err == ENOTDIR || err == ELOOP || err == EXDEV;
}

bool IsFolder(int dir_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  const auto stat = LookAt(dir_fd, entry.d_name);
  return stat && stat->IsDirectory();
}

}  // namespace

std::optional<std::string> LinkIndex::Find(ObjectId object) {
  if (!built_) Build();
  auto found = paths_.find(object);
  if (found == paths_.end()) return std::nullopt;
  if (!Leads(found->second, object)) {
    Build();  // names have moved since
    found = paths_.find(object);
    if (found == paths_.end()) return std::nullopt;
  }
  return found->second;
}

void LinkIndex::Build() {
  built_ = true;
  paths_.clear();
  Walk(place_.root.get(), "", Which::kAll,
       [this](ObjectId id, const std::string& path) { paths_.emplace(id, path); });
}

bool LinkIndex::Leads(const std::string& path, ObjectId object) const {
  auto fd = OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return false;
  const auto now = place_.identifier.OfFd(fd->get());
  return now.ok() && *now == object;
}

Result<std::optional<std::string>> AnyPathOf(const Place& place, const OpenObject& object) {
  if (auto path = ProjectPathOf(place, object.fd.get())) return path;
  // The name that the descriptor was opened by may be gone while another one is left.
  if (object.stat.nlink == 0) return std::optional<std::string>();
  LinkIndex index(place);
  auto path = index.Find(object.id);
  if (!path && !index.complete()) {
    return Error(Code::kUnsupported,
                 "the file's name in the project cannot be found, because a folder there cannot be "
                 "read; what cannot be undone is not allowed");
  }
  return path;
}

void LinkIndex::Walk(int top, const std::string& path, Which which, const Each& each) {
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string below = std::move(folders.back());
    folders.pop_back();
    WalkFolder(top, below, below.empty() ? path : JoinPath(path, below), which, each, folders);
  }
}

void LinkIndex::WalkFolder(int top, const std::string& below, const std::string& path, Which which,
                           const Each& each, std::vector<std::string>& folders) {
  auto fd = OpenBeneath(top, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.ok()) {
    complete_ = complete_ && IsNoPart(fd.error());
    return;
  }
  const int dir_fd = fd->get();
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(dir_fd), &::closedir);
  if (dir == nullptr) {
    complete_ = false;
    return;
  }
  (void)fd->Release();  // the stream owns it now
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool folder = IsFolder(dir_fd, *entry);
    if (folder) folders.push_back(JoinPath(below, name));
    if (which == Which::kSeveralNames) {
      auto stat = folder ? std::nullopt : LookAt(dir_fd, entry->d_name);
      if (!stat || stat->nlink < 2) continue;
    }
    auto id = place_.identifier.OfName(dir_fd, entry->d_name);
    if (id.ok())
      each(*id, JoinPath(path, name));
    else
      complete_ = complete_ && IsNoPart(id.error());
  }
  complete_ = complete_ && errno == 0;
}

}  // namespace sandglass::undo

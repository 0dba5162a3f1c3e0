#include "world/local/link_trail.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>

namespace sandglass::world {
namespace {

constexpr size_t kMaxLinks = 40;  // as the kernel counts

std::string TakeName(std::string& rest) {
  const size_t begin = std::min(rest.find_first_not_of('/'), rest.size());
  const size_t end = std::min(rest.find('/', begin), rest.size());
  std::string name = rest.substr(begin, end - begin);
  rest.erase(0, end);
  return name;
}

std::optional<std::string> TargetOf(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
  if (size <= 0 || size == static_cast<ssize_t>(sizeof(target))) return std::nullopt;
  return std::string(target, static_cast<size_t>(size));
}

}  // namespace

std::optional<LinkTrail> FollowLinks(const std::string& path) {
  // Most of what is looked for is not there, and the kernel finds that out faster.
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  LinkTrail trail;  // its end is without the last slash: "" is the root
  std::string rest = path;
  while (true) {
    const std::string name = TakeName(rest);
    if (name.empty()) break;
    if (name == ".") continue;
    if (name == "..") {
      trail.end.resize(trail.end.empty() ? 0 : trail.end.rfind('/'));
      continue;
    }
    const std::string next = trail.end + "/" + name;
    struct stat status{};
    if (::lstat(next.c_str(), &status) != 0) return std::nullopt;
    if (!S_ISLNK(status.st_mode)) {
      trail.end = next;
      continue;
    }
    const auto target = TargetOf(next);
    if (!target || trail.folders.size() >= kMaxLinks) return std::nullopt;
    trail.folders.push_back(trail.end.empty() ? "/" : trail.end);
    if (target->starts_with('/')) trail.end.clear();
    rest.insert(0, *target);
  }
  if (trail.end.empty()) trail.end = "/";
  return trail;
}

}  // namespace sandglass::world

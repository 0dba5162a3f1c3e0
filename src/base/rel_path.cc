#include "base/rel_path.h"

#include <algorithm>

namespace sandglass {
namespace {

// Cuts the first component off `rest`; empty for "//" and for what precedes a leading slash.
std::string_view TakeComponent(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view component = rest.substr(0, slash);
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  return component;
}

}  // namespace

Result<std::string> NormalizeRelPath(std::string_view raw) {
  if (raw.find('\0') != std::string_view::npos) {
    return Error(Code::kInvalid, "path contains a NUL byte");
  }
  if (raw.starts_with('/')) {
    return Error(Code::kOutsideRoot, "path is absolute; give it relative to the root");
  }
  std::string normal;
  normal.reserve(raw.size());
  while (!raw.empty()) {
    const std::string_view component = TakeComponent(raw);
    if (component.empty() || component == ".") continue;
    if (component == "..") return Error(Code::kOutsideRoot, "path contains a `..` component");
    if (component.size() > kMaxNameBytes) {
      return Error(Code::kInvalid, "path has a component of more than 255 bytes");
    }
    if (!normal.empty()) normal += '/';
    normal += component;
  }
  return normal;
}

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxNameBytes &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool IsNormalRelPath(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (!IsName(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
    if (path.empty()) return false;  // a trailing slash
  }
  return true;
}

std::string JoinPath(std::string_view dir, std::string_view name) {
  std::string joined;
  joined.reserve(dir.size() + 1 + name.size());
  joined += dir;
  if (!dir.empty() && !name.empty()) joined += '/';
  joined += name;
  return joined;
}

std::string_view ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool IsBeneath(std::string_view path, std::string_view dir) {
  if (dir.empty()) return true;
  if (!path.starts_with(dir)) return false;
  return path.size() == dir.size() || path[dir.size()] == '/';
}

size_t PathDepth(std::string_view path) {
  if (path.empty()) return 0;
  return 1 + static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
}

std::optional<std::string_view> PathBelow(std::string_view path, std::string_view folder) {
  if (folder == "/") folder = "";
  if (!path.starts_with(folder)) return std::nullopt;
  path.remove_prefix(folder.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path;
}

}  // namespace sandglass

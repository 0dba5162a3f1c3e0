#include "examples/tree_state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/rel_path.h"

namespace sandglass::demo {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> ReadXattrs(const std::string& path) {
  std::string names(64 << 10, '\0');
  const ssize_t size = ::llistxattr(path.c_str(), names.data(), names.size());
  names.resize(size > 0 ? static_cast<size_t>(size) : 0);
  std::map<std::string, std::string> xattrs;
  for (size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    const std::string name = names.c_str() + at;
    std::string value(64 << 10, '\0');
    const ssize_t got = ::lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    value.resize(got > 0 ? static_cast<size_t>(got) : 0);
    xattrs[name] = value;
  }
  return xattrs;
}

Result<std::string> ReadContent(const std::string& path, uint32_t mode) {
  if (S_ISLNK(mode)) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return Error::FromErrno(error.value(), path);
    return target.native();
  }
  if (!S_ISREG(mode)) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(Code::kIo, fmt::format("cannot read {}", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<Entry> ReadEntry(const std::string& path, const std::string& name,
                        std::map<uint64_t, std::string>& first_names) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return Error::FromErrno(errno, path);
  Entry entry{.mode = info.st_mode,
              .uid = info.st_uid,
              .gid = info.st_gid,
              .size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0,
              .mtime_ns = info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec};
  TRY_ASSIGN(entry.content, ReadContent(path, info.st_mode));
  entry.xattrs = ReadXattrs(path);
  entry.linked_with = first_names.emplace(info.st_ino, name).first->second;
  return entry;
}

std::string ModeText(uint32_t mode) {
  std::string text = S_ISDIR(mode) ? "d" : S_ISLNK(mode) ? "l" : "-";
  for (int bit = 8; bit >= 0; --bit) text += (mode >> bit) & 1 ? "xwr"[bit % 3] : '-';
  return text;
}

std::string Remark(const std::string& path, const Entry& entry) {
  std::string out;
  if (S_ISLNK(entry.mode)) out += fmt::format(" -> {}", entry.content);
  if (S_ISREG(entry.mode)) out += fmt::format(" {} bytes", entry.size);
  if (entry.linked_with != path) out += fmt::format(", the same file as {}", entry.linked_with);
  for (const auto& [name, value] : entry.xattrs) out += fmt::format(", {}={}", name, value);
  return out;
}

void AddDifferences(const std::string& path, const Entry& a, const Entry& b,
                    std::vector<std::string>& out) {
  const auto check = [&](bool same, std::string_view what) {
    if (!same) out.push_back(fmt::format("{}: {} differs", path, what));
  };
  check(a.content == b.content && a.size == b.size, "content");
  check(a.mode == b.mode, "mode");
  check(a.uid == b.uid && a.gid == b.gid, "owner");
  check(a.mtime_ns == b.mtime_ns, "modification time");
  check(a.linked_with == b.linked_with, "set of hard links");
  check(a.xattrs == b.xattrs, "extended attributes");
}

}  // namespace

Result<TreeState> TreeState::Read(const std::string& root) {
  std::vector<std::string> names = {""};
  std::error_code error;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().native().substr(root.size() + 1));
  }
  if (error) return Error::FromErrno(error.value(), fmt::format("list {}", root));
  std::ranges::sort(names);
  TreeState state;
  std::map<uint64_t, std::string> first_names;
  for (const std::string& name : names) {
    const std::string path = name.empty() ? root : root + '/' + name;
    TRY_ASSIGN(state.entries_[name], ReadEntry(path, name, first_names));
  }
  return state;
}

uint64_t TreeState::Hash() const {
  ByteWriter out;
  for (const auto& [path, entry] : entries_) {
    for (const std::string& text : {path, entry.content, entry.linked_with}) out.PutText(text);
    out.Put(entry.mode);
    out.Put(entry.uid);
    out.Put(entry.gid);
    out.Put(entry.mtime_ns);
    for (const auto& [name, value] : entry.xattrs) {
      out.PutText(name);
      out.PutText(value);
    }
  }
  return HashBytes64(out.bytes());
}

std::string TreeState::Drawing() const {
  std::string out;
  for (const auto& [path, entry] : entries_) {
    if (path.empty()) continue;
    const std::string name = std::string(2 * (PathDepth(path) - 1), ' ') +
                             std::string(BaseName(path)) + (S_ISDIR(entry.mode) ? "/" : "");
    const std::string remark = Remark(path, entry);
    out += fmt::format("   {}  {:<{}}{}\n", ModeText(entry.mode), name, remark.empty() ? 0 : 18,
                       remark);
  }
  return out;
}

std::vector<std::string> Differences(const TreeState& before, const TreeState& after) {
  std::vector<std::string> out;
  for (const auto& [path, entry] : before.entries()) {
    const auto found = after.entries().find(path);
    if (found == after.entries().end())
      out.push_back(fmt::format("{}: is missing", path));
    else
      AddDifferences(path, entry, found->second, out);
  }
  for (const auto& [path, entry] : after.entries()) {
    if (!before.entries().contains(path))
      out.push_back(fmt::format("{}: was not there before", path));
  }
  return out;
}

}  // namespace sandglass::demo

#include "session/files/list_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

#include "base/rel_path.h"
#include "session/files/dir_entries.h"
#include "session/files/opening.h"

namespace sandglass::session::files {
namespace {

std::string TargetOf(int dir_fd, const std::string& name) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(dir_fd, name.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return target;
}

// nullopt: it is gone since.
std::optional<ListedEntry> Look(int dir_fd, const std::string& name) {
  struct stat st{};
  if (::fstatat(dir_fd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  ListedEntry entry{.name = name,
                    .type = undo::NodeTypeOf(st.st_mode),
                    .mode = st.st_mode & 07777,
                    .size = static_cast<uint64_t>(st.st_size),
                    .mtime_ns = NanosecondsOf(st.st_mtim)};
  if (S_ISLNK(st.st_mode)) entry.target = TargetOf(dir_fd, name);
  return entry;
}

Result<std::vector<std::string>> SortedNames(int dir_fd) {
  std::vector<std::string> names;
  std::vector<char> buffer;
  TRY(ForEachEntry(dir_fd, buffer, [&](std::string_view name, uint8_t) -> Status {
    if (names.size() == kMostListedNames)
      return Error(Code::kLimit, fmt::format("more than {} names", kMostListedNames));
    names.emplace_back(name);
    return Ok();
  }));
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<Listing> ListDirectory(int root_fd, const ListRequest& request) {
  if (request.limit == 0) return Error(Code::kInvalid, "a page has one entry at least");
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  auto folder = OpenFollowing(root_fd, path, O_RDONLY | O_DIRECTORY);
  if (!folder.ok() && folder.error().sys_errno() == ENOTDIR)
    return Error(Code::kInvalid, fmt::format("{} is no folder", path), ENOTDIR);
  if (!folder.ok()) return std::move(folder).error();
  auto names = SortedNames(folder->get());
  if (!names.ok()) return names.error().WithContext(path.empty() ? "." : path);
  Listing listing{.total = names->size()};
  auto next = request.after.empty()
                  ? names->begin()
                  : std::ranges::upper_bound(*names, request.after, std::less<>());
  for (; next != names->end() && listing.entries.size() < request.limit; ++next) {
    if (auto entry = Look(folder->get(), *next)) listing.entries.push_back(std::move(*entry));
  }
  listing.more = next != names->end();
  return listing;
}

}  // namespace sandglass::session::files

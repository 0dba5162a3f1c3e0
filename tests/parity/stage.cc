#include "tests/parity/stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sandglass::parity {
namespace {

constexpr time_t kOld = 1'000'000'000;

void Must(long result, const char* what) {
  if (result >= 0) return;
  std::perror(what);
  std::exit(1);
}

void MakeFile(const char* path, std::string_view content, mode_t mode) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  Must(fd, path);
  Must(::write(fd, content.data(), content.size()), path);
  Must(::fchmod(fd, mode), path);
  ::close(fd);
}

void MakeFolder(const char* path, mode_t mode) {
  Must(::mkdir(path, 0700), path);
  Must(::chmod(path, mode), path);
}

void MakeOld(const std::string& path) {
  const timespec times[2] = {{kOld, 0}, {kOld, 0}};
  Must(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), path.c_str());
}

std::string ContentOf(const std::string& path, const struct stat& stat) {
  char buffer[PATH_MAX];
  ssize_t got = 0;
  if (S_ISLNK(stat.st_mode)) got = ::readlink(path.c_str(), buffer, sizeof buffer);
  if (S_ISREG(stat.st_mode)) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_NOATIME);
    got = fd < 0 ? 0 : ::read(fd, buffer, sizeof buffer);
    ::close(fd);
  }
  return {buffer, static_cast<size_t>(got < 0 ? 0 : got)};
}

std::string AttributesOf(const std::string& path) {
  char names[1024], value[1024];
  const ssize_t length = ::llistxattr(path.c_str(), names, sizeof names);
  std::string all;
  for (const char* name = names; length > 0 && name < names + length;
       name += std::string_view(name).size() + 1) {
    const ssize_t size = ::lgetxattr(path.c_str(), name, value, sizeof value);
    all += fmt::format("{}={} ", name, std::string_view(value, size < 0 ? 0 : size));
  }
  return all;
}

void LookInto(const std::string& path, Stage& stage) {
  Entry entry{};
  if (::lstat(path.c_str(), &entry.stat) != 0) return;
  entry.content = ContentOf(path, entry.stat);
  entry.attributes = AttributesOf(path);
  const bool folder = S_ISDIR(entry.stat.st_mode);
  stage.emplace(path, std::move(entry));
  DIR* listing = folder ? ::opendir(path.c_str()) : nullptr;
  if (listing == nullptr) return;
  while (const dirent* found = ::readdir(listing)) {
    const std::string_view name = found->d_name;
    if (name != "." && name != "..") LookInto(path + "/" + std::string(name), stage);
  }
  ::closedir(listing);
}

std::string TimeText(const timespec& time) {
  if (time.tv_sec > ::time(nullptr) - 3600 && time.tv_sec < ::time(nullptr) + 3600) return "now";
  return fmt::format("{}.{:09}", time.tv_sec, time.tv_nsec);
}

bool SameTime(const timespec& one, const timespec& two) {
  return one.tv_sec == two.tv_sec && one.tv_nsec == two.tv_nsec;
}

// Inode numbers differ from run to run, the names that they had before do not.
std::string NameOf(ino_t inode, const Stage& before) {
  for (const auto& [path, entry] : before)
    if (entry.stat.st_ino == inode) return path;
  return "new";
}

std::string StateText(const Entry& entry, const Stage& before) {
  // How large a folder is, is the file system's own business.
  const auto size = S_ISDIR(entry.stat.st_mode) ? 0 : entry.stat.st_size;
  return fmt::format(
      "mode={:o} nlink={} owner={}:{} size={} rdev={} mtime={} is={} content={:?} {}",
      entry.stat.st_mode, entry.stat.st_nlink, entry.stat.st_uid, entry.stat.st_gid, size,
      entry.stat.st_rdev, TimeText(entry.stat.st_mtim), NameOf(entry.stat.st_ino, before),
      entry.content, entry.attributes);
}

void AppendChange(std::string& text, const std::string& path, const Entry& was, const Entry& is,
                  const Stage& before) {
  const std::string old_state = StateText(was, before), new_state = StateText(is, before);
  const bool touched = !SameTime(was.stat.st_ctim, is.stat.st_ctim);
  const bool written = !SameTime(was.stat.st_mtim, is.stat.st_mtim);
  if (old_state == new_state && !touched && !written) return;
  text += fmt::format(" [{}:", path);
  if (old_state != new_state) text += fmt::format(" {}", new_state);
  text += fmt::format("{}{}]", written ? " mtime" : "", touched ? " ctime" : "");
}

}  // namespace

void MakeStage() {
  MakeFile("file", "content", 0644);
  Must(::link("file", "hard"), "hard");
  MakeFile("other", "other content", 0600);
  MakeFile("readonly", "read", 0444);
  MakeFile("shared", "shared", 0666);
  Must(::mkfifo("fifo", 0644), "fifo");
  for (const char* folder : {"dir", "empty", "locked", "closed"}) MakeFolder(folder, 0755);
  for (const char* inside : {"dir/inner", "locked/inside", "closed/inside"})
    MakeFile(inside, "inner", 0644);
  Must(::chmod("locked", 0555), "locked");
  MakeFolder("sticky", 01777);
  MakeFile("sticky/kept", "kept", 0666);
  MakeFolder("setgid", 0777);
  Must(::chmod("setgid", 02777), "setgid");
  char here[PATH_MAX];
  Must(::getcwd(here, sizeof here) == nullptr ? -1 : 0, "getcwd");
  const std::pair<std::string, const char*> links[] = {
      {"file", "link"},   {here + std::string("/file"), "abslink"},
      {"dir", "dirlink"}, {"missing", "dangling"},
      {"loop2", "loop1"}, {"loop1", "loop2"}};
  for (const auto& [target, name] : links) Must(::symlink(target.c_str(), name), name);
  Must(::chmod(".", 0777), "stage");
  for (const auto& [path, entry] : Look()) MakeOld(path);
}

void CloseClosed() { Must(::chmod("closed", 0), "closed"); }
void OpenClosed() {
  // A case may have removed it.
  if (::access("closed", F_OK) == 0) Must(::chmod("closed", 0755), "closed");
}

Stage Look() {
  Stage stage;
  LookInto(".", stage);
  return stage;
}

std::string Changes(const Stage& before, const Stage& after) {
  std::string text;
  for (const auto& [path, was] : before) {
    const auto found = after.find(path);
    if (found == after.end())
      text += fmt::format(" [{}: gone]", path);
    else
      AppendChange(text, path, was, found->second, before);
  }
  for (const auto& [path, is] : after)
    if (!before.contains(path)) text += fmt::format(" [{}: {}]", path, StateText(is, before));
  return text;
}

}  // namespace sandglass::parity

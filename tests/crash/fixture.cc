#include "tests/crash/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/fd.h"

namespace sandglass::crash {
namespace {

constexpr char kProbeXattr[] = "user.note";

struct FileRow {
  const char* path;
  mode_t mode;
  size_t size;
};

constexpr const char* kFolders[] = {
    "src",        "src/deep", "src/deep/a", "data",     "links",        "misc",       "misc/closed",
    "misc/empty", "tree",     "tree/one",   "tree/two", "tree/two/sub", "tree/three",
};

constexpr FileRow kFiles[] = {
    {"README.md", 0644, 700},
    {"src/main.cc", 0644, 3000},
    {"src/util.cc", 0640, 1200},
    {"src/deep/a/leaf.txt", 0600, 90},
    {"data/large.bin", 0644, kLargeBytes},
    {"data/larger.bin", 0664, kLarger},
    {"data/table.csv", 0644, 20'000},
    {"links/one", 0644, 500},
    {"misc/tool", 04755, 800},
    {"misc/shared", 02664, 10},
    {"misc/secret", 0000, 64},
    {"misc/nothing", 0644, 0},
    {"tree/one/a", 0644, 100},
    {"tree/one/b", 0600, 200},
    {"tree/two/c", 0644, 300},
    {"tree/two/sub/d", 0755, 400},
    {"tree/two/sub/big", 0644, kLargeBytes},
};

Error Failed(const std::string& path) { return Error::FromErrno(errno, "fixture " + path); }

Status WriteFile(const std::string& path, const FileRow& row, uint32_t seed) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return Failed(path);
  const std::string content = Pattern(row.size, seed);
  if (write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return Failed(path);
  }
  if (fchmod(fd.get(), row.mode) != 0) return Failed(path);
  return Ok();
}

// A file system without user xattrs is fine: see FindMeans().
Status AddXattrs(const std::string& project) {
  for (const char* path : {"/README.md", "/data/large.bin", "/src"}) {
    if (setxattr((project + path).c_str(), kProbeXattr, path, 4, 0) != 0 && errno != ENOTSUP) {
      return Failed(project + path);
    }
  }
  return Ok();
}

Status AddNames(const std::string& project) {
  const auto at = [&](const char* path) { return project + path; };
  if (link(at("/links/one").c_str(), at("/links/two").c_str()) != 0) return Failed("links/two");
  if (link(at("/links/one").c_str(), at("/src/third").c_str()) != 0) return Failed("src/third");
  if (symlink("../README.md", at("/links/readme").c_str()) != 0) return Failed("links/readme");
  if (symlink("nowhere", at("/tree/dangling").c_str()) != 0) return Failed("tree/dangling");
  if (mkfifo(at("/misc/pipe").c_str(), 0620) != 0) return Failed("misc/pipe");
  if (chmod(at("/misc/closed").c_str(), 0555) != 0) return Failed("misc/closed");
  if (chmod(at("/misc/empty").c_str(), 01777) != 0) return Failed("misc/empty");
  return Ok();
}

// A time for each path, whatever the order in which a directory lists its names.
Status SetTime(const std::string& project, const std::string& rel) {
  int64_t digest = 7;
  for (const char c : rel) digest = (digest * 31 + c) % 90'000'000;
  const timespec times[2] = {{0, UTIME_OMIT}, {1'600'000'000 + digest, 100'000'000 + digest}};
  const std::string path = project + rel;
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) return Failed(path);
  return Ok();
}

// Children before their folder: setting it up moved its time.
Status SetTimes(const std::string& project, const std::string& rel) {
  std::vector<std::string> children;
  if (DIR* dir = opendir((project + rel).c_str())) {
    while (const dirent* entry = readdir(dir)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") children.push_back(rel + "/" + name);
    }
    closedir(dir);
  }
  for (const std::string& child : children) {
    struct stat st;
    if (lstat((project + child).c_str(), &st) != 0) return Failed(child);
    TRY(S_ISDIR(st.st_mode) ? SetTimes(project, child) : SetTime(project, child));
  }
  return SetTime(project, rel);
}

}  // namespace

std::string Pattern(size_t size, uint32_t seed) {
  std::string text(size, '\0');
  uint32_t state = seed * 2654435761U + 1;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>('a' + (state >> 28));
  }
  return text;
}

Status BuildFixture(const std::string& project) {
  for (const char* folder : kFolders) {
    const std::string path = project + "/" + folder;
    if (mkdir(path.c_str(), 0755) != 0) return Failed(path);
  }
  uint32_t seed = 1;
  for (const FileRow& row : kFiles) TRY(WriteFile(project + "/" + row.path, row, seed++));
  TRY(AddXattrs(project));
  TRY(AddNames(project));
  return SetTimes(project, "");
}

Means FindMeans(const std::string& project) {
  Means means;
  char value[16];
  means.xattrs = lgetxattr((project + "/README.md").c_str(), kProbeXattr, value, sizeof(value)) > 0;
  const Fd fd(open((project + "/README.md").c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  means.flags = fd.valid() && ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) == 0;
  const bool root = geteuid() == 0;
  means.other_uid = root ? 1234 : geteuid();
  means.other_gid = root ? 1235 : getegid();
  return means;
}

}  // namespace sandglass::crash

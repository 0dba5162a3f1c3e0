#include "tests/support/temp_workspace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "tests/support/inode_flags.h"
#include "tests/support/must.h"
#include "tests/support/tree_walk.h"

namespace sandglass::test {
namespace {

constexpr uint32_t kLockingFlags = FS_IMMUTABLE_FL | FS_APPEND_FL;

// Makes a directory listable and its entries removable, as far as we may. A symlink or a file of
// that name is left alone.
void Unlock(int parent, const char* name) {
  Fd dir = OpenForReading(parent, name, O_DIRECTORY);
  if (dir.valid()) ChangeFlags(dir.get(), 0, kLockingFlags);
  struct stat st;
  if (::fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode)) return;
  if ((st.st_mode & 0700) != 0700) ::fchmodat(parent, name, 0700, 0);
}

int ClearFileFlags(int parent, const char* name) {
  const Fd file = OpenForReading(parent, name, O_NONBLOCK);
  return file.valid() ? ChangeFlags(file.get(), 0, kLockingFlags) : errno;
}

// Deep trees are removed by flattening: a directory found inside another is first moved up into the
// top directory, so that two descriptors suffice at any depth.
class Removal {
 public:
  explicit Removal(int top) : top_(top) {}

  Status Run() {
    Empty(top_);
    while (!pending_.empty()) {
      const std::string name = std::move(pending_.back());
      pending_.pop_back();
      EmptyAndRemove(name);
    }
    return first_failure_;
  }

 private:
  void EmptyAndRemove(const std::string& name) {
    Unlock(top_, name.c_str());
    const Fd dir = OpenForReading(top_, name.c_str(), O_DIRECTORY);
    if (!dir.valid()) return Failed("open", name);
    // Opened without permission to read, the flags could not be seen before.
    ChangeFlags(dir.get(), 0, kLockingFlags);
    Empty(dir.get());
    if (::unlinkat(top_, name.c_str(), AT_REMOVEDIR) != 0) Failed("rmdir", name);
  }

  void Empty(int dir) {
    auto names = ListDirectory(dir);
    if (!names.ok()) return Failed("list", "a directory");
    for (const std::string& name : names.value()) RemoveEntry(dir, name);
  }

  void RemoveEntry(int dir, const std::string& name) {
    if (::unlinkat(dir, name.c_str(), 0) == 0) return;
    if (errno == EISDIR) return MoveUp(dir, name);
    if (ClearFileFlags(dir, name.c_str()) == 0 && ::unlinkat(dir, name.c_str(), 0) == 0) return;
    // A directory that may not be removed answers EPERM before EISDIR.
    struct stat st;
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
      return MoveUp(dir, name);
    Failed("unlink", name);
  }

  void MoveUp(int dir, const std::string& name) {
    Unlock(dir, name.c_str());
    std::string moved = fmt::format(".removing-{}", moved_++);
    if (::renameat(dir, name.c_str(), top_, moved.c_str()) != 0) return Failed("move", name);
    pending_.push_back(std::move(moved));
  }

  void Failed(std::string_view what, std::string_view name) {
    if (first_failure_.ok())
      first_failure_ = Error::FromErrno(errno, fmt::format("{} {}", what, Printable(name)));
  }

  int top_;
  uint64_t moved_ = 0;
  std::vector<std::string> pending_;
  Status first_failure_;
};

void MakeParents(const std::string& path, size_t from) {
  for (size_t at = path.find('/', from); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    if (::mkdir(parent.c_str(), 0777) != 0 && errno != EEXIST) MustCall(-1, "mkdir " + parent);
  }
}

}  // namespace

std::string TestDirectory() {
  for (const char* name : {"SANDGLASS_TEST_DIR", "TMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "/tmp";
}

Status RemoveTree(const std::string& path) {
  Unlock(AT_FDCWD, path.c_str());
  {
    TRY_ASSIGN(const Fd top, OpenDirectory(path));
    ChangeFlags(top.get(), 0, kLockingFlags);
    TRY(Removal(top.get()).Run());
  }
  if (::rmdir(path.c_str()) != 0) return Error::FromErrno(errno, "rmdir " + path);
  return Ok();
}

TempWorkspace::TempWorkspace() : root_(TestDirectory() + "/sandglass-XXXXXX") {
  if (::mkdtemp(root_.data()) == nullptr) MustCall(-1, "mkdtemp " + root_);
  project_ = root_ + "/project";
  store_ = root_ + "/store";
  MustCall(::mkdir(project_.c_str(), 0755), "mkdir " + project_);
  MustCall(::mkdir(store_.c_str(), 0700), "mkdir " + store_);
}

TempWorkspace::~TempWorkspace() {
  if (Status removed = RemoveTree(root_); !removed.ok()) {
    std::fprintf(stderr, "left behind: %s: %s\n", root_.c_str(),
                 removed.error().ToString().c_str());
  }
}

TreeSnapshot TempWorkspace::Snapshot() const { return Must(TreeSnapshot::Capture(project_)); }

std::string TempWorkspace::Path(std::string_view rel) const {
  return rel.empty() ? project_ : fmt::format("{}/{}", project_, rel);
}

void TempWorkspace::WriteFile(std::string_view rel, std::string_view content) const {
  const std::string path = Path(rel);
  MakeParents(path, project_.size() + 1);
  const Fd file(MustCall(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
                         "open " + path));
  while (!content.empty()) {
    const ssize_t written =
        MustCall(::write(file.get(), content.data(), content.size()), "write " + path);
    content.remove_prefix(static_cast<size_t>(written));
  }
}

std::string TempWorkspace::ReadFile(std::string_view rel) const {
  const std::string path = Path(rel);
  const Fd file(MustCall(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path));
  std::string content;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t got = MustCall(::read(file.get(), buffer, sizeof buffer), "read " + path);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

bool TempWorkspace::Exists(std::string_view rel) const {
  struct stat st;
  return ::lstat(Path(rel).c_str(), &st) == 0;
}

void TempWorkspace::MakeDir(std::string_view rel) const {
  MakeParents(Path(rel) + '/', project_.size() + 1);
}

struct stat TempWorkspace::Stat(std::string_view rel) const {
  const std::string path = Path(rel);
  struct stat st;
  MustCall(::lstat(path.c_str(), &st), "lstat " + path);
  return st;
}

}  // namespace sandglass::test

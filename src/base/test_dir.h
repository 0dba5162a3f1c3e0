// What file system tests of this module share: a fresh directory per test, and code in a child
// process.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"

namespace sandglass {

// A directory under SANDGLASS_TEST_DIR, TMPDIR or /tmp that goes away with the object.
class TestDir {
 public:
  TestDir() : parent_path_(ParentPath()), parent_(OpenDir(parent_path_)) {
    std::string path = parent_path_ + "/sandglass-base-XXXXXX";
    CHECK(::mkdtemp(path.data()) != nullptr);
    dir_ = OpenDir(path);
    name_ = path.substr(parent_path_.size() + 1);
  }
  ~TestDir() { CHECK(RemoveTreeAt(parent_.get(), name_.c_str()).ok()); }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  int fd() const { return dir_.get(); }

  void MakeDir(const char* name, mode_t mode = 0755) const {
    CHECK(::mkdirat(fd(), name, mode) == 0);
  }
  void MakeFile(const char* name, std::string_view content = "") const {
    const Fd file(::openat(fd(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    CHECK(file.valid() && WriteFully(file.get(), AsBytes(content)).ok());
  }
  void MakeLink(const char* target, const char* name) const {
    CHECK(::symlinkat(target, fd(), name) == 0);
  }
  bool Has(const char* name) const {
    return ::faccessat(fd(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  }

 private:
  static std::string ParentPath() {
    for (const char* variable : {"SANDGLASS_TEST_DIR", "TMPDIR"}) {
      const char* value = std::getenv(variable);
      if (value != nullptr && *value != '\0') return value;
    }
    return "/tmp";
  }
  static Fd OpenDir(const std::string& path) {
    Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(dir.valid());
    return dir;
  }

  std::string parent_path_;
  Fd parent_;
  Fd dir_;
  std::string name_;
};

// Runs `body` in a child process, where it may change what it cannot change back, and says whether
// it returned true.
template <class F>
bool RunInChild(F body) {
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The same for a body that must not be root, because no permission bit stops root.
template <class F>
bool RunUnprivileged(F body) {
  constexpr uid_t kNobody = 65534;
  return RunInChild([&] {
    const bool dropped = ::geteuid() != 0 || (::setresgid(kNobody, kNobody, kNobody) == 0 &&
                                              ::setresuid(kNobody, kNobody, kNobody) == 0);
    return dropped && body();
  });
}

}  // namespace sandglass

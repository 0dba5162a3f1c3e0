#include "examples/sample_project.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"

namespace sandglass::demo {
namespace {

struct Row {
  const char* path;  // ends in a slash: a folder
  mode_t mode;
  std::string_view content;
};

constexpr Row kRows[] = {
    {"src/", 0755, {}},
    {"src/main.cc", 0644, "#include \"util.h\"\n\nint main() { return Answer() - 42; }\n"},
    {"src/util.h", 0644, "int Answer();\n"},
    {"tools/", 0755, {}},
    {"tools/deploy", 0755, "#!/bin/sh\necho deploying\n"},
    {"config/", 0700, {}},
    {"config/.env", 0600, "TOKEN=only-on-this-machine\n"},
    {"data/", 0755, {}},
    {"data/raw/", 0755, {}},
    {"data/raw/measured.csv", 0444, "time,value\n0,17\n1,23\n"},
    {"notes.txt", 0644, "Not in git. Half a day of work.\n"},
};

// Long ago, a different moment for each, down to the nanosecond.
constexpr int64_t kOldSeconds = 1'600'000'000;

Status Call(int result, std::string_view what) {
  if (result < 0) return Error::FromErrno(errno, what);
  return Ok();
}

Status MakeRow(int root, const Row& row) {
  const std::string_view path = row.path;
  if (path.ends_with('/')) return Call(::mkdirat(root, row.path, row.mode), path);
  Fd file(::openat(root, row.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  TRY(Call(file.get(), path));
  TRY(WriteFully(file.get(), AsBytes(row.content)));
  return Call(::fchmod(file.get(), row.mode), path);
}

Status MakeLinks(int root) {
  TRY(Call(::symlinkat("raw/measured.csv", root, "data/latest.csv"), "symlink data/latest.csv"));
  TRY(Call(::linkat(root, "data/raw/measured.csv", root, "data/backup.csv", 0),
           "link data/backup.csv"));
  Fd notes(::openat(root, "notes.txt", O_RDONLY | O_CLOEXEC));
  // Not every file system has them; then the demo goes without.
  (void)::fsetxattr(notes.get(), "user.author", "me", 2, 0);
  return Ok();
}

Status AgeAll(int root) {
  int64_t age = 0;
  const auto make_old = [&](const char* path) {
    const timespec when{kOldSeconds + 86'400 * ++age, 123'456'789 + age};
    const timespec times[2] = {when, when};
    return Call(::utimensat(root, path, times, AT_SYMLINK_NOFOLLOW), path);
  };
  TRY(make_old("data/latest.csv"));
  // Folders after what is in them: the rows name a folder first.
  for (auto row = std::rbegin(kRows); row != std::rend(kRows); ++row) TRY(make_old(row->path));
  return make_old(".");
}

Status Fill(const std::string& path) {
  TRY(Call(::mkdir(path.c_str(), 0755), path));
  Fd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY(Call(root.get(), path));
  for (const Row& row : kRows) TRY(MakeRow(root.get(), row));
  TRY(MakeLinks(root.get()));
  return AgeAll(root.get());
}

}  // namespace

Result<SampleProject> SampleProject::Make() {
  const char* temporary = std::getenv("TMPDIR");
  std::string folder = fmt::format("{}/sandglass-demo.XXXXXX",
                                   temporary != nullptr && *temporary == '/' ? temporary : "/tmp");
  if (::mkdtemp(folder.data()) == nullptr)
    return Error::FromErrno(errno, fmt::format("create {}", folder));
  SampleProject project(std::move(folder));
  TRY(Fill(project.root()));
  return project;
}

SampleProject::SampleProject(SampleProject&& other) noexcept
    : folder_(std::exchange(other.folder_, {})) {}

SampleProject::~SampleProject() {
  if (folder_.empty()) return;
  const size_t slash = folder_.rfind('/');
  Fd parent(::open(folder_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)RemoveTreeAt(parent.get(), folder_.c_str() + slash + 1);
}

}  // namespace sandglass::demo

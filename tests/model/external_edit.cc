#include "tests/model/external_edit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"

namespace sandglass::model {
namespace {

Status AppendTo(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return Error::FromErrno(errno, "open");
  return WriteFully(file.get(), AsBytes("a person's line\n"));
}

// Same size, and mostly the same tick of a coarse clock: only the bytes tell.
Status FlipByte(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) return Error::FromErrno(errno, "open");
  uint8_t byte = 0;
  TRY_ASSIGN(size_t count, PReadFully(file.get(), {&byte, 1}, 0));
  if (count == 0) return AppendTo(path);
  byte ^= 0x5a;
  return PWriteFully(file.get(), {&byte, 1}, 0);
}

Status Remove(const std::string& path) {
  return unlink(path.c_str()) == 0 ? Ok() : Error::FromErrno(errno, "unlink");
}

// As editors save: a new file renamed over the old one.
Status Replace(const std::string& path) {
  const std::string fresh = path + "~";
  const Fd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return Error::FromErrno(errno, "open");
  TRY(WriteFully(file.get(), AsBytes("a person's version\n")));
  return rename(fresh.c_str(), path.c_str()) == 0 ? Ok() : Error::FromErrno(errno, "rename");
}

Status ChangeMode(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return Error::FromErrno(errno, "stat");
  return chmod(path.c_str(), (st.st_mode & 07777) ^ 0010) == 0 ? Ok()
                                                               : Error::FromErrno(errno, "chmod");
}

Status ChangeXattr(const std::string& path) {
  if (setxattr(path.c_str(), "user.person", "a person's", 10, 0) == 0) return Ok();
  return errno == EOPNOTSUPP ? ChangeMode(path) : Error::FromErrno(errno, "setxattr");
}

Status ChangeTime(const std::string& path) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = 1'234'567'890, .tv_nsec = 987'654'321}};
  return utimensat(AT_FDCWD, path.c_str(), times, 0) == 0 ? Ok()
                                                          : Error::FromErrno(errno, "utimens");
}

struct EditKind {
  const char* name;
  EditOf what;
  Status (*edit)(const std::string& path);
};
constexpr std::array<EditKind, 5> kEdits = {{
    {"append", EditOf::kObject, AppendTo},
    {"flip a byte", EditOf::kObject, FlipByte},
    {"remove", EditOf::kNameOrObject, Remove},
    {"replace", EditOf::kNameOrObject, Replace},
    {"chmod", EditOf::kObject, ChangeMode},
}};
constexpr std::array<EditKind, 3> kFolderEdits = {{
    {"chmod", EditOf::kFolder, ChangeMode},
    {"xattr", EditOf::kFolder, ChangeXattr},
    {"time", EditOf::kFolder, ChangeTime},
}};

}  // namespace

Result<const char*> EditFromOutside(const std::string& absolute_path, EditOf what, Dice& dice) {
  const EditKind* kind = &kEdits[dice.Below(kEdits.size())];
  if (what == EditOf::kObject && kind->what != what) kind = &kEdits[0];
  if (what == EditOf::kFolder) kind = &kFolderEdits[dice.Below(kFolderEdits.size())];
  TRY(kind->edit(absolute_path));
  return kind->name;
}

}  // namespace sandglass::model

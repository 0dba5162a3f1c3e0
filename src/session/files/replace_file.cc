#include "session/files/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "session/files/perform.h"
#include "undo/metadata.h"
#include "undo/object.h"

namespace sandglass::session::files {
namespace {

using undo::Outcome;
using undo::Ticket;

constexpr mode_t kWhileItIsMade = 0600;
constexpr mode_t kNewFolder = 0755;

// Whose what is made in a folder shall be: root works for others, so it leaves them what is new. Anybody else can only own it.
int GiveToOwnerOf(int folder, int made) {
  struct stat around{};
  if (::geteuid() != 0) return 0;
  if (::fstat(folder, &around) != 0) return -1;
  return ::fchown(made, around.st_uid, around.st_gid);
}

// Its mode is set and not asked for, because our umask is made for our own files.
int MakeOwnedFolder(int around, const char* name) {
  if (::mkdirat(around, name, kWhileItIsMade | S_IXUSR) != 0) return -1;
  const Fd made(::openat(around, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || GiveToOwnerOf(around, made.get()) != 0) return -1;
  return ::fchmod(made.get(), kNewFolder);
}

// Beside the file and hidden. It keeps the end of the name, by which most rules tell files apart.
std::string TemporaryName(std::string_view name) {
  uint64_t chance = 0;
  CHECK(::getrandom(&chance, sizeof(chance), 0) == sizeof(chance));
  constexpr size_t kKept = kMaxNameBytes - 32;
  const std::string_view end = name.size() > kKept ? name.substr(name.size() - kKept) : name;
  return fmt::format(".sandglass-{:016x}.{}", chance, end);
}

class FileWriter {
 public:
  FileWriter(int root_fd, undo::Interceptor& interceptor, const WriteRequest& request)
      : root_fd_(root_fd), interceptor_(interceptor), request_(request) {}

  Result<WrittenFile> Run(const std::string& path) {
    path_ = path;
    name_ = BaseName(path);
    folder_path_ = ParentOf(path);
    if (request_.parents == Parents::kMade) TRY(MakeParents());
    TRY_ASSIGN(folder_, OpenDirBeneath(root_fd_, folder_path_));
    auto old = undo::OpenObjectAt({}, folder_.get(), name_.c_str());
    if (!old.ok() && old.error().code() != Code::kNotFound) return std::move(old).error();
    if (!old.ok()) return Create();
    TRY(CheckOld(*old));
    return old->stat.nlink > 1 ? Rewrite(*old) : Replace(*old);
  }

 private:
  undo::NameRef At(std::string_view name) const { return {{folder_.get(), folder_path_}, name}; }

  Status MakeParents() {
    for (size_t end = folder_path_.find('/');; end = folder_path_.find('/', end + 1)) {
      const std::string parent = folder_path_.substr(0, end);
      if (!parent.empty() && !OpenDirBeneath(root_fd_, parent).ok()) TRY(MakeFolder(parent));
      if (end == std::string::npos) return Ok();
    }
  }

  Status MakeFolder(const std::string& path) {
    const std::string above(ParentOf(path)), name(BaseName(path));
    TRY_ASSIGN(const Fd dir, OpenDirBeneath(root_fd_, above));
    TRY_ASSIGN(Ticket ticket,
               interceptor_.BeginCreate({{dir.get(), above}, name}, undo::NodeType::kDirectory));
    return Complete(ticket, "make folder", path,
                    [&] { return MakeOwnedFolder(dir.get(), name.c_str()); });
  }

  Status CheckOld(const undo::OpenObject& old) const {
    if (old.stat.IsDirectory())
      return Error(Code::kInvalid, fmt::format("{} is a folder", path_), EISDIR);
    if (old.stat.IsSymlink())
      return Error(Code::kInvalid,
                   fmt::format("{} is a symbolic link; write to where it leads instead", path_));
    if (!old.stat.IsRegular())
      return Error(Code::kInvalid, fmt::format("{} is no regular file", path_));
    if (request_.if_there == IfThere::kRefused)
      return Error(Code::kExists, fmt::format("{} exists already", path_), EEXIST);
    if (!request_.expected) return Ok();
    TRY_ASSIGN(const FileVersion version, VersionAt(old.fd.get()));
    if (version == *request_.expected) return Ok();
    return Error(Code::kConflict,
                 fmt::format("{} has been changed since it was read; read it again", path_));
  }

  static Result<FileVersion> VersionAt(int fd) {
    struct stat st{};
    if (::fstat(fd, &st) != 0) return Error::FromErrno(errno, "stat");
    return VersionOf(st);
  }

  Result<WrittenFile> Create() {
    if (request_.expected)
      return Error(Code::kConflict, fmt::format("{} is gone since it was read", path_), ENOENT);
    TRY_ASSIGN(const std::string made, MakeTemporary(nullptr));
    return TakeName(made, undo::RenameMode::kNoReplace, WriteKind::kCreated);
  }

  Result<WrittenFile> Replace(const undo::OpenObject& old) {
    TRY_ASSIGN(const std::string made, MakeTemporary(&old));
    return TakeName(made, undo::RenameMode::kReplace, WriteKind::kReplaced);
  }

  // The name of a file beside it with the new content and, if there is an old one, its metadata.
  Result<std::string> MakeTemporary(const undo::OpenObject* old) {
    std::string name = TemporaryName(name_);
    Fd file;
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginCreate(At(name), undo::NodeType::kFile));
    TRY(Complete(ticket, "create", name, [&] {
      file = Fd(::openat(folder_.get(), name.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kWhileItIsMade));
      return file.get();
    }));
    const Status done = FillTemporary(file.get(), name, old);
    if (done.ok()) return name;
    return WithoutTemporary(name, done.error());
  }

  Status FillTemporary(int file, const std::string& name, const undo::OpenObject* old) {
    TRY(WriteFully(file, AsBytes(request_.content)));
    const std::string path = JoinPath(folder_path_, name);
    if (old != nullptr)
      TRY(TakeMetadata(file, path, *old));
    else
      TRY(SetOwnerAndMode(file, path));
    return Sync(file);
  }

  Status Sync(int file) const {
    if (request_.durability == WriteDurability::kPower && ::fsync(file) != 0)
      return Error::FromErrno(errno, fmt::format("sync {}", path_));
    return Ok();
  }

  Status SetOwnerAndMode(int file, const std::string& path) {
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginMetadata({file, path}));
    return Complete(ticket, "set mode and owner of", path_, [&] {
      return GiveToOwnerOf(folder_.get(), file) != 0 ? -1 : ::fchmod(file, request_.mode);
    });
  }

  // All of the old one's but its time.
  Status TakeMetadata(int file, const std::string& path, const undo::OpenObject& old) {
    TRY_ASSIGN(const undo::OpenObject made, undo::OpenObjectFd({}, file));
    TRY_ASSIGN(undo::Metadata wanted, undo::CaptureMetadata(old));
    TRY_ASSIGN(const undo::Metadata now, undo::CaptureMetadata(made));
    wanted.mtime_ns = now.mtime_ns;
    if (now.xattrs != wanted.xattrs) {
      undo::Metadata with_xattrs = now;
      with_xattrs.xattrs = wanted.xattrs;
      TRY_ASSIGN(Ticket ticket, interceptor_.BeginXattr({file, path}));
      TRY(Complete(ticket, "set attributes of", path_,
                   [&] { return AsCall(undo::ApplyMetadata(made, with_xattrs)); }));
    }
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginMetadata({file, path}));
    return Complete(ticket, "set mode and owner of", path_,
                    [&] { return AsCall(undo::ApplyMetadata(made, wanted)); });
  }

  Result<WrittenFile> TakeName(const std::string& made, undo::RenameMode mode, WriteKind kind) {
    const Status done = Rename(made, mode);
    if (!done.ok()) return WithoutTemporary(made, done.error());
    if (request_.durability == WriteDurability::kPower) TRY(SyncFolder());
    struct stat st{};
    if (::fstatat(folder_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::FromErrno(errno, fmt::format("stat {}", path_));
    return WrittenFile{kind, VersionOf(st)};
  }

  Status Rename(const std::string& made, undo::RenameMode mode) {
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginRename(At(made), At(name_), mode));
    const unsigned flags = mode == undo::RenameMode::kNoReplace ? RENAME_NOREPLACE : 0;
    return Complete(ticket, "replace", path_, [&] {
      return ::renameat2(folder_.get(), made.c_str(), folder_.get(), name_.c_str(), flags);
    });
  }

  Status Remove(const std::string& name) {
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginRemove(At(name)));
    return Complete(ticket, "remove", name,
                    [&] { return ::unlinkat(folder_.get(), name.c_str(), 0); });
  }

  // The name is ours alone and of no use to anyone; if it cannot be removed, the step still knows it.
  Error WithoutTemporary(const std::string& name, const Error& why) {
    const Status removed = Remove(name);
    if (removed.ok()) return why;
    return Error(why.code(),
                 fmt::format("{}; {} stays behind, undo removes it ({})", why.message(),
                             JoinPath(folder_path_, name), removed.error().message()),
                 why.sys_errno());
  }

  Status SyncFolder() const {
    TRY_ASSIGN(const Fd folder, OpenBeneath(root_fd_, folder_path_, O_RDONLY | O_DIRECTORY));
    return Sync(folder.get());
  }

  Result<WrittenFile> Rewrite(const undo::OpenObject& old) {
    TRY_ASSIGN(Ticket ticket,
               interceptor_.BeginOpenForWrite({old.fd.get(), path_}, undo::Truncate::kYes,
                                              undo::WriteVisibility::kUnseen));
    const int held = ticket.replaced() ? ticket.fresh_fd() : old.fd.get();
    const int flags = ticket.performed() ? O_WRONLY : O_WRONLY | O_TRUNC;
    const Fd file(::open(undo::ProcPath(held).c_str(), flags | O_CLOEXEC));
    const int failure = file ? 0 : errno;
    TRY(ticket.Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure)));
    if (failure != 0) return Error::FromErrno(failure, fmt::format("write {}", path_));
    TRY(WriteFully(file.get(), AsBytes(request_.content)));
    TRY(Sync(file.get()));
    TRY_ASSIGN(const FileVersion version, VersionAt(file.get()));
    return WrittenFile{WriteKind::kRewritten, version};
  }

  const int root_fd_;
  undo::Interceptor& interceptor_;
  const WriteRequest& request_;
  std::string path_, folder_path_, name_;
  Fd folder_;
};

}  // namespace

Result<WrittenFile> WriteWholeFile(int root_fd, undo::Interceptor& interceptor,
                                   const WriteRequest& request) {
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  if (path.empty()) return Error(Code::kInvalid, "the project itself is a folder", EISDIR);
  return FileWriter(root_fd, interceptor, request).Run(path);
}

}  // namespace sandglass::session::files

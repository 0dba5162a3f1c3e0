#include "session/file_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/rel_path.h"
#include "undo/metadata.h"
#include "undo/object.h"

namespace sandglass::session {
namespace {

constexpr mode_t kNewFile = 0666, kNewFolder = 0777, kUsualMask = 022;

// The second half of every operation: do it unless the interceptor has, and record how it went.
template <class Call>
Status Complete(undo::Ticket& ticket, std::string_view what, std::string_view path,
                const Call& call) {
  if (ticket.performed()) return ticket.Commit(undo::Outcome::Done());
  const int failure = call() < 0 ? errno : 0;
  TRY(ticket.Commit(failure == 0 ? undo::Outcome::Done() : undo::Outcome::Failed(failure)));
  if (failure != 0) return Error::FromErrno(failure, fmt::format("{} {}", what, path));
  return Ok();
}

Status CopyAll(const Fd& from, const Fd& to) {
  off_t at = 0;
  while (true) {
    const ssize_t copied = ::sendfile(to.get(), from.get(), &at, size_t{1} << 30);
    if (copied == 0) return Ok();
    if (copied < 0 && errno != EINTR) return Error::FromErrno(errno, "write the file");
  }
}

class FileWriter {
 public:
  FileWriter(undo::Interceptor& interceptor, const WriteRequest& request)
      : interceptor_(interceptor),
        request_(request),
        folder_path_(ParentOf(request.path)),
        name_(BaseName(request.path)),
        draft_(fmt::format(".sandglass-{}.new", request.step.value)) {}

  Status Write(const Fd& content) {
    root_ = Fd(::open(request_.project.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root_) return Error::FromErrno(errno, "open the project");
    if (request_.folders == FoldersAround::kMade) TRY(MakeFolders());
    TRY_ASSIGN(folder_, OpenDirBeneath(root_.get(), folder_path_));
    TRY_ASSIGN(const auto present, LookAtPresent());
    TRY_ASSIGN(const Fd file, MakeDraft());
    TRY(CopyAll(content, file));
    TRY(Dress(file, present));
    return MoveIntoPlace(present.has_value());
  }

 private:
  undo::NameRef At(std::string_view name) const { return {{folder_.get(), folder_path_}, name}; }

  Status MakeFolders() {
    for (size_t end = 0; end < folder_path_.size();) {
      end = std::min(folder_path_.find('/', end + 1), folder_path_.size());
      TRY(MakeFolder(std::string_view(folder_path_).substr(0, end)));
    }
    return Ok();
  }

  Status MakeFolder(std::string_view path) {
    TRY_ASSIGN(const Fd around, OpenDirBeneath(root_.get(), ParentOf(path)));
    const std::string name(BaseName(path));
    struct stat there{};
    if (::fstatat(around.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) return Ok();
    TRY_ASSIGN(undo::Ticket ticket, interceptor_.BeginCreate({{around.get(), ParentOf(path)}, name},
                                                             undo::NodeType::kDirectory));
    TRY(Complete(ticket, "make the folder", path,
                 [&] { return ::mkdirat(around.get(), name.c_str(), kNewFolder & ~kUsualMask); }));
    struct stat owner{};
    if (::geteuid() == 0 && ::fstat(around.get(), &owner) == 0)
      (void)::fchownat(around.get(), name.c_str(), owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW);
    return Ok();
  }

  Result<std::optional<undo::OpenObject>> LookAtPresent() const {
    auto present = undo::OpenObjectAt({}, folder_.get(), name_.c_str());
    if (!present.ok() && present.error().code() == Code::kNotFound)
      return std::optional<undo::OpenObject>();
    if (!present.ok()) return present.error();
    if (present->stat.IsDirectory())
      return Error(Code::kInvalid, fmt::format("{} is a folder", request_.path));
    if (present->stat.IsSymlink())
      return Error(Code::kOutsideRoot,
                   fmt::format("{} is a symlink; write to what it points to", request_.path));
    if (!present->stat.IsRegular())
      return Error(Code::kUnsupported, fmt::format("{} is no regular file", request_.path));
    return std::optional(std::move(*present));
  }

  Result<Fd> MakeDraft() {
    TRY_ASSIGN(undo::Ticket ticket, interceptor_.BeginCreate(At(draft_), undo::NodeType::kFile));
    Fd file;
    TRY(Complete(ticket, "make", request_.path, [&] {
      file = Fd(::openat(folder_.get(), draft_.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      return file.get();
    }));
    return file;
  }

  // As what it replaces; a new file belongs to whom its folder belongs to.
  Status Dress(const Fd& file, const std::optional<undo::OpenObject>& present) {
    TRY_ASSIGN(const undo::OpenObject fresh, undo::OpenObjectFd({}, file.get()));
    TRY_ASSIGN(undo::Metadata wanted, undo::CaptureMetadata(fresh));
    const int64_t now = wanted.mtime_ns;
    if (present) {
      TRY_ASSIGN(wanted, undo::CaptureMetadata(*present));
      wanted.mtime_ns = now;
    } else {
      struct stat around{};
      if (::fstat(folder_.get(), &around) != 0) return Error::FromErrno(errno, "fstat");
      wanted.mode = S_IFREG | (kNewFile & ~kUsualMask);
      if (::geteuid() == 0) wanted.uid = around.st_uid, wanted.gid = around.st_gid;
    }
    const std::string path = JoinPath(folder_path_, draft_);
    TRY_ASSIGN(undo::Ticket ticket, interceptor_.BeginXattr({fresh.fd.get(), path}));
    const Status applied = undo::ApplyMetadata(fresh, wanted);
    TRY(ticket.Commit(undo::Outcome::Done()));
    return applied;
  }

  Status MoveIntoPlace(bool replaces) {
    const auto mode = replaces ? undo::RenameMode::kReplace : undo::RenameMode::kNoReplace;
    TRY_ASSIGN(undo::Ticket ticket, interceptor_.BeginRename(At(draft_), At(name_), mode));
    return Complete(ticket, "put in place", request_.path, [&] {
      return ::renameat2(folder_.get(), draft_.c_str(), folder_.get(), name_.c_str(),
                         replaces ? 0 : RENAME_NOREPLACE);
    });
  }

  undo::Interceptor& interceptor_;
  const WriteRequest& request_;
  const std::string folder_path_, name_, draft_;
  Fd root_, folder_;
};

}  // namespace

Status WriteFileAsStep(undo::UndoLog& log, const WriteRequest& request, const Fd& content) {
  if (!content) return Error(Code::kInvalid, "a file without its content");
  TRY_ASSIGN(const std::string path, NormalizeRelPath(request.path));
  if (path.empty() || path != request.path)
    return Error(Code::kInvalid, fmt::format("{} names no file", request.path));
  auto opened =
      log.OpenStep({.kind = undo::StepKind::kApi, .label = request.label, .id = request.step});
  if (!opened.ok()) return opened.error();
  Status done = FileWriter(log.interceptor(), request).Write(content);
  if (done.ok()) {
    auto closed = log.CloseStep();
    if (closed.ok()) return Ok();
    done = closed.error();
  }
  const auto taken_back = log.AbortStep();
  return taken_back.ok() ? done : Status(taken_back.error().WithContext(done.error().message()));
}

}  // namespace sandglass::session

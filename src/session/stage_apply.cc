#include "session/stage_apply.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <ranges>
#include <utility>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "session/files/perform.h"
#include "undo/place.h"
#include "undo/step_files.h"

namespace sandglass::session {
namespace {

using files::AsCall;
using files::Complete;
using undo::ChangeKind;
using undo::Ticket;

constexpr mode_t kWhileItIsMade = 0700;

class Applier {
 public:
  Applier(const Stage& stage, undo::Interceptor& interceptor)
      : stage_(stage), interceptor_(interceptor) {}

  Status Open() {
    staged_root_ = Fd(::open(stage_.upper().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    root_ = Fd(::open(stage_.project().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!staged_root_ || !root_) return Error::FromErrno(errno, "open the stage");
    return Ok();
  }

  Status Apply(const StagedChange& change) {
    const std::string& path = change.change.path;
    if (change.change.kind == ChangeKind::kDeleted) return RemoveTree(path);
    TRY_ASSIGN(const undo::OpenObject staged, OpenStaged(path));
    if (change.change.kind == ChangeKind::kCreated) return Create(path, staged);
    return Modify(path, staged);
  }

  // When everything in it is done: its mode could have kept that from being done, and its time has moved.
  Status FinishFolder(const std::string& path) {
    TRY_ASSIGN(const undo::OpenObject staged, OpenStaged(path));
    return TakeMetadata(path, staged);
  }

 private:
  struct Place {
    Fd folder;
    std::string folder_path, name;
    undo::NameRef ref() const { return {{folder.get(), folder_path}, name}; }
  };
  Result<Place> Find(const std::string& path) const {
    const std::string folder(ParentOf(path));
    TRY_ASSIGN(Fd fd, OpenDirBeneath(root_.get(), folder));
    return Place{std::move(fd), folder, std::string(BaseName(path))};
  }

  Result<undo::OpenObject> OpenStaged(const std::string& path) const {
    TRY_ASSIGN(const Fd fd, OpenBeneath(staged_root_.get(), path, O_PATH | O_NOFOLLOW));
    return undo::OpenObjectFd({}, fd.get());
  }
  Result<undo::OpenObject> OpenPresent(const std::string& path) const {
    TRY_ASSIGN(const Fd fd, OpenBeneath(root_.get(), path, O_PATH | O_NOFOLLOW));
    return undo::OpenObjectFd({}, fd.get());
  }

  // --- Names

  Status Remove(const std::string& path, int flags) {
    TRY_ASSIGN(const Place at, Find(path));
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginRemove(at.ref()));
    return Complete(ticket, "remove", path,
                    [&] { return ::unlinkat(at.folder.get(), at.name.c_str(), flags); });
  }

  Status RemoveTree(const std::string& path) {
    TRY_ASSIGN(const undo::OpenObject present, OpenPresent(path));
    if (!present.stat.IsDirectory()) return Remove(path, 0);
    TRY_ASSIGN(const std::vector<std::string> names, NamesIn(path));
    for (const std::string& name : names) TRY(RemoveTree(JoinPath(path, name)));
    return Remove(path, AT_REMOVEDIR);
  }

  Result<std::vector<std::string>> NamesIn(const std::string& path) const {
    TRY_ASSIGN(Fd fd, OpenBeneath(root_.get(), path, O_RDONLY | O_DIRECTORY));
    return undo::ListNames(fd.get());
  }

  Status Create(const std::string& path, const undo::OpenObject& staged) {
    if (staged.stat.nlink > 1 && !staged.stat.IsDirectory()) {
      const auto [made, fresh] = made_.try_emplace(staged.stat.ino, path);
      if (!fresh) return Link(made->second, path);
    }
    TRY(CreateNode(path, staged));
    if (staged.stat.IsRegular()) TRY(Fill(path, staged));
    if (staged.stat.IsDirectory()) return Ok();  // FinishFolder does the rest
    return TakeMetadata(path, staged);
  }

  Status CreateNode(const std::string& path, const undo::OpenObject& staged) {
    TRY_ASSIGN(const Place at, Find(path));
    TRY_ASSIGN(const undo::Metadata metadata, StagedMetadata(staged));
    TRY_ASSIGN(Ticket ticket,
               interceptor_.BeginCreate(at.ref(), undo::NodeTypeOf(staged.stat.mode)));
    return Complete(ticket, "create", path, [&] {
      if (staged.stat.IsDirectory())
        return ::mkdirat(at.folder.get(), at.name.c_str(), kWhileItIsMade);
      if (staged.stat.IsSymlink())
        return ::symlinkat(metadata.symlink_target.c_str(), at.folder.get(), at.name.c_str());
      return ::mknodat(at.folder.get(), at.name.c_str(),
                       (staged.stat.mode & S_IFMT) | (kWhileItIsMade & 0600), staged.stat.rdev);
    });
  }

  Status Link(const std::string& from, const std::string& to) {
    TRY_ASSIGN(const Place at, Find(to));
    TRY_ASSIGN(const undo::OpenObject object, OpenPresent(from));
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginLink({object.fd.get(), from}, at.ref()));
    return Complete(ticket, "link", to, [&] {
      return ::linkat(AT_FDCWD, undo::ProcPath(object.fd.get()).c_str(), at.folder.get(),
                      at.name.c_str(), AT_SYMLINK_FOLLOW);
    });
  }

  // --- Content and metadata

  Status Modify(const std::string& path, const undo::OpenObject& staged) {
    TRY_ASSIGN(const undo::OpenObject present, OpenPresent(path));
    if (staged.stat.IsDirectory()) return OpenUp(path, staged, present);
    // The command has seen the other names of a file keep what they had, and a symlink has no content that could be changed.
    const bool shared = staged.stat.IsRegular() && present.stat.nlink > 1;
    if (!staged.stat.IsRegular() || shared) {
      TRY(Remove(path, 0));
      return Create(path, staged);
    }
    TRY(Fill(path, staged));
    if (staged.stat.nlink > 1) made_.try_emplace(staged.stat.ino, path);
    return TakeMetadata(path, staged);
  }

  // Writes only if there is something to change, and in place.
  Status Fill(const std::string& path, const undo::OpenObject& staged) {
    TRY_ASSIGN(const Fd content, OpenStagedFile(staged));
    TRY_ASSIGN(const undo::OpenObject present, OpenPresent(path));
    if (present.readable && present.stat.size == staged.stat.size) {
      TRY_ASSIGN(const bool same,
                 undo::SameBytes(content.get(), present.fd.get(), staged.stat.size));
      if (same) return Ok();
    }
    TRY_ASSIGN(Ticket ticket,
               interceptor_.BeginOpenForWrite({present.fd.get(), path}, undo::Truncate::kYes,
                                              undo::WriteVisibility::kUnseen));
    const int held = ticket.replaced() ? ticket.fresh_fd() : present.fd.get();
    const int flags = ticket.performed() ? O_WRONLY : O_WRONLY | O_TRUNC;
    const Fd file(::open(undo::ProcPath(held).c_str(), flags | O_CLOEXEC));
    const int failure = file ? 0 : errno;
    TRY(ticket.Commit(failure == 0 ? undo::Outcome::Done() : undo::Outcome::Failed(failure)));
    if (failure != 0) return Error::FromErrno(failure, fmt::format("write {}", path));
    TRY(undo::CopySparse(content.get(), file.get(), staged.stat.size));
    return Ok();
  }

  // With its owner's permissions for the time being, so that changes within it can be made.
  Status OpenUp(const std::string& path, const undo::OpenObject& staged,
                const undo::OpenObject& present) {
    TRY_ASSIGN(undo::Metadata wanted, WantedMetadata(staged, present));
    wanted.mode |= kWhileItIsMade;
    return SetMetadata(path, present, wanted);
  }

  Status TakeMetadata(const std::string& path, const undo::OpenObject& staged) {
    TRY_ASSIGN(const undo::OpenObject present, OpenPresent(path));
    TRY_ASSIGN(const undo::Metadata wanted, WantedMetadata(staged, present));
    return SetMetadata(path, present, wanted);
  }

  // Attributes that are not the command's stay as the project has them.
  static Result<undo::Metadata> WantedMetadata(const undo::OpenObject& staged,
                                               const undo::OpenObject& present) {
    TRY_ASSIGN(undo::Metadata wanted, StagedMetadata(staged));
    TRY_ASSIGN(const undo::Metadata now, undo::CaptureMetadata(present));
    for (const auto& xattr : now.xattrs) {
      if (!IsOfTheCommand(xattr.first)) wanted.xattrs.push_back(xattr);
    }
    std::ranges::sort(wanted.xattrs);
    wanted.flags = now.flags;
    return wanted;
  }

  Status SetMetadata(const std::string& path, const undo::OpenObject& present,
                     const undo::Metadata& wanted) {
    TRY_ASSIGN(undo::Metadata with_xattrs, undo::CaptureMetadata(present));
    if (with_xattrs.xattrs != wanted.xattrs) {
      with_xattrs.xattrs = wanted.xattrs;
      TRY_ASSIGN(Ticket ticket, interceptor_.BeginXattr({present.fd.get(), path}));
      TRY(Complete(ticket, "set attributes of", path,
                   [&] { return AsCall(undo::ApplyMetadata(present, with_xattrs)); }));
    }
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginMetadata({present.fd.get(), path}));
    return Complete(ticket, "set mode and owner of", path,
                    [&] { return AsCall(undo::ApplyMetadata(present, wanted)); });
  }

  const Stage& stage_;
  undo::Interceptor& interceptor_;
  Fd staged_root_, root_;
  std::map<uint64_t, std::string>
      made_;  // by inode of the stage: names of one file become names of one file
};

// Chosen by itself, or a new folder around something that was chosen.
bool IsWanted(const StagedChange& change, const std::set<std::string>& paths) {
  const std::string& path = change.change.path;
  if (paths.contains(path)) return true;
  if (!change.folder || change.change.kind != ChangeKind::kCreated) return false;
  const auto below = paths.lower_bound(path + "/");
  return below != paths.end() && below->starts_with(path + "/");
}

Status ApplyAll(Applier& applier, const StageScan& scan, const std::set<std::string>& paths,
                AppliedStage& applied) {
  std::set<std::string> done;
  for (const StagedChange& change : scan.changes) {
    const std::string& path = change.change.path;
    if (!IsWanted(change, paths)) continue;
    if (!change.conflict.empty()) {
      const bool told = !applied.conflicts.empty() && applied.conflicts.back().path == path;
      if (!told) applied.conflicts.push_back({path, change.conflict});
      continue;
    }
    TRY(applier.Apply(change));
    done.insert(path);
  }
  for (const std::string& folder : scan.folders | std::views::reverse) {
    if (done.contains(folder)) TRY(applier.FinishFolder(folder));
  }
  return Ok();
}

}  // namespace

Result<AppliedStage> ApplyStage(const Stage& stage, const std::set<std::string>& paths,
                                undo::UndoLog& log, const undo::StepSpec& step) {
  // Anew: it may be a while since somebody was asked.
  TRY_ASSIGN(const StageScan scan, ScanStage(stage));
  Applier applier(stage, log.interceptor());
  TRY(applier.Open());
  AppliedStage applied;
  TRY_ASSIGN(applied.step, log.OpenStep(step));
  Status done = ApplyAll(applier, scan, paths, applied);
  if (done.ok()) {
    auto closed = log.CloseStep();
    if (!closed.ok()) done = closed.error();
  }
  if (!done.ok()) {
    const auto taken_back = log.AbortStep();
    return taken_back.ok() ? done.error().WithContext("nothing was applied")
                           : taken_back.error().WithContext(done.error().message());
  }
  TRY_ASSIGN(applied.changes, log.Changes(applied.step));
  return applied;
}

}  // namespace sandglass::session

#include "session/stage_scan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/place.h"
#include "undo/step_files.h"

namespace sandglass::session {
namespace {

constexpr char kOpaque[] = "user.overlay.opaque";
constexpr char kOrigin[] = "user.overlay.origin";
constexpr std::string_view kOverlayMarks = "user.overlay.";
constexpr char kChanged[] = "somebody else changed it meanwhile";
constexpr char kRemoved[] = "somebody else removed it meanwhile";

Result<std::vector<std::string>> ListSorted(int folder) {
  TRY_ASSIGN(std::vector<std::string> names, undo::ListNames(folder));
  std::ranges::sort(names);
  return names;
}

bool IsWhiteout(const undo::FileStat& stat) { return S_ISCHR(stat.mode) && stat.rdev == 0; }

std::string MarkOf(const undo::OpenObject& object, const char* mark) {
  char value[256];
  const ssize_t size =
      ::getxattr(undo::ProcPath(object.fd.get()).c_str(), mark, value, sizeof(value));
  if (size < 0) return "";
  return "=" + std::string(value, static_cast<size_t>(size));
}

bool SameType(const undo::FileStat& one, const undo::FileStat& other) {
  return (one.mode & S_IFMT) == (other.mode & S_IFMT);
}

// The time of a folder moves with whatever changes in it, here and there.
bool SameMetadata(const undo::Metadata& staged, undo::Metadata present) {
  std::erase_if(present.xattrs, [](const auto& xattr) { return !IsOfTheCommand(xattr.first); });
  const bool times = S_ISDIR(staged.mode) || staged.mtime_ns == present.mtime_ns;
  return times && staged.mode == present.mode && staged.uid == present.uid &&
         staged.gid == present.gid && staged.rdev == present.rdev &&
         staged.xattrs == present.xattrs && staged.symlink_target == present.symlink_target;
}

// A folder of the stage may be one that its owner cannot look into; for us it is opened meanwhile.
class OpenedFolder {
 public:
  explicit OpenedFolder(const undo::OpenObject& folder) : folder_(folder) {
    undo::LiftMode(folder_, S_IRWXU, lifted_);
  }
  ~OpenedFolder() { undo::Lower(folder_, lifted_); }
  OpenedFolder(const OpenedFolder&) = delete;
  OpenedFolder& operator=(const OpenedFolder&) = delete;

 private:
  const undo::OpenObject& folder_;
  undo::Lifted lifted_;
};

class Scanner {
 public:
  explicit Scanner(const Stage& stage) : stage_(stage) {}

  Result<StageScan> Scan() {
    TRY_ASSIGN(const undo::OpenObject staged, Open(stage_.upper()));
    TRY_ASSIGN(const undo::OpenObject present, Open(stage_.project()));
    TRY(Compare("", staged, present, ""));
    return std::move(scan_);
  }

 private:
  static Result<undo::OpenObject> Open(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return Error::FromErrno(errno, fmt::format("open {}", path));
    return undo::OpenObjectFd({}, fd.get());
  }

  bool Edited(const undo::FileStat& present) const {
    return present.ctime_ns > stage_.started_ns();
  }

  void Add(undo::ChangeKind kind, const std::string& path, const undo::FileStat* staged,
           const undo::FileStat* present, std::string conflict) {
    StagedChange found{.change = {.kind = kind, .path = path, .old_path = ""}};
    if (present != nullptr && present->IsRegular()) found.change.old_size = present->size;
    if (staged != nullptr && staged->IsRegular()) found.change.new_size = staged->size;
    found.folder = (staged != nullptr ? staged : present)->IsDirectory();
    found.conflict = std::move(conflict);
    scan_.changes.push_back(std::move(found));
  }

  // `present`: what the project has under that path. `inherited`: a conflict of a folder around it.
  Status Compare(const std::string& path, const undo::OpenObject& staged,
                 const undo::OpenObject& present, const std::string& inherited) {
    if (!SameType(staged.stat, present.stat)) {
      TRY_ASSIGN(const std::string conflict, ConflictOfTree(present));
      Add(undo::ChangeKind::kDeleted, path, nullptr, &present.stat, conflict);
      return AddCreatedTree(path, staged, conflict);
    }
    TRY_ASSIGN(const bool same, IsSame(staged, present));
    if (!same)
      Add(undo::ChangeKind::kModified, path, &staged.stat, &present.stat,
          Edited(present.stat) ? kChanged : inherited);
    if (!staged.stat.IsDirectory()) return Ok();
    scan_.folders.push_back(path);
    return Descend(path, staged, &present, inherited);
  }

  // What was in the project when the command began has a mark in the stage, also under a name that the command itself gave it. From a
  // folder that nobody has touched since then, nobody has removed anything. `around`: the folder there, if the project has it.
  Status AddCreated(const std::string& path, const undo::OpenObject& staged,
                    const undo::OpenObject* around, const std::string& inherited) {
    const bool removed = inherited.empty() && around != nullptr && Edited(around->stat) &&
                         !MarkOf(staged, kOrigin).empty();
    return AddCreatedTree(path, staged, removed ? kRemoved : inherited);
  }

  Status AddCreatedTree(const std::string& path, const undo::OpenObject& staged,
                        const std::string& conflict) {
    Add(undo::ChangeKind::kCreated, path, &staged.stat, nullptr, conflict);
    if (!staged.stat.IsDirectory()) return Ok();
    scan_.folders.push_back(path);
    return Descend(path, staged, nullptr, conflict);
  }

  Status Descend(const std::string& path, const undo::OpenObject& staged,
                 const undo::OpenObject* present, const std::string& inherited) {
    const OpenedFolder opened(staged);
    TRY_ASSIGN(const std::vector<std::string> names, ListSorted(staged.fd.get()));
    for (const std::string& name : names) TRY(CompareName(path, name, staged, present, inherited));
    if (present == nullptr || MarkOf(staged, kOpaque) != "=y") return Ok();
    TRY_ASSIGN(const std::vector<std::string> present_names, ListSorted(present->fd.get()));
    for (const std::string& name : present_names) {
      if (std::ranges::binary_search(names, name)) continue;
      TRY_ASSIGN(const auto gone, undo::OpenObjectAt({}, present->fd.get(), name.c_str()));
      TRY(AddDeleted(JoinPath(path, name), gone));
    }
    return Ok();
  }

  Status CompareName(const std::string& folder, const std::string& name,
                     const undo::OpenObject& staged_folder, const undo::OpenObject* present_folder,
                     const std::string& inherited) {
    const std::string path = JoinPath(folder, name);
    TRY_ASSIGN(const auto staged, undo::OpenObjectAt({}, staged_folder.fd.get(), name.c_str()));
    std::optional<undo::OpenObject> present;
    if (present_folder != nullptr) {
      auto found = undo::OpenObjectAt({}, present_folder->fd.get(), name.c_str());
      if (!found.ok() && found.error().code() != Code::kNotFound) return found.error();
      if (found.ok()) present = std::move(*found);
    }
    if (IsWhiteout(staged.stat)) return present ? AddDeleted(path, *present) : Ok();
    return present ? Compare(path, staged, *present, inherited)
                   : AddCreated(path, staged, present_folder, inherited);
  }

  Status AddDeleted(const std::string& path, const undo::OpenObject& present) {
    TRY_ASSIGN(std::string conflict, ConflictOfTree(present));
    Add(undo::ChangeKind::kDeleted, path, nullptr, &present.stat, std::move(conflict));
    return Ok();
  }

  // Of an object with everything below it, which is to go.
  Result<std::string> ConflictOfTree(const undo::OpenObject& present) {
    if (Edited(present.stat)) return std::string(kChanged);
    if (!present.stat.IsDirectory()) return std::string();
    TRY_ASSIGN(const std::vector<std::string> names, ListSorted(present.fd.get()));
    for (const std::string& name : names) {
      TRY_ASSIGN(const auto child, undo::OpenObjectAt({}, present.fd.get(), name.c_str()));
      TRY_ASSIGN(std::string conflict, ConflictOfTree(child));
      if (!conflict.empty()) return conflict;
    }
    return std::string();
  }

  static Result<bool> IsSame(const undo::OpenObject& staged, const undo::OpenObject& present) {
    TRY_ASSIGN(const undo::Metadata wanted, StagedMetadata(staged));
    TRY_ASSIGN(const undo::Metadata now, undo::CaptureMetadata(present, undo::Lifting::kNo));
    if (!SameMetadata(wanted, now)) return false;
    if (!staged.stat.IsRegular()) return true;
    if (staged.stat.size != present.stat.size) return false;
    TRY_ASSIGN(const Fd content, OpenStagedFile(staged));
    if (!present.readable) return false;
    return undo::SameBytes(content.get(), present.fd.get(), staged.stat.size);
  }

  const Stage& stage_;
  StageScan scan_;
};

}  // namespace

bool IsOfTheCommand(std::string_view xattr) {
  return (xattr.starts_with("user.") && !xattr.starts_with(kOverlayMarks)) ||
         xattr.starts_with("system.posix_acl_");
}

Result<undo::Metadata> StagedMetadata(const undo::OpenObject& object) {
  TRY_ASSIGN(undo::Metadata metadata, undo::CaptureMetadata(object));
  std::erase_if(metadata.xattrs, [](const auto& xattr) { return !IsOfTheCommand(xattr.first); });
  return metadata;
}

Result<Fd> OpenStagedFile(const undo::OpenObject& object) {
  undo::Lifted lifted;
  undo::LiftMode(object, S_IRUSR, lifted);
  Fd file(::open(undo::ProcPath(object.fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  undo::Lower(object, lifted);
  if (!file) return Error::FromErrno(error, "read a staged file");
  return file;
}

Result<StageScan> ScanStage(const Stage& stage) { return Scanner(stage).Scan(); }

}  // namespace sandglass::session

#include "session/stage_diff.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/beneath.h"
#include "base/io.h"
#include "undo/text_diff.h"

namespace sandglass::session {
namespace {

constexpr uint64_t kMaxCompared = uint64_t{4} << 20;

// One side: a file's bytes, or where a symlink leads.
struct Side {
  std::string content;
  uint32_t mode = 0;
};

Result<Side> Read(const std::string& root, const std::string& path) {
  const Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Error::FromErrno(errno, root);
  TRY_ASSIGN(const Fd fd, OpenBeneath(folder.get(), path, O_PATH | O_NOFOLLOW));
  TRY_ASSIGN(const undo::OpenObject object, undo::OpenObjectFd({}, fd.get()));
  Side side{.content = "", .mode = object.stat.mode};
  if (object.stat.IsSymlink()) {
    TRY_ASSIGN(const undo::Metadata metadata, undo::CaptureMetadata(object));
    side.content = metadata.symlink_target;
  }
  if (!object.stat.IsRegular()) return side;
  TRY_ASSIGN(const Fd file, OpenStagedFile(object));
  TRY_ASSIGN(const Bytes bytes, ReadFully(file.get(), kMaxCompared));
  side.content = std::string(AsText(bytes));
  return side;
}

}  // namespace

Result<std::string> DiffOf(const Stage& stage, const StagedChange& change) {
  const undo::Change& what = change.change;
  if (change.folder || what.old_size > kMaxCompared || what.new_size > kMaxCompared)
    return std::string();
  Side before, after;
  undo::DiffInput old_side{
      .path = what.path, .content = "", .presence = undo::FilePresence::kAbsent};
  undo::DiffInput new_side = old_side;
  if (what.kind != undo::ChangeKind::kCreated) {
    TRY_ASSIGN(before, Read(stage.project(), what.path));
    old_side = {.path = what.path, .content = before.content, .mode = before.mode};
  }
  if (what.kind != undo::ChangeKind::kDeleted) {
    TRY_ASSIGN(after, Read(stage.upper(), what.path));
    new_side = {.path = what.path, .content = after.content, .mode = after.mode};
  }
  return undo::UnifiedDiff(old_side, new_side);
}

}  // namespace sandglass::session

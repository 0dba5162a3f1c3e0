#include "tests/model/project_actor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sandglass::model {

namespace {

constexpr size_t kMaxKept = 4;

}  // namespace

ProjectActor::ProjectActor(undo::UndoLog& log, const std::string& project, uint32_t directories,
                           Trace& trace)
    : ops_(log, project), directories_(directories), trace_(trace) {}

ProjectActor::Handler ProjectActor::HandlerOf(Op op) {
  static constexpr std::array<Handler, static_cast<size_t>(Op::kFailing) + 1> kHandlers = {
      &ProjectActor::Create,          &ProjectActor::WriteNew,       &ProjectActor::Overwrite,
      &ProjectActor::WriteUnseen,     &ProjectActor::WriteAnnounced, &ProjectActor::AppendUnseen,
      &ProjectActor::AppendAnnounced, &ProjectActor::TruncateUp,     &ProjectActor::TruncateDown,
      &ProjectActor::PunchHole,       &ProjectActor::Fallocate,      &ProjectActor::CopyRange,
      &ProjectActor::MmapWrite,       &ProjectActor::RenameWithin,   &ProjectActor::RenameAcross,
      &ProjectActor::RenameOver,      &ProjectActor::RenameExchange, &ProjectActor::RenameDirectory,
      &ProjectActor::HardLink,        &ProjectActor::WriteOtherLink, &ProjectActor::UnlinkOneLink,
      &ProjectActor::UnlinkLast,      &ProjectActor::UnlinkOpen,     &ProjectActor::RelinkOpen,
      &ProjectActor::RelinkGone,      &ProjectActor::OpenUnchanged,  &ProjectActor::KeepOpen,
      &ProjectActor::WriteKept,       &ProjectActor::CloseKept,      &ProjectActor::Mkdir,
      &ProjectActor::Rmdir,           &ProjectActor::RemoveTree,     &ProjectActor::RecreateName,
      &ProjectActor::Stage,           &ProjectActor::PassThrough,    &ProjectActor::Symlink,
      &ProjectActor::Mknod,           &ProjectActor::Chmod,          &ProjectActor::Chown,
      &ProjectActor::Utimes,          &ProjectActor::SetXattr,       &ProjectActor::RemoveXattr,
      &ProjectActor::SetFlags,        &ProjectActor::Failing,
  };
  CHECK(static_cast<size_t>(op) < kHandlers.size());
  return kHandlers[static_cast<size_t>(op)];
}

Result<Effect> ProjectActor::Apply(const Command& command) {
  Turn turn{command, Inventory(ops_.root_fd(), directories_), Dice(command.salt)};
  Result<Effect> effect = (this->*HandlerOf(command.op))(turn);
  if (!effect.ok()) {
    return effect.error().WithContext(InfoOf(command.op).name);
  }
  return effect;
}

std::vector<undo::ObjectRef> ProjectActor::LiveWriters() const {
  std::vector<undo::ObjectRef> writers;
  for (const KeptFile& file : kept_) {
    if (file.writable) writers.push_back({file.fd.get()});
  }
  return writers;
}

void ProjectActor::CloseWriters() {
  std::erase_if(kept_, [](const KeptFile& file) { return file.writable; });
}

void ProjectActor::Note(const Command& command, std::string text) {
  trace_.Add(fmt::format("{}: {}", InfoOf(command.op).name, text));
}

void ProjectActor::Keep(KeptFile file) {
  if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
  kept_.push_back(std::move(file));
}

// What was chosen is possible, so only a missing ability of the place may be in the way.
Result<Effect> ProjectActor::Judge(const Status& status) const {
  if (status.ok()) return Effect::kDone;
  const int failure = status.error().sys_errno();
  if (failure == EOPNOTSUPP || failure == ENOTTY) return Effect::kUnsupported;
  if (geteuid() != 0 && (failure == EPERM || failure == EACCES)) return Effect::kUnsupported;
  return status.error();
}

Status ProjectActor::MustFail(const Status& status, int expected_errno) const {
  const int seen = status.ok() ? 0 : ErrnoFor(status.error());
  if (seen == expected_errno) return Ok();
  return Error{Code::kInvalid, fmt::format("expected {}, got {}", std::strerror(expected_errno),
                                           status.ok() ? "success" : status.error().ToString())};
}

}  // namespace sandglass::model

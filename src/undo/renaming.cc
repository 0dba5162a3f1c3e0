#include "undo/renaming.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/rel_path.h"

namespace sandglass::undo {

Result<bool> Renaming::LooksLikeFolder() const {
  TRY_ASSIGN(FileStat object, StatAt(from_.dir.fd, std::string(from_.name).c_str()));
  if (object.IsDirectory()) return true;
  if (mode_ != RenameMode::kExchange) return false;
  const auto target = StatAt(to_.dir.fd, std::string(to_.name).c_str());
  return target.ok() && target->IsDirectory();
}

Status Renaming::Look() {
  TRY_ASSIGN(folder_, LooksLikeFolder());
  TRY(attempt_.Enter(folder_ ? StepGate::Way::kAlone : StepGate::Way::kTogether));
  TRY_ASSIGN(from_dir_, attempt_.FindDir(from_.dir));
  TRY_ASSIGN(to_dir_, attempt_.FindDir(to_.dir));
  attempt_.HoldFirst({from_dir_.id, to_dir_.id});
  from_path_ = JoinPath(from_dir_.path, from_.name);
  to_path_ = JoinPath(to_dir_.path, to_.name);
  const Identifier& identifier = log_.place().identifier;
  TRY_ASSIGN(object_, FindObjectAt(identifier, from_.dir.fd, std::string(from_.name).c_str()));
  auto target = FindObjectAt(identifier, to_.dir.fd, std::string(to_.name).c_str());
  if (target.ok())
    target_ = std::move(*target);
  else if (target.error().code() != Code::kNotFound || mode_ == RenameMode::kExchange)
    return target.error();
  const bool moves_folder = object_.stat.IsDirectory() || (mode_ == RenameMode::kExchange &&
                                                           target_ && target_->stat.IsDirectory());
  // Somebody gave the name to a folder before it was held.
  return moves_folder && !folder_ ? Status(attempt_.Collide(object_.id)) : Ok();
}

bool Renaming::LeavesOut() const {
  const auto both = [&](const OpenObject& object) {
    return attempt_.LeavesOut(from_path_, object) && attempt_.LeavesOut(to_path_, object);
  };
  if (!both(object_)) return false;
  if (!target_ || mode_ == RenameMode::kNoReplace) return true;
  return mode_ == RenameMode::kExchange ? both(*target_) : attempt_.LeavesOut(to_path_, *target_);
}

std::optional<Result<Ticket>> Renaming::Shortcut() {
  // Names that undo does not care about on both sides; if one side matters, the move does. So it does for what is replaced.
  if (LeavesOut()) return UnrecordedTicket();
  if (!target_) return std::nullopt;
  if (mode_ == RenameMode::kNoReplace)
    return Error(Code::kExists, fmt::format("{} exists", to_path_), EEXIST);
  // Two names of one object: POSIX says that nothing happens. Both folders stay held, so that they are still that when it
  // does not happen.
  if (target_->id == object_.id) return attempt_.FinishUnrecorded();
  return std::nullopt;
}

Status Renaming::HoldAndAsk() {
  TRY(attempt_.Hold(object_));
  TRY(attempt_.CheckGround(object_, from_path_));
  if (!target_) return Ok();
  TRY(attempt_.Hold(*target_));
  TRY(attempt_.CheckGround(*target_, to_path_));
  if (!replaces() || attempt_.writer().IsBorn(target_->id)) return Ok();
  return attempt_.Ask(log_.safeguards().OnRenameOver(to_path_, attempt_.state().claim));
}

Status Renaming::KeepBoth() {
  TRY(attempt_.TouchDir(from_dir_));
  TRY(attempt_.TouchDir(to_dir_));
  // A rename moves the ctime of what is renamed: how it looked before must be on record, or it would look like an edit later.
  TRY(attempt_.writer().TouchMeta(object_, from_path_, TouchReason::kNames));
  if (mode_ == RenameMode::kExchange)
    return attempt_.writer().TouchMeta(*target_, to_path_, TouchReason::kNames);
  if (!replaces()) return Ok();
  TRY_ASSIGN(keep_, attempt_.KeepObject(*target_, to_, to_path_));
  return Ok();
}

Status Renaming::Intend() {
  if (object_.stat.IsDirectory())
    attempt_.writer().NoteCarried(object_.id, attempt_.Uncarried(from_path_));
  if (mode_ == RenameMode::kExchange && target_->stat.IsDirectory())
    attempt_.writer().NoteCarried(target_->id, attempt_.Uncarried(to_path_));
  TRY_ASSIGN(attempt_.state().seq,
             attempt_.writer().IntendRename(Attempt::At(from_dir_, from_.name),
                                            Attempt::At(to_dir_, to_.name), mode_, object_,
                                            target_ ? &*target_ : nullptr, keep_));
  if (!keep_.by_rename) return Ok();
  const std::string what = fmt::format("replace {}", to_path_);
  if (object_.stat.IsDirectory()) return Error::FromErrno(ENOTDIR, what);
  // The old target moves aside first; the bridge's rename then finds the name free.
  return attempt_.MoveToAnchor(keep_, to_, what);
}

Ticket Renaming::Finish() {
  TicketState& state = attempt_.state();
  state.folder_rename = folder_;
  state.intent = {IntentKind::kRename, to_.dir.fd, to_dir_.id, std::string(to_.name), object_.id};
  if (replaces() && target_->stat.IsDirectory()) state.lost_folder = target_->id;
  if (target_) state.target = std::move(*target_);
  state.object = std::move(object_);
  return attempt_.Finish();
}
}  // namespace sandglass::undo

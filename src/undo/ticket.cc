#include "undo/ticket.h"

#include <cerrno>
#include <utility>

namespace sandglass::undo {

// What became of an operation that nobody tells of. nullopt: the folder is closed already, so that nobody can say.
std::optional<Outcome> TicketState::Judge() const {
  if (performed) return Outcome::Done();
  if (!intent) return Outcome::Failed(ECANCELED);
  const Identifier& identifier = log->place().identifier;
  const auto dir = identifier.OfFd(intent->dir_fd);
  if (!dir.ok() || *dir != intent->dir) return std::nullopt;
  const auto now = identifier.OfName(intent->dir_fd, intent->name.c_str());
  if (!now.ok() && now.error().code() != Code::kNotFound) return std::nullopt;
  return HasHappened(intent->kind, intent->object, now.ok() ? *now : kNoObject)
             ? Outcome::Done()
             : Outcome::Failed(ECANCELED);
}

// The operation did not happen: what Begin did for it is undone.
Status TicketState::GiveBack() {
  if (performed) return Ok();
  writer->ReleaseKeep(keep, kept_object, kept_dir, kept_name);
  if (!replacement) return Ok();
  return writer->TakeBackReplacement(*replacement, *replaced_in, kept_name);
}
void TicketState::NoteLostName() const {
  if (keep.kept != Kept::kContent) return;
  for (const std::optional<OpenObject>* each : {&object, &target}) {
    if (!*each || (*each)->id != kept_object) continue;
    if (const auto stat = StatFd((*each)->fd.get()); stat.ok() && stat->nlink > 0)
      writer->NoteLostName(kept_object, *stat);
  }
}

Ticket UnrecordedTicket() { return Ticket(std::make_unique<TicketState>()); }

Ticket::Ticket(std::unique_ptr<TicketState> state) : state_(std::move(state)) {}
Ticket::Ticket(Ticket&&) noexcept = default;
Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Ticket::~Ticket() { Cancel(); }

bool Ticket::performed() const { return state_ != nullptr && state_->performed; }
int Ticket::fresh_fd() const {
  if (state_ == nullptr || !state_->replacement) return -1;
  return state_->replacement->fresh_fd.get();
}

Status Ticket::Commit(Outcome outcome) {
  if (state_ == nullptr) return Ok();
  std::unique_ptr<TicketState> state = std::move(state_);
  if (state->writer == nullptr) return Ok();
  // What was moved has to be back before the journal says that nothing happened. A link is the other way round: a journal that still
  // knows of it must find it.
  const bool failed = outcome.sys_errno != 0;
  const bool links_only = state->seq && !state->keep.by_rename && !state->replacement;
  Status given_back;
  if (failed && !links_only) given_back = state->GiveBack();
  if (outcome.sys_errno == 0) {
    state->claim.Count();
    state->NoteLostName();
    if (state->lost_folder) state->writer->NoteGone(*state->lost_folder);
  }
  if (state->folder_rename && outcome.sys_errno == 0) ++state->log->folder_renames();
  if (!state->seq) {
    LogCore& log = *state->log;
    state.reset();
    log.FireEvents();
    return given_back;
  }
  ObjectId created;
  if (outcome.sys_errno == 0 && state->intent && state->intent->IsBirth()) {
    auto id =
        state->log->place().identifier.OfName(state->intent->dir_fd, state->intent->name.c_str());
    if (id.ok()) created = *id;  // else it is gone again already
  }
  Status settled = state->writer->Settle(*state->seq, outcome.sys_errno, created);
  if (failed && links_only && settled.ok()) (void)state->GiveBack();
  LogCore& log = *state->log;
  state.reset();
  log.FireEvents();
  return settled;
}

// Judged here, where the names are still held: by the time the step closes a person may have used them. An outcome that cannot be told or
// recorded is judged then after all, and what could not be given back is on record, so that undo has it.
void Ticket::Cancel() {
  if (state_ != nullptr && state_->writer != nullptr) {
    if (const auto outcome = state_->Judge()) (void)Commit(*outcome);
  }
  state_.reset();
}

}  // namespace sandglass::undo

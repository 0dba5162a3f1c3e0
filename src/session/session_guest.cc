// What a program does with a session that it shares its thread with.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/io.h"
#include "session/command_run.h"
#include "session/held_steps.h"
#include "session/idle_loop.h"
#include "session/parts.h"
#include "session/session.h"
#include "session/standstill.h"
#include "session/step_keeper.h"

namespace sandglass::session {

void Session::SetGuest(LoopGuest* guest) { parts_->guest = guest; }

Status Session::Idle() {
  CHECK(parts_->guest != nullptr);
  return IdleLoop(*parts_).Run();
}

void Session::Ask(RewindRequest request, RewindReply reply) {
  CHECK(parts_->running != nullptr || parts_->idle != nullptr);
  if (parts_->running != nullptr) return parts_->running->Ask(std::move(request), std::move(reply));
  parts_->idle->Ask(std::move(request), std::move(reply));
}

std::optional<StepId> Session::running_step() const {
  if (parts_->running == nullptr) return std::nullopt;
  return parts_->running->step();
}

void Session::CancelCommand() {
  if (parts_->running != nullptr) parts_->running->Cancel();
}

void Session::SignalCommand(int number) {
  if (parts_->running != nullptr) parts_->running->Signal(number);
}

Status Session::ResizeTerminal(control::TerminalSize size) {
  if (parts_->running == nullptr) return Error(Code::kNotFound, "no command runs");
  return parts_->running->Resize(size);
}

Result<WrittenFile> Session::WriteFile(const FileToWrite& file) {
  const Fd content(::memfd_create("sandglass-content", MFD_CLOEXEC));
  if (!content) return Error::FromErrno(errno, "memfd_create");
  TRY(PWriteFully(content.get(), AsBytes(file.content), 0));
  WrittenFile written;
  TRY_ASSIGN(written.step, parts_->NextStep());
  const Standstill still(*parts_);
  TRY_ASSIGN(Written answer, parts_->bridge->WriteFile({.step = written.step,
                                                        .project = file.project,
                                                        .path = file.path,
                                                        .label = file.label,
                                                        .folders = file.folders,
                                                        .expected = file.expected},
                                                       content));
  written.warnings = std::move(answer.notices);
  for (const undo::UndoPaths& paths : parts_->writable) {
    if (paths.project != file.project) continue;
    TRY_ASSIGN(const undo::StoreReader reader, undo::StoreReader::Open(paths));
    auto changes = reader.Changes(written.step);
    if (changes.ok()) written.changes = std::move(*changes);
  }
  parts_->log.WithStep(written.step).Info("file written", {{"label", file.label}});
  return written;
}

Status Session::EnterHistory() { return parts_->bridge->EnterSteps(); }

Status Session::Reconfigure(undo::UndoOptions undo, Questions questions) {
  if (!parts_->processes.empty())
    return Error(Code::kBusy,
                 "processes that earlier commands left behind still run; end them first");
  for (const std::string& notice : parts_->bridge->End()) parts_->log.Warn(notice);
  parts_->bridge->AwaitGone();
  undo.external = parts_->external;
  TRY_ASSIGN(parts_->bridge,
             BridgeProcess::Begin(parts_->writable, undo, parts_->watch, questions));
  parts_->asks = questions;
  parts_->question_timeout = undo.safeguards.timeout;
  return parts_->bridge->AwaitOpened();
}

Status Session::AnswerSafeguard(const std::string& id, undo::Decision decision) {
  return AnswerQuestion(*parts_, id, decision);
}

}  // namespace sandglass::session

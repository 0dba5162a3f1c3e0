#include "session/idle_loop.h"

#include <cerrno>
#include <utility>
#include <variant>

#include "session/held_steps.h"
#include "session/take_requests.h"
#include "session/world_link.h"

namespace sandglass::session {

Status IdleLoop::Run() {
  parts_.idle = this;
  Status status = Act();
  while (status.ok() && (!parts_.guest->wants_out() || rewinds_.waiting())) status = Turn();
  if (!status.ok()) rewinds_.RefuseAll(status.error());
  parts_.idle = nullptr;
  return status;
}

std::vector<pollfd> IdleLoop::Watched() const {
  const bool writes = !parts_.queue.empty();
  std::vector<pollfd> fds = {
      {parts_.world->control_fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0},
      {parts_.bridge->fd(), POLLIN, 0},
      {parts_.bridge->questions_fd(), POLLIN, 0},
  };
  for (const SupervisedProcesses& processes : parts_.processes)
    fds.push_back({processes.listener.get(), 0, 0});
  parts_.server->AddTo(fds);
  parts_.guest->AddTo(fds);
  parts_.left_output.AddTo(fds);
  fds.push_back({parts_.bridge->events_fd(), POLLIN, 0});
  return fds;
}

Status IdleLoop::Turn() {
  std::vector<pollfd> fds = Watched();
  const int patience = PatienceUntil(parts_, {parts_.tracker.Deadline(), rewinds_.Deadline()});
  if (::poll(fds.data(), fds.size(), patience) < 0 && errno != EINTR)
    return Error::FromErrno(errno, "poll");
  if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
      ReadWorld(parts_) == WorldState::kGone) {
    parts_.world->Kill();
    parts_.tracker.ChannelDied();
    return Error(Code::kIo, "the world was ended from outside; start the session again");
  }
  TRY(parts_.bridge->CheckWork());
  TRY(WorkOnQuestions(parts_));
  TRY(NoticeEndedProcesses(parts_));
  if ((fds.back().revents & POLLIN) != 0) parts_.TellEvents();
  parts_.left_output.Drop();
  parts_.guest->Work();
  TakeRequests(parts_, rewinds_);
  parts_.tracker.Tick();
  TRY(Act());
  WriteChannel(parts_);
  return Ok();
}

// No command runs, so all that is left to be done is to say what must be said.
Status IdleLoop::Act() {
  for (control::Action& action : parts_.tracker.TakeActions()) {
    if (const auto* send = std::get_if<control::Send>(&action))
      TRY(parts_.queue.Push(control::Encode(send->message), control::LineKind::kUrgent));
    if (const auto* violation = std::get_if<control::Violation>(&action))
      parts_.log.Warn("the world's shim broke the protocol", {{"detail", violation->detail}});
  }
  return Ok();
}

}  // namespace sandglass::session

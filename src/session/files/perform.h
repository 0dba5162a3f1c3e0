// What whoever changes a project through the interceptor does between the two halves of an operation. Any thread.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string_view>

#include "base/result.h"
#include "undo/interceptor.h"

namespace sandglass::session::files {

// The second half of every operation: do it unless the interceptor has, and record how it went. `call` answers as system calls do.
template <class Call>
Status Complete(undo::Ticket& ticket, std::string_view what, std::string_view path,
                const Call& call) {
  if (ticket.performed()) return ticket.Commit(undo::Outcome::Done());
  const int failure = call() < 0 ? errno : 0;
  TRY(ticket.Commit(failure == 0 ? undo::Outcome::Done() : undo::Outcome::Failed(failure)));
  if (failure != 0) return Error::FromErrno(failure, fmt::format("{} {}", what, path));
  return Ok();
}

// -1 with errno set, as system calls say it.
inline int AsCall(const Status& status) {
  if (status.ok()) return 0;
  errno = status.error().sys_errno() != 0 ? status.error().sys_errno() : EIO;
  return -1;
}

}  // namespace sandglass::session::files

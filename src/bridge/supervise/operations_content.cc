// Calls that change content without a write: truncate and fallocate.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "bridge/supervise/handlers.h"

namespace sandglass::bridge {

using undo::ContentChange;
using undo::Ticket;

namespace {

// RLIMIT_FSIZE is the caller's, and so is the signal.
bool ExceedsLimit(Call& call, int fd, uint64_t size) {
  struct stat st;
  if (::fstat(fd, &st) != 0 || size <= static_cast<uint64_t>(st.st_size)) return false;
  const auto limit = call.task.FileSizeLimit();
  if (!limit || size <= *limit) return false;
  // Who does not wait any more is not signalled: the number may be another's by now.
  if (call.listener.IsWaiting(call.id)) call.task.Signal(SIGXFSZ);
  return true;
}

// By a path: opened as the caller, and never again by its name.
int TruncateObject(int object, off_t size) {
  const Fd file(::open(MagicPath(object).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return file.valid() ? ::ftruncate(file.get(), size) : -1;
}

Answer TruncateByFd(Call& call, off_t size) {
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  if (object.path_only()) return Answer::Fail(EBADF);
  if (!Writes(object.opened)) return Answer::Fail(EINVAL);
  const int file = object.fd.get();
  if (ExceedsLimit(call, file, static_cast<uint64_t>(size))) return Answer::Fail(EFBIG);
  const auto truncate = [&] { return ::ftruncate(file, size); };
  if (object.project == nullptr) return Plainly(call, truncate);
  // A FIFO's own descriptor is found again as O_PATH.
  if (!S_ISREG(object.mode)) return Answer::Fail(EINVAL);
  const auto change = ContentChange::TruncateTo(static_cast<uint64_t>(size));
  return Complete(call, object.project->interceptor->BeginContent(object.ref(), change),
                  [&](const Ticket&) { return truncate(); });
}

Answer TruncateByPath(Call& call, off_t size) {
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  if (object.failure != 0) return Answer::Fail(object.failure);
  if (S_ISDIR(object.mode)) return Answer::Fail(EISDIR);
  if (!S_ISREG(object.mode)) return Answer::Fail(EINVAL);
  if (ExceedsLimit(call, object.fd.get(), static_cast<uint64_t>(size))) return Answer::Fail(EFBIG);
  if (object.project == nullptr)
    return Plainly(call, [&] { return TruncateObject(object.fd.get(), size); });
  if (const int forbidden = AccessForbidden(call, object.fd.get(), W_OK))
    return Answer::Fail(forbidden);
  const auto change = ContentChange::TruncateTo(static_cast<uint64_t>(size));
  return Complete(call, object.project->interceptor->BeginContent(object.ref(), change),
                  [&](const Ticket& ticket) {
                    const int held = ticket.replaced() ? ticket.fresh_fd() : object.fd.get();
                    return TruncateObject(held, size);
                  });
}

}  // namespace

// Never continued: a path or a number could mean another file by then, also one that we handed out earlier.
Answer TruncateFile(Call& call) {
  const auto size = static_cast<off_t>(call.Value(0));
  if (size < 0) return Answer::Fail(EINVAL);
  return call.rule.fd >= 0 ? TruncateByFd(call, size) : TruncateByPath(call, size);
}

Answer Allocate(Call& call) {
  const int mode = static_cast<int>(call.Value(0));
  const auto offset = static_cast<off_t>(call.Value(1)), length = static_cast<off_t>(call.Value(2));
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  if (offset < 0 || length <= 0) return Answer::Fail(object.path_only() ? EBADF : EINVAL);
  if (object.path_only() || !Writes(object.opened)) return Answer::Fail(EBADF);
  if (S_ISFIFO(object.mode)) return Answer::Fail(ESPIPE);
  const auto allocate = [&] { return ::fallocate(object.fd.get(), mode, offset, length); };
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 &&
      ExceedsLimit(call, object.fd.get(),
                   static_cast<uint64_t>(offset) + static_cast<uint64_t>(length)))
    return Answer::Fail(EFBIG);
  if (object.project == nullptr) return Plainly(call, allocate);
  // Collapsing and inserting move everything behind.
  const bool moves = (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
  const ContentChange change =
      moves ? ContentChange::Whole()
            : ContentChange::Range(static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
  return Complete(call, object.project->interceptor->BeginContent(object.ref(), change),
                  [&](const Ticket&) { return allocate(); });
}

}  // namespace sandglass::bridge

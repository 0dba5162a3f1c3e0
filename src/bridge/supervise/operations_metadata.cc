// Calls that change metadata: mode, owner, times, extended attributes, inode flags.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string_view>

#include "bridge/supervise/decode.h"
#include "bridge/supervise/handlers.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

namespace sandglass::bridge {

using undo::Interceptor;
using undo::Ticket;

namespace {

constexpr int kAtFlags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;

using BeginObject = Result<Ticket> (Interceptor::*)(const undo::ObjectRef&);

// Never continued, wherever the object lies: a path or a number could mean another file by then, also one that we handed out and
// that lies on our writable mount. What is in no project is changed in the caller's own view, where the mounts decide.
Answer Change(Call& call, const Object& object, BeginObject begin,
              const std::function<int(int fd)>& change, ActAs::For purpose = ActAs::For::kChange) {
  if (object.failure != 0) return Answer::Fail(object.failure);
  if (object.project == nullptr) return Plainly(call, [&] { return change(object.fd.get()); });
  return Complete(
      call, (object.project->interceptor->*begin)(object.ref()),
      [&](const Ticket& ticket) {
        return change(ticket.replaced() ? ticket.fresh_fd() : object.fd.get());
      },
      purpose);
}

// fchmod() and its like, unlike fchmodat() and its like with an empty path, take no descriptor that is only a path.
bool IsWrongDescriptor(const Call& call, const Object& object) {
  return call.rule.fd >= 0 && object.path_only();
}

}  // namespace

Answer Chmod(Call& call) {
  const int flags = call.Flags();
  if (HasOthers(flags, kAtFlags)) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(flags), flags));
  if (IsWrongDescriptor(call, object)) return Answer::Fail(EBADF);
  const auto mode = static_cast<mode_t>(call.Value(0));
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EOPNOTSUPP);
  return Change(
      call, object, &Interceptor::BeginMetadata,
      [&](int fd) {
        const long done = ::syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH);
        if (done == 0 || errno != ENOSYS) return static_cast<int>(done);
        return ::chmod(MagicPath(fd).c_str(), mode);
      },
      ActAs::For::kAttributes);
}

Answer Chown(Call& call) {
  const int flags = call.Flags();
  if (HasOthers(flags, kAtFlags)) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(flags), flags));
  if (IsWrongDescriptor(call, object)) return Answer::Fail(EBADF);
  const auto uid = static_cast<uid_t>(call.Value(0));
  const auto gid = static_cast<gid_t>(call.Value(1));
  return Change(
      call, object, &Interceptor::BeginMetadata,
      [&](int fd) { return ::fchownat(fd, "", uid, gid, AT_EMPTY_PATH); }, ActAs::For::kAttributes);
}

Answer SetTimes(Call& call) {
  const auto layout = static_cast<TimeLayout>(call.rule.fixed);
  const int flags = call.rule.flags < 0 ? 0 : call.IntArg(call.rule.flags);
  if (HasOthers(flags, kAtFlags)) return Answer::Fail(EINVAL);
  std::optional<Times> times;
  if (call.Value(0) != 0) {
    ANSWER_ASSIGN(const Bytes raw, call.task.ReadBytes(call.Value(0), TimesSize(layout)));
    ANSWER_ASSIGN(times, DecodeTimes(raw, layout));
  }
  const bool by_fd = call.rule.at.dirfd >= 0 && call.Arg(call.rule.at.path) == 0;
  Result<Object> target =
      by_fd ? call.shared.resolver.FindFd(call.caller(), call.IntArg(call.rule.at.dirfd))
            : TargetOf(call, FollowUnless(flags), flags);
  ANSWER_ASSIGN(const Object object, std::move(target));
  if (by_fd && object.path_only()) return Answer::Fail(EBADF);
  const auto change = [&](int fd) {
    return static_cast<int>(
        ::syscall(SYS_utimensat, fd, "", times ? times->data() : nullptr, AT_EMPTY_PATH));
  };
  return Change(call, object, &Interceptor::BeginMetadata, change, ActAs::For::kAttributes);
}

namespace {

constexpr std::string_view kAccessAcl = "system.posix_acl_access";

// What else than capabilities over files decides about an attribute, a switch of identity has to take away.
ActAs::For PurposeOf(std::string_view attribute) {
  const bool by_files = attribute.starts_with("user.") || attribute == kAccessAcl ||
                        attribute == "system.posix_acl_default";
  return by_files ? ActAs::For::kAttributes : ActAs::For::kChange;
}

// Through /proc where it is an O_PATH descriptor, because that takes no attributes; a symlink's own are never set by users.
int Through(int fd, const std::function<int(int)>& by_fd,
            const std::function<int(const char*)>& by_path) {
  const int done = by_fd(fd);
  return done == 0 || errno != EBADF ? done : by_path(MagicPath(fd).c_str());
}

}  // namespace

Answer SetXattr(Call& call) {
  ANSWER_ASSIGN(const std::string name, call.task.ReadText(call.Value(0)));
  const uint64_t size = call.Value(2);
  if (size > kMaxXattrValue) return Answer::Fail(E2BIG);
  ANSWER_ASSIGN(const Bytes value, call.task.ReadBytes(call.Value(1), size));
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(call.Flags()), 0));
  const int flags = static_cast<int>(call.Value(3));
  if (IsWrongDescriptor(call, object)) return Answer::Fail(EBADF);
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EPERM);
  // What only sets the mode adds nothing that might be too much to keep.
  const bool adds = name != kAccessAcl || !IsModeAsAcl(value);
  return Change(
      call, object, adds ? &Interceptor::BeginXattr : &Interceptor::BeginMetadata,
      [&](int target) {
        return Through(
            target,
            [&](int fd) {
              return ::fsetxattr(fd, name.c_str(), value.data(), value.size(), flags);
            },
            [&](const char* path) {
              return ::setxattr(path, name.c_str(), value.data(), value.size(), flags);
            });
      },
      PurposeOf(name));
}

Answer RemoveXattr(Call& call) {
  ANSWER_ASSIGN(const std::string name, call.task.ReadText(call.Value(0)));
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(call.Flags()), 0));
  if (IsWrongDescriptor(call, object)) return Answer::Fail(EBADF);
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EPERM);
  return Change(
      call, object, &Interceptor::BeginXattr,
      [&](int target) {
        return Through(
            target, [&](int fd) { return ::fremovexattr(fd, name.c_str()); },
            [&](const char* path) { return ::removexattr(path, name.c_str()); });
      },
      PurposeOf(name));
}

Answer SetInodeFlags(Call& call) {
  const auto command = static_cast<uint32_t>(call.Value(0));
  const size_t size =
      command == static_cast<uint32_t>(FS_IOC_SETFLAGS) ? sizeof(int) : sizeof(fsxattr);
  ANSWER_ASSIGN(Bytes argument, call.task.ReadBytes(call.Value(1), size));
  argument.resize(64);
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  if (IsWrongDescriptor(call, object)) return Answer::Fail(EBADF);
  // The caller's own descriptor: opening what is behind it, a device perhaps, could do more than was asked for.
  if (object.project == nullptr)
    return Plainly(call, [&] { return ::ioctl(object.fd.get(), command, argument.data()); });
  return Change(call, object, &Interceptor::BeginFlags, [&](int fd) {
    // The caller's own, which may be open although its mode would not allow that.
    if ((::fcntl(fd, F_GETFL) & O_PATH) == 0) return ::ioctl(fd, command, argument.data());
    const Fd file(::open(MagicPath(fd).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return file.valid() ? ::ioctl(file.get(), command, argument.data()) : -1;
  });
}

}  // namespace sandglass::bridge

// What the handlers of supervised calls share, and the handlers themselves; private to operations*.cc. Any worker thread.
#pragma once

#include <functional>
#include <string>

#include "bridge/supervise/operations.h"

namespace sandglass::bridge {

#define ANSWER_ASSIGN(decl, expr) \
  ANSWER_ASSIGN_IMPL(SANDGLASS_CONCAT(answer_value_, __LINE__), decl, expr)
#define ANSWER_ASSIGN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                        \
  if (!tmp.ok()) return Fail(tmp.error());  \
  decl = std::move(tmp).value()

Answer Fail(const Error& error);
// Undo does not let it begin.
Answer Refuse(Call& call, const Error& error);
std::string MagicPath(int fd);

// The second half of every operation: do it as the caller unless the interceptor has, and record how it went.
Answer Complete(Call& call, Result<undo::Ticket> ticket,
                const std::function<int(const undo::Ticket&)>& operation,
                ActAs::For purpose = ActAs::For::kChange);
// What nobody records. What was read belongs to the caller only if it still waits.
Answer Plainly(Call& call, const std::function<int()>& operation);

Result<Location> LocateArg(Call& call, const PathArg& arg);
// The object that a call names by descriptor, path, or an empty path with its descriptor.
Result<Object> TargetOf(Call& call, Follow follow, int flags);
Follow FollowUnless(int flags);
bool Writes(int flags);
// Flags that this kind of call does not know are wrong before anything is looked up.
bool HasOthers(int flags, int known);
// 0, or why the caller may not use the object that way (R_OK, W_OK, X_OK).
int AccessForbidden(Call& call, int object, int access);

// In the caller's view; what cannot be asked counts as one.
bool IsOnReadOnlyMount(int fd);

// operations_names.cc
Answer Remove(Call& call);
Answer Rename(Call& call);
Answer MakeDir(Call& call);
Answer MakeNode(Call& call);
Answer MakeSymlink(Call& call);
Answer MakeLink(Call& call);
// operations_open.cc
Answer Open(Call& call);
Answer Open2(Call& call);
// operations_content.cc
Answer TruncateFile(Call& call);
Answer Allocate(Call& call);
// operations_metadata.cc
Answer Chmod(Call& call);
Answer Chown(Call& call);
Answer SetTimes(Call& call);
Answer SetXattr(Call& call);
Answer RemoveXattr(Call& call);
Answer SetInodeFlags(Call& call);
// operations_socket.cc
Answer MakeSocket(Call& call);
Answer BindSocket(Call& call);
Answer ConnectSocket(Call& call);

}  // namespace sandglass::bridge

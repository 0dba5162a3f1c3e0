// The interceptor: every bridge calls it around every change that a world makes to a project.
//
//   auto ticket = interceptor.BeginRemove({dir, "name"});      // preimage safe, intent in the journal
//   if (!ticket.ok()) return ErrnoFor(ticket.error());         // refused: nothing happened
//   int rc = ticket->performed() ? 0 : unlinkat(...);          // the bridge does the operation itself
//   ticket->Commit(rc == 0 ? Outcome::Done() : Outcome::Failed(errno));
//
// Between Begin and Commit the directories and objects concerned are held, so records in the journal have the order of the
// operations. Nothing else is held: there is no global lock across I/O. Tickets may be committed on another thread;
// a ticket that is destroyed without Commit counts as cancelled: what is on disk at that moment decides whether it happened.
// A step need not be open: writes outside any step open an ambient one. All methods are thread-safe and block on disk.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "undo/types.h"

namespace sandglass::undo {

struct TicketState;
class LogCore;

// A directory of the project: an open descriptor (O_PATH is enough) and its path from the project's root, "" for the root.
struct DirRef {
  int fd;
  std::string_view path;
};

// A name in a directory; it need not exist. One component; anything else is refused with kInvalid.
struct NameRef {
  DirRef dir;
  std::string_view name;
};

// Descriptors in these references must stay open until Commit or Cancel.
//
// An existing object: a descriptor of any kind (O_PATH is enough; a symlink by O_PATH|O_NOFOLLOW). `path` is where it can be
// found now, if the caller knows; otherwise it is looked up (an object without a name in the project needs none).
struct ObjectRef {
  int fd;
  std::string_view path = {};
};

enum class NodeType : uint8_t {
  kFile,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kCharDevice,
  kBlockDevice
};
// As in a mode: S_IFREG, S_IFDIR, ...
uint32_t FileTypeBits(NodeType type);
// Of a mode's type bits; without any it is a file.
NodeType NodeTypeOf(uint32_t mode);
enum class RenameMode : uint8_t { kReplace, kNoReplace, kExchange };
enum class Truncate : uint8_t { kNo, kYes };
// Whether the bridge will announce every later write with its offset (FUSE, 9P) or hands the descriptor out (supervision).
enum class WriteVisibility : uint8_t { kAnnounced, kUnseen };

struct ContentChange {
  enum class Kind : uint8_t { kWhole, kRange, kTruncate } kind = Kind::kWhole;
  uint64_t offset = 0;  // kRange: first byte; kTruncate: the new size
  uint64_t length = 0;  // kRange
  static ContentChange Whole() { return {}; }
  static ContentChange Range(uint64_t offset, uint64_t length) {
    return {Kind::kRange, offset, length};
  }
  static ContentChange TruncateTo(uint64_t size) { return {Kind::kTruncate, size, 0}; }
};

struct Outcome {
  int sys_errno = 0;
  static Outcome Done() { return {0}; }
  static Outcome Failed(int sys_errno) { return {sys_errno}; }
};

// One intercepted operation on its way. Movable handle.
class Ticket {
 public:
  explicit Ticket(std::unique_ptr<TicketState> state);
  Ticket(Ticket&&) noexcept;
  Ticket& operator=(Ticket&&) noexcept;
  ~Ticket();

  // The interceptor did the operation itself (it had to move the object to keep it): the bridge must not.
  bool performed() const;
  // The name has a new inode now (the old one is kept): descriptors opened before Begin are of the old one. This is one of the new inode,
  // to be opened anew through /proc; the name itself may be another one than the caller knows. -1: nothing of that.
  int fresh_fd() const;
  bool replaced() const { return fresh_fd() >= 0; }
  // kIo and the like: the outcome could not be recorded; the operation stands and is judged by what is on disk.
  Status Commit(Outcome outcome);
  void Cancel();

 private:
  std::unique_ptr<TicketState> state_;
};

// Whose operations they are. A restore's step takes only the restore's own; those of the world wait until it is over.
enum class Entrant : uint8_t { kWorld, kRestore };

class Interceptor {
 public:
  explicit Interceptor(LogCore& log, Entrant entrant = Entrant::kWorld)
      : log_(log), entrant_(entrant) {}

  Result<Ticket> BeginCreate(const NameRef& at, NodeType type);
  // A further name for an object. kNotFound: its last name in the project is gone (as the kernel would say).
  Result<Ticket> BeginLink(const ObjectRef& object, const NameRef& at);
  // unlink and rmdir.
  Result<Ticket> BeginRemove(const NameRef& at);
  Result<Ticket> BeginRename(const NameRef& from, const NameRef& to, RenameMode mode);

  Result<Ticket> BeginOpenForWrite(const ObjectRef& object, Truncate truncate,
                                   WriteVisibility visibility);
  Result<Ticket> BeginContent(const ObjectRef& object, ContentChange change);
  // chmod, chown, utimes; setxattr, removexattr, ACLs; FS_IOC_SETFLAGS.
  Result<Ticket> BeginMetadata(const ObjectRef& object);
  Result<Ticket> BeginXattr(const ObjectRef& object);
  Result<Ticket> BeginFlags(const ObjectRef& object);

 private:
  LogCore& log_;
  const Entrant entrant_;
};

}  // namespace sandglass::undo

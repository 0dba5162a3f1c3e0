#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "tests/security/victim.h"

namespace sandglass::victim {

// It must exist: a path that the world has for itself is no escape.
Ended OpenForWriting(const Task& task) { return Judge(::open(task.target.c_str(), O_WRONLY) >= 0); }

Ended WriteThroughSymlink(const Task& task) {
  if (::symlink(task.target.c_str(), "leads_out") != 0) return Ended::kCannotBeTried;
  return Judge(::open("leads_out", O_WRONLY) >= 0);
}

// Another root than ours is another view of the same files.
Ended RootOfProcess(const Task& task) {
  const std::string path = "/proc/" + std::to_string(task.number) + "/root" + task.target;
  return Judge(::open(path.c_str(), O_WRONLY) >= 0);
}

Ended UseInheritedDescriptor(const Task&) {
  for (int fd = 3; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) return Judge(true);
  }
  return Judge(false);
}

// A file that was removed keeps its inode in the undo store; a name for it would be a way to change what undo relies on.
Ended RelinkKeptInode(const Task& task) {
  const int file = ::open(task.target.c_str(), O_RDONLY);
  if (file < 0 || ::unlink(task.target.c_str()) != 0) return Ended::kCannotBeTried;
  const std::string held = "/proc/self/fd/" + std::to_string(file);
  return Judge(::linkat(AT_FDCWD, held.c_str(), AT_FDCWD, "relinked", AT_SYMLINK_FOLLOW) == 0);
}

Ended LinkFromOutside(const Task& task) {
  return Judge(::link(task.target.c_str(), "linked") == 0 && ::open("linked", O_WRONLY) >= 0);
}

Ended WriteToFifo(const Task& task) {
  return Judge(::open(task.target.c_str(), O_WRONLY | O_NONBLOCK) >= 0);
}

namespace {

struct Address {
  sockaddr_un raw{.sun_family = AF_UNIX};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

Address Named(const std::string& name, size_t at) {
  Address address;
  name.copy(address.raw.sun_path + at, sizeof(address.raw.sun_path) - at - 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + at + name.size());
  return address;
}

Ended Connect(const Address& address) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return Judge(::connect(socket, address.get(), address.size) == 0);
}

}  // namespace

Ended ConnectTo(const Task& task) { return Connect(Named(task.target, 0)); }
Ended ConnectToAbstract(const Task& task) { return Connect(Named(task.target, 1)); }

Ended SendDatagram(const Task& task) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  const Address address = Named(task.target, 0);
  return Judge(socket >= 0 && ::sendto(socket, "x", 1, 0, address.get(), address.size) == 1);
}

}  // namespace sandglass::victim

// Sockets with names in the project.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

int NewSocket(int type = SOCK_STREAM) { return ::socket(AF_UNIX, type, 0); }

struct Address {
  sockaddr_un value{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = sizeof(sa_family_t);
};
// A name that is too long has no end, which is allowed.
Address AddressOf(std::string_view path) {
  Address address;
  const size_t taken = std::min(path.size(), sizeof(address.value.sun_path));
  std::memcpy(address.value.sun_path, path.data(), taken);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                          std::min(taken + 1, sizeof(address.value.sun_path)));
  return address;
}

long Bind(int fd, std::string_view path) {
  const Address address = AddressOf(path);
  return Sys(SYS_bind, fd, &address.value, address.length);
}
long Connect(int fd, std::string_view path) {
  const Address address = AddressOf(path);
  return Sys(SYS_connect, fd, &address.value, address.length);
}

void NoteName(int fd) {
  Address name;
  name.length = sizeof(name.value);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name.value), &name.length) == 0)
    Note(" name=" + std::string(name.value.sun_path,
                                ::strnlen(name.value.sun_path, sizeof(name.value.sun_path))));
}

// Paths of sockets are short, and how long the stage's own is, nobody knows.
bool Fits(const char* path) {
  return path != reinterpret_cast<const char*>(16) && std::string_view(path).size() < 100;
}

void AddBind(Cases& cases) {
  AddNewNameCases(cases, "bind", TakesDirfd::kNo, [](int, const char* path) {
    if (!Fits(path)) return Sys(SYS_bind, NewSocket(), nullptr, 110);
    return Bind(NewSocket(), path);
  });
  for (const char* path : {"new", "dir/new"}) {
    cases.push_back(
        {"bind", Kind::kAfterwards, std::string("the name that it tells, ") + path, [path] {
           const int fd = NewSocket();
           const long result = Bind(fd, path);
           NoteName(fd);
           return result;
         }});
  }
  const auto add = [&](Kind kind, const char* what, const std::function<long()>& act) {
    cases.push_back({"bind", kind, what, act});
  };
  add(Kind::kPlain, "a sequence of packets", [] { return Bind(NewSocket(SOCK_SEQPACKET), "new"); });
  add(Kind::kUmask, "umask 077", [] {
    ::umask(077);
    return Bind(NewSocket(), "new");
  });
  add(Kind::kExists, "twice", [] {
    const int fd = NewSocket();
    Bind(fd, "new");
    return Bind(fd, "newer");
  });
  add(Kind::kDescriptor, "not open", [] { return Bind(99, "new"); });
  add(Kind::kDescriptor, "no socket", [] { return Bind(::open("file", O_RDONLY), "new"); });
  add(Kind::kTooLong, "a length too large", [] {
    const Address address = AddressOf("new");
    return Sys(SYS_bind, NewSocket(), &address.value, 4000);
  });
  add(Kind::kBadArgument, "a length too small", [] {
    const Address address = AddressOf("new");
    return Sys(SYS_bind, NewSocket(), &address.value, 1);
  });
  add(Kind::kBadArgument, "another family", [] {
    Address address = AddressOf("new");
    address.value.sun_family = AF_INET;
    return Sys(SYS_bind, NewSocket(), &address.value, address.length);
  });
  add(Kind::kOtherPlace, "an abstract name", [] {
    const std::string name = std::string(1, '\0') + "sandglass-parity";
    return Bind(NewSocket(), name);
  });
  add(Kind::kOtherPlace, "a name of the kernel's choice", [] {
    const Address address;
    return Sys(SYS_bind, NewSocket(), &address.value, address.length);
  });
  add(Kind::kOtherPlace, "loopback", [] {
    const sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    return Sys(SYS_bind, ::socket(AF_INET, SOCK_STREAM, 0), &address, sizeof address);
  });
}

long Served(const char* bound, const char* connected) {
  const int server = NewSocket(), client = NewSocket();
  if (Bind(server, bound) < 0 || ::listen(server, 1) != 0) return -1;
  const long result = Connect(client, connected);
  if (result == 0) {
    const int accepted = ::accept(server, nullptr, nullptr);
    char byte = 0;
    NoteNumber("sent", static_cast<uint64_t>(::write(client, "x", 1)));
    NoteNumber("received", static_cast<uint64_t>(::read(accepted, &byte, 1)));
  }
  return result;
}

void AddConnect(Cases& cases) {
  // Nobody listens anywhere.
  AddExistingCases(cases, "connect", TakesDirfd::kNo, [](int, const char* path) {
    return Fits(path) ? Connect(NewSocket(), path) : Sys(SYS_connect, NewSocket(), nullptr, 110);
  });
  const auto add = [&](Kind kind, const char* what, const std::function<long()>& act,
                       Who who = Who::kCaller) {
    cases.push_back({"connect", kind, what, act, who});
  };
  add(Kind::kPlain, "to a server", [] { return Served("new", "new"); });
  add(Kind::kDots, "to a server by dots", [] { return Served("new", "dir/../new"); });
  add(Kind::kSymlink, "to a server by a symlink", [] { return Served("missing", "dangling"); });
  add(Kind::kFolder, "to a server in a folder", [] { return Served("dir/new", "dir/new"); });
  add(Kind::kRights, "to somebody's server", [] { return Served("new", "new"); }, Who::kOther);
  add(Kind::kRights, "to a server that refuses", [] {
    const int server = NewSocket();
    Bind(server, "new");
    return Connect(NewSocket(), "new");
  });
  add(Kind::kRights, "to a server without write permission", [] {
    const int server = NewSocket();
    Bind(server, "new");
    ::chmod("new", 0444);
    ::listen(server, 1);
    return Connect(NewSocket(), "new");
  });
  add(Kind::kOtherObject, "to another type of socket", [] {
    const int server = NewSocket(SOCK_SEQPACKET);
    Bind(server, "new");
    ::listen(server, 1);
    return Connect(NewSocket(), "new");
  });
  add(Kind::kDescriptor, "not open", [] { return Connect(99, "new"); });
  add(Kind::kDescriptor, "no socket", [] { return Connect(::open("file", O_RDONLY), "new"); });
  add(Kind::kOtherPlace, "to no abstract name",
      [] { return Connect(NewSocket(), std::string(1, '\0') + "sandglass-nobody"); });
}

void AddSocket(Cases& cases) {
  const std::pair<const char*, int> types[] = {
      {"a stream", SOCK_STREAM},
      {"packets", SOCK_SEQPACKET},
      {"a stream with flags", SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK},
      {"no such type", 77},
      {"datagrams", SOCK_DGRAM}};
  for (const auto& [what, type] : types) {
    cases.push_back({"socket AF_UNIX", Kind::kFlags, what,
                     [type] { return NoteOpened(Sys(SYS_socket, AF_UNIX, type, 0)); }});
    cases.push_back({"socketpair AF_UNIX", Kind::kFlags, what, [type] {
                       int pair[2] = {-1, -1};
                       const long result = Sys(SYS_socketpair, AF_UNIX, type, 0, pair);
                       if (result == 0)
                         NoteNumber("sent", static_cast<uint64_t>(::write(pair[0], "x", 1)));
                       return result;
                     }});
  }
  cases.push_back({"socket AF_UNIX", Kind::kBadArgument, "no such protocol",
                   [] { return Sys(SYS_socket, AF_UNIX, SOCK_STREAM, 5); }});
  cases.push_back({"socketpair AF_UNIX", Kind::kBadArgument, "an address without memory",
                   [] { return Sys(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, nullptr); }});
}

}  // namespace

void AddSocketCases(Cases& cases) {
  AddBind(cases);
  AddConnect(cases);
  AddSocket(cases);
}

}  // namespace sandglass::parity

// What the host and the shim of a local world agree on beside the control channel: which descriptors the shim is started with, and
// how a command's listener reaches the host.
//
// For each command the process that is about to become it sends one message over the listener socket: a ListenerMessage with two
// descriptors, the listener of its seccomp filter and the host's end of a socket pair. It goes on, and executes the program, when
// one byte comes from that pair; if the host closes its end instead, it ends. With the byte may come descriptors that the host gives
// to the program: it finds them under the numbers from kFirstGivenFd on or, if the order says that output is given, as its standard
// output and error. Nothing that another command sends can be taken for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandglass::control {

inline constexpr int kShimControlFd = 3;   // SOCK_STREAM: docs/formats/control.md
inline constexpr int kShimListenerFd = 4;  // SOCK_SEQPACKET
inline constexpr int kShimFilterFd =
    5;  // a file of sock_filter, read once; empty: commands are not supervised

struct ListenerMessage {
  int64_t command = 0;
};
inline constexpr size_t kListenerMessageFds = 2;  // the listener, then the host's end of the pair

// Above what programs and scripts use by habit.
inline constexpr int kFirstGivenFd = 100;
inline constexpr size_t kMaxGivenFds = 2;

}  // namespace sandglass::control

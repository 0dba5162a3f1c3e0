// What the loop of a command and that of an idle session have in common: the channel to the shim, the ends of processes, and how long
// to wait. Free functions on a session's parts; one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "session/parts.h"

namespace sandglass::session {

enum class WorldState : uint8_t { kLives, kGone };

bool HungUp(int fd);
// Hands what the shim said to the tracker. kGone: the channel is closed.
WorldState ReadWorld(Session::Parts& parts);
// As much as the channel takes now.
void WriteChannel(Session::Parts& parts);
// Tells bridge and tracker which commands have no process left.
Status NoticeEndedProcesses(Session::Parts& parts);
// For poll: until the first of these, or what server and guest want, in milliseconds; -1: for ever.
int PatienceUntil(const Session::Parts& parts,
                  std::initializer_list<std::optional<Instant>> deadlines);

}  // namespace sandglass::session

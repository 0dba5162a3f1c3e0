// Who is at the other end of a local socket.
#pragma once

namespace sandglass {

// Whoever runs this program, or root. False also where the kernel does not tell.
bool IsPeerOurUser(int socket);

}  // namespace sandglass

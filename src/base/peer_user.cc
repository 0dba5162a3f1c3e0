#include "base/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

namespace sandglass {

bool IsPeerOurUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace sandglass

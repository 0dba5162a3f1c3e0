#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/security/victim.h"

namespace sandglass::victim {
namespace {

constexpr struct {
  const char* name;
  Victim run;
} kVictims[] = {
    {"remount", Remount},
    {"unmount", Unmount},
    {"new_mount_interface", NewMountInterface},
    {"new_user_namespace", NewUserNamespace},
    {"open_by_handle", OpenByHandle},
    {"steal_descriptor", StealDescriptor},
    {"steal_descriptor_of_parent", StealDescriptorOfParent},
    {"trace", Trace},
    {"write_memory", WriteMemory},
    {"signal", Signal},
    {"keyring", Keyring},
    {"type_into_terminal", TypeIntoTerminal},
    {"io_uring", IoUring},
    {"open_for_writing", OpenForWriting},
    {"write_through_symlink", WriteThroughSymlink},
    {"root_of_process", RootOfProcess},
    {"use_inherited_descriptor", UseInheritedDescriptor},
    {"relink_kept_inode", RelinkKeptInode},
    {"link_from_outside", LinkFromOutside},
    {"write_to_fifo", WriteToFifo},
    {"connect", ConnectTo},
    {"connect_to_abstract", ConnectToAbstract},
    {"send_datagram", SendDatagram},
    {"swap_into_project", SwapIntoProject},
    {"swap_chmod", SwapChmod},
    {"swap_open", SwapOpen},
};

}  // namespace

Ended Judge(bool escaped) {
  std::printf("%s\n", escaped ? "escaped" : std::strerror(errno));
  return escaped ? Ended::kEscaped : Ended::kRefused;
}

}  // namespace sandglass::victim

int main(int argc, char** argv) {
  using namespace sandglass::victim;
  if (argc != 4) return static_cast<int>(Ended::kUnknownVictim);
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  for (const auto& victim : kVictims) {
    if (std::strcmp(victim.name, argv[1]) == 0)
      return static_cast<int>(victim.run({.target = argv[2], .number = std::atoi(argv[3])}));
  }
  return static_cast<int>(Ended::kUnknownVictim);
}

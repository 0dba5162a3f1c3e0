// Known escapes. Each is tried twice: in a world as the product builds it, where it must fail, and with its protection taken away,
// where it must succeed; a victim that fails everywhere would prove nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/security/victim_world.h"

namespace sandglass::test {
namespace {

enum class ShownBy : uint8_t {
  kAnybody,
  kRoot,  // an ordinary user cannot do it even without the protection
};

struct Escape {
  const char* name;
  const char* victim;
  const char* target;
  Process process;
  const char* protection;
  Removed removed;
  ShownBy shown_by = ShownBy::kAnybody;
};
std::ostream& operator<<(std::ostream& out, const Escape& escape) {
  return out << escape.name << ", against which there is: " << escape.protection;
}

// clang-format off
constexpr Escape kEscapes[] = {
    {"RemountReadWrite", "remount", "PROJECT", Process::kNone, "no capabilities, and mount() is refused", Removed::kCapabilities, ShownBy::kRoot},
    {"UnmountWhatHidesTheStore", "unmount", "STORE", Process::kNone, "no capabilities, and umount() is refused", Removed::kCapabilities, ShownBy::kRoot},
    {"NewMountInterface", "new_mount_interface", "", Process::kNone, "no capabilities, and fsopen() is refused", Removed::kCapabilities, ShownBy::kRoot},
    {"NestedUserNamespace", "new_user_namespace", "", Process::kNone, "unshare() is refused", Removed::kFilter},
    {"OpenByHandle", "open_by_handle", "kept", Process::kNone, "open_by_handle_at() is refused", Removed::kWorld, ShownBy::kRoot},
    {"RootOfAHostProcess", "root_of_process", "PROJECT/kept", Process::kHost, "a pid namespace", Removed::kWorld},
    {"StealADescriptorOfTheShim", "steal_descriptor", "", Process::kShim, "the shim is not dumpable", Removed::kWorld},
    {"StealADescriptorOfTheKeeper", "steal_descriptor_of_parent", "", Process::kNone, "keepers are not dumpable", Removed::kWorld},
    {"StealADescriptorOfTheSupervisor", "steal_descriptor", "", Process::kHost, "a pid namespace", Removed::kWorld},
    {"TraceTheShim", "trace", "", Process::kShim, "the shim is not dumpable", Removed::kWorld},
    {"TraceTheSupervisor", "trace", "", Process::kHost, "a pid namespace", Removed::kWorld},
    {"WriteTheMemoryOfTheShim", "write_memory", "", Process::kShim, "the shim is not dumpable", Removed::kWorld},
    {"SignalAHostProcess", "signal", "", Process::kHost, "a pid namespace", Removed::kWorld},
    {"InheritedDescriptor", "use_inherited_descriptor", "", Process::kNone, "descriptors are closed", Removed::kWorld},
    {"SessionKeyring", "keyring", "", Process::kNone, "keyctl() is refused", Removed::kFilter},
    {"TypeIntoTheTerminal", "type_into_terminal", "", Process::kNone, "TIOCSTI is refused", Removed::kFilter},
    {"IoUring", "io_uring", "", Process::kNone, "io_uring_setup() is refused", Removed::kFilter},
    {"WriteOutside", "open_for_writing", "OUTSIDE/file", Process::kNone, "the host's files are mounted read-only", Removed::kReadOnlyOutside},
    {"WriteOutsideByDots", "open_for_writing", "PROJECT/../outside/file", Process::kNone, "the host's files are mounted read-only", Removed::kReadOnlyOutside},
    {"WriteOutsideByASymlink", "write_through_symlink", "OUTSIDE/file", Process::kNone, "the host's files are mounted read-only", Removed::kReadOnlyOutside},
    {"WriteTheUndoStore", "open_for_writing", "STORE/version", Process::kNone, "the store is hidden", Removed::kWorld},
    {"WriteTheLayer", "open_for_writing", "LAYER/home/mark", Process::kNone, "the layer is hidden", Removed::kWorld},
    {"WriteTheHostsHome", "open_for_writing", "HOME/.ssh/id_test", Process::kNone, "the world has a home of its own", Removed::kWorld},
    {"RelinkAKeptInode", "relink_kept_inode", "kept", Process::kNone, "the bridge links nothing that lost its last name", Removed::kWorld},
    {"HardLinkFromOutside", "link_from_outside", "OUTSIDE/file", Process::kNone, "the project is a mount of its own", Removed::kWorld},
    {"FifoOfTheHost", "write_to_fifo", "OUTSIDE/fifo", Process::kNone, "the bridge refuses FIFOs on read-only mounts", Removed::kFilter},
    {"AbstractSocket", "connect_to_abstract", "ABSTRACT", Process::kNone, "a network namespace", Removed::kWorld},
    {"SocketOfTheHost", "connect", "OUTSIDE/host.sock", Process::kNone, "the bridge connects only to sockets of the world", Removed::kFilter},
    {"SocketOfTheHostInTheProject", "connect", "PROJECT/host.sock", Process::kNone, "the bridge connects only to sockets of the world", Removed::kFilter},
    {"DatagramToTheHost", "send_datagram", "OUTSIDE/host.dgram", Process::kNone, "there are no AF_UNIX datagrams", Removed::kFilter},
};
// clang-format on

constexpr int kEscaped = 0, kRefused = 1, kCannotBeTried = 77;

std::string TargetOf(const Escape& escape) {
  return std::string_view(escape.target) == "ABSTRACT" ? HostsAbstractName() : escape.target;
}

class SecurityEscape : public ::testing::TestWithParam<Escape> {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
  }
};

TEST_P(SecurityEscape, FailsInAWorld) {
  const Escape& escape = GetParam();
  VictimWorld world(Removed::kNothing);
  const Ran ran = world.Run(escape.victim, TargetOf(escape), escape.process);
  EXPECT_EQ(ran.exit_code, kRefused) << ran.out << ran.err << ran.error;
}

TEST_P(SecurityEscape, SucceedsWithoutItsProtection) {
  const Escape& escape = GetParam();
  if (escape.shown_by == ShownBy::kRoot && ::geteuid() != 0)
    GTEST_SKIP() << "needs root to be shown";
  VictimWorld world(escape.removed);
  const Ran ran = world.Run(escape.victim, TargetOf(escape), escape.process);
  if (ran.exit_code == kCannotBeTried) GTEST_SKIP() << "this kernel refuses it by itself";
  EXPECT_EQ(ran.exit_code, kEscaped) << ran.out << ran.err << ran.error;
}

INSTANTIATE_TEST_SUITE_P(Known, SecurityEscape, ::testing::ValuesIn(kEscapes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sandglass::test

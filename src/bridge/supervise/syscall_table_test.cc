#include "bridge/supervise/syscall_table.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/io.h"
#include "bridge/supervise/filter.h"

namespace sandglass::bridge {
namespace {

constexpr uint32_t kIoctl32 = 54;

// What the kernel would do with the program: only the instructions that we use.
uint32_t Run(const std::vector<sock_filter>& program, const seccomp_data& data) {
  uint32_t accumulator = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& op = program[at];
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + op.k, 4);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == op.k ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += accumulator >= op.k ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        at += accumulator > op.k ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        at += (accumulator & op.k) != 0 ? op.jt : op.jf;
        break;
      case BPF_JMP | BPF_JA | BPF_K:
        at += op.k;
        break;
      case BPF_RET | BPF_K:
        return op.k;
      default:
        ADD_FAILURE() << "unknown instruction " << op.code;
        return 0;
    }
  }
  ADD_FAILURE() << "ran over the end";
  return 0;
}

uint32_t Verdict(uint32_t arch, uint32_t number, std::array<uint64_t, 6> args = {}) {
  static const std::vector<sock_filter> kProgram = BuildFilter();
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  std::memcpy(data.args, args.data(), sizeof(data.args));
  return Run(kProgram, data);
}

uint32_t WantedFor(const SyscallRule& rule) {
  if (rule.op == OpClass::kNative) return SECCOMP_RET_ALLOW;
  return rule.error != 0 ? SECCOMP_RET_ERRNO | rule.error : SECCOMP_RET_USER_NOTIF;
}

// With the upper half of the argument set, which must not matter.
std::array<uint64_t, 6> ArgumentsFor(const When& when, uint32_t value) {
  std::array<uint64_t, 6> args{};
  args[when.arg] = when.kind == When::Kind::kAlways ? 0 : value | 7ull << 32;
  return args;
}

void ExpectEveryRow(uint32_t arch, std::span<const SyscallRule> table) {
  for (const SyscallRule& rule : table) {
    const When& when = rule.when;
    EXPECT_EQ(Verdict(arch, rule.number, ArgumentsFor(when, when.operand)), WantedFor(rule))
        << rule.name;
    if (when.kind == When::Kind::kBetween)
      EXPECT_EQ(Verdict(arch, rule.number, ArgumentsFor(when, when.last)), WantedFor(rule))
          << rule.name;
  }
}

// Rows that stand for a part of a call's uses: what becomes of the other uses.
void ExpectOthersPass(uint32_t arch, std::span<const SyscallRule> table, uint32_t but_not) {
  for (const SyscallRule& rule : table) {
    if (rule.when.kind == When::Kind::kAlways || rule.number == but_not) continue;
    EXPECT_EQ(Verdict(arch, rule.number), uint32_t{SECCOMP_RET_ALLOW}) << rule.name;
  }
}

TEST(SyscallFilter, DoesWhatEachRowSays) {
  ExpectEveryRow(AUDIT_ARCH_X86_64, SyscallTable(Interface::kAmd64));
  ExpectEveryRow(AUDIT_ARCH_I386, SyscallTable(Interface::kI386));
  ExpectOthersPass(AUDIT_ARCH_X86_64, SyscallTable(Interface::kAmd64), SYS_ioctl);
  ExpectOthersPass(AUDIT_ARCH_I386, SyscallTable(Interface::kI386), kIoctl32);
}

// Compiling it is most of what a command waits for before it starts.
TEST(SyscallFilter, IsShort) {
  const size_t rows =
      SyscallTable(Interface::kAmd64).size() + SyscallTable(Interface::kI386).size();
  EXPECT_LT(BuildFilter().size(), rows + rows / 2);
}

TEST(SyscallFilter, RefusesIoctlsThatNobodyListed) {
  constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | ENOTTY;
  constexpr uint32_t kKvmCreateVm = 0xae01, kTunSetIff = 0x400454ca, kExtMove = 0xc028660f;
  for (const uint32_t request : {uint32_t{TIOCSETD}, uint32_t{TIOCCONS}, uint32_t{TIOCVHANGUP},
                                 kKvmCreateVm, kTunSetIff, kExtMove, 0u, ~0u}) {
    EXPECT_EQ(Verdict(AUDIT_ARCH_X86_64, SYS_ioctl, {0, request}), kRefused) << request;
    EXPECT_EQ(Verdict(AUDIT_ARCH_I386, kIoctl32, {0, request}), kRefused) << request;
  }
}

// Through a descriptor that was handed out they would change the project unseen.
TEST(SyscallFilter, RefusesChangesByTheOtherInterface) {
  for (const char* name : {"ftruncate64", "fchmod", "fchown32", "fsetxattr", "fallocate"}) {
    const auto table = SyscallTable(Interface::kI386);
    const auto row = std::find_if(table.begin(), table.end(), [&](const SyscallRule& rule) {
      return rule.name == std::string_view(name);
    });
    ASSERT_NE(row, table.end()) << name;
    EXPECT_EQ(Verdict(AUDIT_ARCH_I386, row->number), uint32_t{SECCOMP_RET_ERRNO | EPERM}) << name;
  }
}

TEST(SyscallFilter, LetsEverythingElsePass) {
  std::set<uint32_t> known;
  for (const SyscallRule& rule : SyscallTable()) known.insert(rule.number);
  for (uint32_t number = 0; number < 600; ++number) {
    if (!known.contains(number))
      EXPECT_EQ(Verdict(AUDIT_ARCH_X86_64, number), uint32_t{SECCOMP_RET_ALLOW}) << number;
  }
}

TEST(SyscallFilter, RefusesX32AndOtherInterfaces) {
  EXPECT_EQ(Verdict(AUDIT_ARCH_X86_64, 0x40000000u | SYS_openat),
            uint32_t{SECCOMP_RET_ERRNO | ENOSYS});
  EXPECT_EQ(Verdict(AUDIT_ARCH_AARCH64, 1), uint32_t{SECCOMP_RET_ERRNO | ENOSYS});
}

TEST(SyscallFilter, ReadingOpensAreNative) {
  EXPECT_EQ(Verdict(AUDIT_ARCH_X86_64, SYS_openat, {0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY}),
            uint32_t{SECCOMP_RET_ALLOW});
  EXPECT_EQ(Verdict(AUDIT_ARCH_X86_64, SYS_openat, {0, 0, O_RDONLY | O_TRUNC}),
            uint32_t{SECCOMP_RET_USER_NOTIF});
}

TEST(SyscallTable, FindsTheRowThatTheFilterNotifiedFor) {
  for (const SyscallRule& rule : SyscallTable()) {
    if (rule.error != 0 || rule.op == OpClass::kNative) continue;
    std::array<uint64_t, 6> args{};
    args[rule.when.arg] = rule.when.operand;
    EXPECT_EQ(FindRule(Interface::kAmd64, rule.number, args), &rule) << rule.name;
  }
  EXPECT_EQ(FindRule(Interface::kAmd64, SYS_read, std::array<uint64_t, 6>{}), nullptr);
  EXPECT_STREQ(FindRule(Interface::kI386, 8, std::array<uint64_t, 6>{})->name, "creat");
}

TEST(SyscallTable, RowsOfOneNumberLieTogether) {
  for (const Interface interface : {Interface::kAmd64, Interface::kI386}) {
    std::set<uint32_t> seen;
    uint32_t last = ~0u;
    for (const SyscallRule& rule : SyscallTable(interface)) {
      if (rule.number != last) EXPECT_TRUE(seen.insert(rule.number).second) << rule.name;
      last = rule.number;
    }
  }
}

TEST(SyscallTable, IsWhatTheDocumentSays) {
  const auto document =
      ReadFileAt(AT_FDCWD, SANDGLASS_SOURCE_DIR "/docs/supervised_calls.md", 1 << 20);
  ASSERT_TRUE(document.ok()) << document.error().ToString();
  EXPECT_EQ(*document, SyscallTableAsMarkdown())
      << "run print_supervised_calls > docs/supervised_calls.md";
}

}  // namespace
}  // namespace sandglass::bridge

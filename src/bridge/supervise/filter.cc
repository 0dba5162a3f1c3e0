#include "bridge/supervise/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace sandglass::bridge {
namespace {

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

constexpr uint32_t kX32Bit = 0x40000000;

class Program {
 public:
  void Load(size_t offset) { Put(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void Return(uint32_t action) { Put(BPF_RET | BPF_K, action); }
  void Jump(uint16_t test, uint32_t operand, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(BPF_JMP | test | BPF_K), if_true, if_false, operand});
  }
  // Rows of one number lie together and become one block. The blocks are found by halving: whenever a filter is installed the kernel
  // goes through it for every system call that there is, to know those that always pass, and one block after the other that takes
  // longer than starting the program.
  void Table(std::span<const SyscallRule> rules) {
    std::vector<Rows> blocks;
    while (!rules.empty()) {
      size_t count = 1;
      while (count < rules.size() && rules[count].number == rules[0].number) ++count;
      blocks.push_back(rules.first(count));
      rules = rules.subspan(count);
    }
    std::ranges::sort(blocks, {}, [](Rows block) { return block[0].number; });
    Search(blocks);
  }
  std::vector<sock_filter> Take() { return std::move(code_); }
  void Append(std::span<const sock_filter> code) {
    code_.insert(code_.end(), code.begin(), code.end());
  }

 private:
  using Rows = std::span<const SyscallRule>;

  // The number is at hand; every way through here ends in a return.
  void Search(std::span<const Rows> blocks) {
    constexpr size_t kFewBlocks = 3;
    if (blocks.size() <= kFewBlocks) {
      for (const Rows block : blocks) Block(block);
      return Return(SECCOMP_RET_ALLOW);
    }
    const size_t half = blocks.size() / 2;
    Jump(BPF_JGE, blocks[half][0].number, 0, 1);
    const size_t to_upper = code_.size();
    Put(BPF_JMP | BPF_JA, 0);
    Search(blocks.first(half));
    code_[to_upper].k = static_cast<uint32_t>(code_.size() - to_upper - 1);
    Search(blocks.subspan(half));
  }

  void Put(uint16_t code, uint32_t operand) { code_.push_back({code, 0, 0, operand}); }

  static uint32_t ActionOf(const SyscallRule& rule) {
    if (rule.op == OpClass::kNative) return SECCOMP_RET_ALLOW;
    return rule.error != 0 ? SECCOMP_RET_ERRNO | rule.error : SECCOMP_RET_USER_NOTIF;
  }

  void Block(std::span<const SyscallRule> rules) {
    const size_t start = code_.size();
    Jump(BPF_JEQ, rules[0].number, 0, 0);
    bool decided = false;
    int loaded = -1;  // the argument that is at hand
    for (const SyscallRule& rule : rules) {
      decided = rule.when.kind == When::Kind::kAlways;
      if (!decided && loaded != rule.when.arg) {
        loaded = rule.when.arg;
        Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * rule.when.arg);
      }
      Condition(rule.when);
      Return(ActionOf(rule));
    }
    if (!decided) Return(SECCOMP_RET_ALLOW);
    const size_t length = code_.size() - start - 1;
    CHECK(length < 256);
    code_[start].jf = static_cast<uint8_t>(length);
  }

  // Passes over the next instruction unless it holds.
  void Condition(const When& when) {
    switch (when.kind) {
      case When::Kind::kAlways:
        return;
      case When::Kind::kBits:
        return Jump(BPF_JSET, when.operand, 0, 1);
      case When::Kind::kEquals:
        return Jump(BPF_JEQ, when.operand, 0, 1);
      case When::Kind::kBetween:
        Jump(BPF_JGE, when.operand, 0, 2);
        return Jump(BPF_JGT, when.last, 1, 0);
    }
  }

  std::vector<sock_filter> code_;
};

}  // namespace

std::vector<sock_filter> BuildFilter() {
  Program foreign;
  foreign.Load(offsetof(seccomp_data, nr));
  foreign.Table(SyscallTable(Interface::kI386));
  const std::vector<sock_filter> foreign_code = foreign.Take();

  Program program;
  program.Load(offsetof(seccomp_data, arch));
  program.Jump(BPF_JEQ, AUDIT_ARCH_X86_64, 2, 0);
  program.Jump(BPF_JEQ, AUDIT_ARCH_I386, 2, 0);
  program.Return(SECCOMP_RET_ERRNO | ENOSYS);
  // A conditional jump may be too short to pass over the foreign table; an unconditional one is not.
  program.Jump(BPF_JA, static_cast<uint32_t>(foreign_code.size()), 0, 0);
  program.Append(foreign_code);
  program.Load(offsetof(seccomp_data, nr));
  program.Jump(BPF_JGE, kX32Bit, 0, 1);
  program.Return(SECCOMP_RET_ERRNO | ENOSYS);
  program.Table(SyscallTable(Interface::kAmd64));
  return program.Take();
}

std::vector<sock_filter> BuildRefusals(std::span<const SyscallRule> rules) {
  Program program;
  program.Load(offsetof(seccomp_data, arch));
  program.Jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
  program.Return(SECCOMP_RET_KILL_PROCESS);
  program.Load(offsetof(seccomp_data, nr));
  program.Jump(BPF_JGE, kX32Bit, 0, 1);
  program.Return(SECCOMP_RET_KILL_PROCESS);
  program.Table(rules);
  return program.Take();
}

int InstallFilter(std::span<const sock_filter> program) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  sock_fprog raw{static_cast<unsigned short>(program.size()),
                 const_cast<sock_filter*>(program.data())};
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &raw));
}

}  // namespace sandglass::bridge

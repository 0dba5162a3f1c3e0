#include "bridge/supervise/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace sandglass::bridge {
namespace {

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

constexpr uint32_t kX32Bit = 0x40000000;

// Written from its end to its beginning: jumps lead forward only, so whatever one leads to is there before it, and ways that end alike
// share their end. The kernel's compiler takes its time for each instruction whenever a command starts.
class Program {
 public:
  // What was written; what comes before it can lead there.
  using Place = size_t;

  Place Return(uint32_t action) {
    const auto known = returns_.find(action);
    if (known != returns_.end() && IsNear(known->second)) return known->second;
    return returns_[action] = Put({BPF_RET | BPF_K, 0, 0, action});
  }

  // `next` was written last.
  Place Load(size_t offset, Place next) {
    CHECK(next + 1 == code_.size());
    return Put({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)});
  }

  Place Jump(uint16_t test, uint32_t operand, Place if_true, Place if_false) {
    if_true = Near(if_true);
    if_false = Near(if_false);
    return Put(
        {static_cast<uint16_t>(BPF_JMP | test | BPF_K), Way(if_true), Way(if_false), operand});
  }

  // The number is at hand. Found by halving: whenever a filter is installed the kernel goes through it for every system call that
  // there is, to know those that always pass, and one after the other that takes longer than starting the program.
  Place Table(std::span<const SyscallRule> rules) {
    std::map<uint32_t, std::vector<SyscallRule>> rows;
    for (const SyscallRule& rule : rules) rows[rule.number].push_back(rule);
    std::vector<Range> ranges = {{0, Passing()}};
    for (const auto& [number, block] : rows) {
      if (ranges.back().first == number) ranges.pop_back();
      Add(ranges, {number, block});
      Add(ranges, {number + 1, Passing()});
    }
    return Search(ranges);
  }

  std::vector<sock_filter> Take() {
    std::ranges::reverse(code_);
    return std::move(code_);
  }

 private:
  // Numbers from here to the next range, and their rows.
  struct Range {
    uint32_t first;
    std::vector<SyscallRule> rows;
  };

  // --- Places.

  Place Put(sock_filter instruction) {
    code_.push_back(instruction);
    return code_.size() - 1;
  }

  size_t Distance(Place place) const { return code_.size() - 1 - place; }
  // Also after two more instructions.
  bool IsNear(Place place) const { return Distance(place) + 2 <= UINT8_MAX; }
  uint8_t Way(Place place) const { return static_cast<uint8_t>(Distance(place)); }

  // A conditional jump may be too short; an unconditional one is not, and a return can be repeated.
  Place Near(Place place) {
    if (IsNear(place)) return place;
    const sock_filter there = code_[place];
    if (there.code == (BPF_RET | BPF_K)) return Return(there.k);
    return Put({BPF_JMP | BPF_JA, 0, 0, static_cast<uint32_t>(Distance(place))});
  }

  // --- Rows.

  static std::vector<SyscallRule> Passing() {
    SyscallRule row{};
    row.op = OpClass::kNative;
    return {row};
  }

  static uint32_t ActionOf(const SyscallRule& rule) {
    if (rule.op == OpClass::kNative) return SECCOMP_RET_ALLOW;
    return rule.error != 0 ? SECCOMP_RET_ERRNO | rule.error : SECCOMP_RET_USER_NOTIF;
  }

  static bool IsAlways(const Range& range) {
    return range.rows.front().when.kind == When::Kind::kAlways;
  }

  // Neighbours of which the same becomes are one range.
  static void Add(std::vector<Range>& ranges, Range range) {
    if (!ranges.empty() && IsAlways(ranges.back()) && IsAlways(range) &&
        ActionOf(ranges.back().rows.front()) == ActionOf(range.rows.front()))
      return;
    ranges.push_back(std::move(range));
  }

  Place Search(std::span<const Range> ranges) {
    if (ranges.size() == 1) return Block(ranges[0].rows);
    const size_t half = ranges.size() / 2;
    const Place upper = Search(ranges.subspan(half));
    const Place lower = Search(ranges.first(half));
    return Jump(BPF_JGE, ranges[half].first, upper, lower);
  }

  Place Block(std::span<const SyscallRule> rows) {
    Place next = Return(SECCOMP_RET_ALLOW);
    for (size_t i = rows.size(); i-- > 0;) {
      const When& when = rows[i].when;
      next = Condition(when, Return(ActionOf(rows[i])), next);
      const bool at_hand = i > 0 && rows[i - 1].when.arg == when.arg;
      if (when.kind != When::Kind::kAlways && !at_hand)
        next = Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * when.arg, next);
    }
    return next;
  }

  Place Condition(const When& when, Place holds, Place next) {
    switch (when.kind) {
      case When::Kind::kAlways:
        return holds;
      case When::Kind::kBits:
        return Jump(BPF_JSET, when.operand, holds, next);
      case When::Kind::kEquals:
        return Jump(BPF_JEQ, when.operand, holds, next);
      case When::Kind::kBetween:
        return Jump(BPF_JGE, when.operand, Jump(BPF_JGT, when.last, next, holds), next);
    }
    return next;
  }

  std::vector<sock_filter> code_;      // the last instruction first
  std::map<uint32_t, Place> returns_;  // the newest of each
};

}  // namespace

std::vector<sock_filter> BuildFilter() {
  Program program;
  const auto refused = [&] { return program.Return(SECCOMP_RET_ERRNO | ENOSYS); };
  const auto by_number = [&](Program::Place next) {
    return program.Load(offsetof(seccomp_data, nr), next);
  };
  const auto foreign = by_number(program.Table(SyscallTable(Interface::kI386)));
  const auto table = program.Table(SyscallTable(Interface::kAmd64));
  const auto native = by_number(program.Jump(BPF_JGE, kX32Bit, refused(), table));
  const auto other = program.Jump(BPF_JEQ, AUDIT_ARCH_I386, foreign, refused());
  program.Load(offsetof(seccomp_data, arch),
               program.Jump(BPF_JEQ, AUDIT_ARCH_X86_64, native, other));
  return program.Take();
}

std::vector<sock_filter> BuildRefusals(std::span<const SyscallRule> rules) {
  Program program;
  const auto table = program.Table(rules);
  const auto killed = program.Return(SECCOMP_RET_KILL_PROCESS);
  const auto native =
      program.Load(offsetof(seccomp_data, nr), program.Jump(BPF_JGE, kX32Bit, killed, table));
  program.Load(
      offsetof(seccomp_data, arch),
      program.Jump(BPF_JEQ, AUDIT_ARCH_X86_64, native, program.Return(SECCOMP_RET_KILL_PROCESS)));
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

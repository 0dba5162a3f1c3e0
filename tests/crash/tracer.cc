#include "tests/crash/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

namespace sandglass::crash {
namespace {

constexpr int kCallStop = SIGTRAP | 0x80;  // what PTRACE_O_TRACESYSGOOD makes of a call's stop

Error TraceFailed(std::string_view what) {
  return Error::FromErrno(errno, fmt::format("ptrace {}", what));
}

// Up to `size` bytes of the child's memory; fewer where a mapping ends.
std::string PeekMemory(pid_t tid, uint64_t address, size_t size) {
  std::string bytes(size, '\0');
  iovec local = {bytes.data(), bytes.size()};
  iovec remote = {reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  const ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

std::string PeekPath(pid_t tid, uint64_t address) {
  constexpr size_t kEnough = 512;  // more than any prefix that we compare with
  std::string path = PeekMemory(tid, address, kEnough);
  return path.substr(0, path.find('\0'));
}

uint64_t PeekOpenHowFlags(pid_t tid, uint64_t address) {
  const std::string bytes = PeekMemory(tid, address, sizeof(open_how));
  open_how how = {};
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&how));
  return how.flags;
}

// Changes the registers of a stopped thread (x86-64).
template <class Edit>
Status EditRegisters(pid_t tid, const Edit& edit) {
  user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, tid, nullptr, &regs) != 0) return TraceFailed("getregs");
  edit(regs);
  if (ptrace(PTRACE_SETREGS, tid, nullptr, &regs) != 0) return TraceFailed("setregs");
  return Ok();
}

// The kernel executes no call whose number is -1.
Status SkipCall(pid_t tid) {
  return EditRegisters(tid, [](user_regs_struct& regs) { regs.orig_rax = ~0ULL; });
}

Status SetResult(pid_t tid, int64_t result) {
  return EditRegisters(tid,
                       [&](user_regs_struct& regs) { regs.rax = static_cast<uint64_t>(result); });
}

Status SetArgument(pid_t tid, int8_t index, uint64_t value) {
  return EditRegisters(tid, [&](user_regs_struct& regs) {
    unsigned long long* const args[] = {&regs.rdi, &regs.rsi, &regs.rdx,
                                        &regs.r10, &regs.r8,  &regs.r9};
    *args[index] = value;
  });
}

bool IsCallOnMarkerSocket(uint64_t number, uint64_t first_argument) {
  return number == SYS_write && first_argument == kMarkerFd;
}

}  // namespace

Result<Trace> Tracer::Run() {
  TRY(Attach());
  while (true) {
    TRY_ASSIGN(const bool alive, WaitOnce());
    if (!alive) return std::move(trace_);
  }
}

Status Tracer::Attach() {
  int status = 0;
  if (waitpid(child_.pid(), &status, __WALL) < 0) return Error::FromErrno(errno, "waitpid");
  if (!WIFSTOPPED(status))
    return Error{Code::kIo, "child ended early: " + EndOf(status).Describe()};
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, child_.pid(), nullptr, kOptions) != 0)
    return TraceFailed("options");
  return Continue(child_.pid());
}

Status Tracer::Continue(pid_t tid, int signal) const {
  const auto request = resume_ == Resume::kFreely ? PTRACE_CONT : PTRACE_SYSCALL;
  // ESRCH: it was killed meanwhile; the next wait says so.
  if (ptrace(request, tid, nullptr, static_cast<long>(signal)) != 0 && errno != ESRCH) {
    return TraceFailed("continue");
  }
  return Ok();
}

Result<bool> Tracer::WaitOnce() {
  int status = 0;
  // Other threads of this program trace children of their own.
  const pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD);
  if (tid < 0 && errno == EINTR) return true;
  if (tid < 0) return Error::FromErrno(errno, "waitpid");
  if (WIFSTOPPED(status)) {
    TRY(OnStop(tid, status));
    return true;
  }
  entered_.erase(tid);
  if (tid != child_.pid()) return true;
  const bool killed_by_us = trace_.end.killed_by_us;
  trace_.end = EndOf(status);
  trace_.end.killed_by_us = killed_by_us;
  return false;
}

Status Tracer::OnStop(pid_t tid, int status) {
  const int signal = WSTOPSIG(status);
  if (signal == kCallStop) return OnCallStop(tid);
  if (status >> 16 != 0) return Continue(tid);  // exec, clone, fork
  if (signal == SIGSTOP) {
    // The child's own "ready", or the first stop of a new thread.
    if (tid == child_.pid()) resume_ = Resume::kToNextCall;
    return Continue(tid);
  }
  return Continue(tid, signal);
}

Status Tracer::OnCallStop(pid_t tid) {
  if (trace_.end.killed_by_us) return Continue(tid);
  __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0) {
    return errno == ESRCH ? Ok() : Status(TraceFailed("syscall info"));
  }
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    Call call;
    call.number = info.entry.nr;
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), call.args);
    return OnEntry(tid, call);
  }
  if (info.op == PTRACE_SYSCALL_INFO_EXIT) return OnExit(tid, info.exit.rval);
  return Continue(tid);
}

Status Tracer::OnEntry(pid_t tid, Call call) {
  call.row = FindCall(static_cast<long>(call.number));
  if (call.row != nullptr) {
    call.effect = Changes(tid, call) ? Effect::kMayChange : Effect::kNone;
    if (!Wanted(tid, call)) call.row = nullptr;
  }
  if (call.row != nullptr) {
    call.chosen = plan_.deed != Deed::kNothing && trace_.calls.size() == plan_.point;
    trace_.calls.push_back({call.row, call.effect});
    if (call.chosen) TRY(DoAtEntry(tid, call));
  }
  entered_[tid] = call;
  return trace_.end.killed_by_us ? Ok() : Continue(tid);
}

Status Tracer::OnExit(pid_t tid, int64_t result) {
  const Call call = std::exchange(entered_[tid], Call{});
  if (call.chosen) TRY(DoAtExit(tid, call));
  if (trace_.end.killed_by_us) return Ok();
  if (IsCallOnMarkerSocket(call.number, call.args[0])) TRY(child_.TakeMarkers(sink_));
  NoteMapping(call, result);
  if (plan_.selection == CallSelection::kDistinct && call.row != nullptr) MemoryChanged(tid);
  return Continue(tid);
}

void Tracer::NoteMapping(const Call& call, int64_t result) {
  if (call.number == SYS_munmap && result == 0) mappings_.erase(call.args[0]);
  if (call.row == nullptr || result < 0) return;
  if (call.number == SYS_mmap) {
    const bool shared = (call.args[3] & MAP_SHARED) != 0 && (call.args[2] & PROT_WRITE) != 0;
    mappings_[static_cast<uint64_t>(result)] = {call.args[1], shared, ""};
  }
  if (call.number == SYS_mremap) {
    Mapping moved = std::move(mappings_[call.args[0]]);
    mappings_.erase(call.args[0]);
    moved.length = call.args[2];
    mappings_[static_cast<uint64_t>(result)] = std::move(moved);
  }
}

bool Tracer::MemoryChanged(pid_t tid) {
  bool changed = false;
  for (auto& [address, mapping] : mappings_) {
    if (!mapping.shared) continue;
    std::string now = PeekMemory(tid, address, mapping.length);
    if (now == mapping.seen) continue;
    mapping.seen = std::move(now);
    changed = true;
  }
  return changed;
}

Status Tracer::DoAtEntry(pid_t tid, Call& call) {
  switch (plan_.deed) {
    case Deed::kNothing:
    case Deed::kKillAfter:
      return Ok();
    case Deed::kKillBefore:
      // The kernel skips the call of a thread that is killed here; saying so as well depends on no version.
      TRY(SkipCall(tid));
      return Kill();
    case Deed::kFailNoSpace:
    case Deed::kFailIo:
      return SkipCall(tid);
    case Deed::kShorten: {
      const int8_t length = call.row->length;
      return SetArgument(tid, length, call.args[length] / 2);
    }
  }
  CHECK(false);
}

Status Tracer::DoAtExit(pid_t tid, const Call& call) {
  switch (plan_.deed) {
    case Deed::kNothing:
    case Deed::kKillBefore:
      return Ok();
    case Deed::kKillAfter:
      return Kill();
    case Deed::kFailNoSpace:
      trace_.reached = true;
      return SetResult(tid, -ENOSPC);
    case Deed::kFailIo:
      trace_.reached = true;
      return SetResult(tid, -EIO);
    case Deed::kShorten:
      // Compiled code may rely on a call to keep its argument registers.
      trace_.reached = true;
      return SetArgument(tid, call.row->length, call.args[call.row->length]);
  }
  CHECK(false);
}

Status Tracer::Kill() {
  trace_.reached = true;
  trace_.end.killed_by_us = true;
  if (kill(child_.pid(), SIGKILL) != 0) return Error::FromErrno(errno, "kill");
  return Ok();
}

bool Tracer::Wanted(pid_t tid, const Call& call) {
  const bool changes = call.effect == Effect::kMayChange;
  switch (plan_.selection) {
    case CallSelection::kDistinct:
      if (!Touches(tid, call)) return false;
      return MemoryChanged(tid) || changes;
    case CallSelection::kTouching:
      return Touches(tid, call);
    case CallSelection::kChanging:
      return changes && Touches(tid, call);
    case CallSelection::kSpace:
      return call.row->space == SpaceNeed::kMayRunOut && changes && Touches(tid, call);
    case CallSelection::kShortable:
      return call.row->length != kNoArgument && call.args[call.row->length] >= 2 &&
             Touches(tid, call);
  }
  CHECK(false);
}

bool Tracer::Changes(pid_t tid, const Call& call) const {
  switch (call.row->kind) {
    case CallKind::kLook:
      return false;
    case CallKind::kChange:
    case CallKind::kMap:
    case CallKind::kUnmap:
      return true;
    case CallKind::kOpen:
      return FlagsChange(call.args[call.row->flags]);
    case CallKind::kOpen2:
      return FlagsChange(PeekOpenHowFlags(tid, call.args[call.row->flags]));
    case CallKind::kIoctl:
      return IoctlChanges(call.args[call.row->flags]);
  }
  CHECK(false);
}

bool Tracer::Touches(pid_t tid, const Call& call) const {
  const CallRow& row = *call.row;
  if (row.kind == CallKind::kUnmap) return mappings_.contains(call.args[0]);
  if (row.kind == CallKind::kMap && (call.args[row.flags] & MAP_ANONYMOUS) != 0) return false;
  const auto leads = [&](int8_t i) {
    return i != kNoArgument && LeadsBeneathRoot(tid, static_cast<int>(call.args[i]));
  };
  const auto names = [&](int8_t i) {
    return i != kNoArgument && PathIsOfInterest(tid, call.args[i]);
  };
  return std::any_of(row.fds.begin(), row.fds.end(), leads) ||
         std::any_of(row.paths.begin(), row.paths.end(), names);
}

bool Tracer::LeadsBeneathRoot(pid_t tid, int fd) const {
  if (fd < 0) return false;
  std::array<char, 4096> target;
  const std::string link = fmt::format("/proc/{}/fd/{}", tid, fd);
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  if (length < 0) return false;
  const std::string_view path(target.data(), static_cast<size_t>(length));
  return path.starts_with(plan_.root);
}

// A path through /proc/self/fd leads to an object that the child has open: taken as one under test.
bool Tracer::PathIsOfInterest(pid_t tid, uint64_t address) const {
  const std::string path = PeekPath(tid, address);
  return path.starts_with(plan_.root) || path.starts_with("/proc/self/fd/") ||
         path.starts_with("/proc/thread-self/fd/");
}

}  // namespace sandglass::crash

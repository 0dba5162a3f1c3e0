#include "cli/open_step.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/fd.h"
#include "base/io.h"
#include "base/printable.h"
#include "session/bridge_process.h"
#include "session/request_server.h"
#include "undo/journal_view.h"

namespace sandglass::cli {
namespace {

constexpr size_t kMaxLockFile = 64;
constexpr size_t kMaxLockList = size_t{16} << 20;

// Does this process hold the lock? Asked of the kernel's list: trying to lock it could turn an owner away in that moment. A line is
// "7: FLOCK  ADVISORY  WRITE 1234 fd:00:5678 0 EOF".
bool HoldsLock(pid_t pid, ino_t lock) {
  const auto list = ReadFileAt(AT_FDCWD, "/proc/locks", kMaxLockList);
  if (!list.ok()) return false;
  const std::string holder = fmt::format("WRITE {} ", pid);
  const std::string inode = fmt::format(":{} ", lock);
  std::string_view rest = *list;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find("FLOCK") != line.npos && line.find(holder) != line.npos &&
        line.find(inode) != line.npos)
      return true;
  }
  return false;
}

// People know the session, not the bridge process that works for it and outlives it by a moment.
std::optional<pid_t> SessionOf(pid_t pid, const std::string& store) {
  constexpr size_t kMaxStatus = size_t{64} << 10;
  constexpr std::string_view kParent = "\nPPid:\t";
  const auto text = ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/status", pid).c_str(), kMaxStatus);
  if (!text.ok()) return std::nullopt;
  if (!text->starts_with(fmt::format("Name:\t{}\n", session::kBridgeName))) return pid;
  const size_t at = text->find(kParent);
  if (at == text->npos || !session::SessionListens(store)) return std::nullopt;
  pid_t parent = pid;
  std::from_chars(text->data() + at + kParent.size(), text->data() + text->size(), parent);
  return parent;
}

std::optional<pid_t> OwnerOf(int store, const std::string& path) {
  struct stat lock{};
  const auto text = ReadFileAt(store, "lock", kMaxLockFile);
  if (!text.ok() || ::fstatat(store, "lock", &lock, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), pid);
  if (error != std::errc() || !HoldsLock(pid, lock.st_ino)) return std::nullopt;
  return SessionOf(pid, path);
}

}  // namespace

std::optional<OpenStep> FindOpenStep(const std::string& store) {
  const Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::nullopt;
  const Fd step(::openat(folder.get(), "wal/in_progress", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!step) return std::nullopt;
  const auto journal = undo::JournalView::Read(step.get(), "journal");
  if (!journal.ok()) return std::nullopt;
  return OpenStep{.header = journal->header(), .owner = OwnerOf(folder.get(), store)};
}

std::string OpenStepText(const OpenStep& step) {
  const std::string state = step.owner
                                ? fmt::format("still running, process {}", *step.owner)
                                : "interrupted; the next command on this project puts it right";
  const Instant opened{step.header.opened_ns};
  return fmt::format("{:>6}  {}  {:<7}  {:<30}  {}\n", step.header.id.value, PrintableTime(opened),
                     undo::KindName(step.header.kind), state, PrintableName(step.header.label));
}

Json ToJson(const OpenStep& step) {
  Json json = Json::Object({{"id", step.header.id.value},
                            {"kind", undo::KindName(step.header.kind)},
                            {"label", BytesToJson(step.header.label)},
                            {"state", step.owner ? "running" : "interrupted"}});
  return json.Set("pid", step.owner ? Json(*step.owner) : Json());
}

}  // namespace sandglass::cli

#include "session/former_world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "base/fd.h"
#include "base/io.h"
#include "base/process_tree.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxNote = 4096;
constexpr int kPatienceMs = 10'000;

struct Note {
  std::string machine;  // since when it runs, and where these numbers are pids
  pid_t session = 0, init = 0;
  uint64_t session_start = 0, init_start = 0;
};

std::string ThisMachine() {
  const auto boot = ReadFileAt(AT_FDCWD, "/proc/sys/kernel/random/boot_id", kMaxNote);
  struct stat pids{};
  if (!boot.ok() || ::stat("/proc/self/ns/pid", &pids) != 0) return "";
  return fmt::format("{}:{}", boot->substr(0, boot->find('\n')), pids.st_ino);
}

Result<Fd> OpenFolder(const std::string& store) {
  Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Error::FromErrno(errno, fmt::format("open the undo store {}", store));
  return folder;
}

std::optional<Note> ReadNote(const Fd& folder) {
  const auto text = ReadFileAt(folder.get(), kWorldNote, kMaxNote);
  if (!text.ok()) return std::nullopt;
  char machine[128] = {};
  Note note;
  if (std::sscanf(text->c_str(), "%127s %d %" SCNu64 " %d %" SCNu64, machine, &note.session,
                  &note.session_start, &note.init, &note.init_start) != 5)
    return std::nullopt;
  note.machine = machine;
  return note;
}

// Of a folder that cannot be opened there is none: whoever opens the log tells what is wrong with it.
std::optional<Note> NoteOfThisMachine(const std::string& store) {
  const auto folder = OpenFolder(store);
  if (!folder.ok()) return std::nullopt;
  auto note = ReadNote(*folder);
  if (note && note->machine != ThisMachine()) return std::nullopt;
  return note;
}

bool SessionLives(const Note& note) { return StartTimeOf(note.session) == note.session_start; }

}  // namespace

Status NoteWorld(const std::string& store, pid_t init) {
  TRY_ASSIGN(const Fd folder, OpenFolder(store));
  const std::string text =
      fmt::format("{} {} {} {} {}\n", ThisMachine(), ::getpid(),
                  StartTimeOf(::getpid()).value_or(0), init, StartTimeOf(init).value_or(0));
  return ReplaceFileAt(folder.get(), kWorldNote, text);
}

void ForgetWorld(const std::string& store) {
  const auto folder = OpenFolder(store);
  if (folder.ok() && ReadNote(*folder)) ::unlinkat(folder->get(), kWorldNote, 0);
}

std::optional<pid_t> LivingSession(const std::string& store) {
  const auto note = NoteOfThisMachine(store);
  if (!note || !SessionLives(*note)) return std::nullopt;
  return note->session;
}

Status EndFormerWorld(const std::string& store) {
  const auto note = NoteOfThisMachine(store);
  if (!note || SessionLives(*note)) return Ok();
  const Fd init(static_cast<int>(::syscall(SYS_pidfd_open, note->init, 0)));
  // Only now, when the number cannot go to another process any more.
  if (!init || StartTimeOf(note->init) != note->init_start) return Ok();
  ::syscall(SYS_pidfd_send_signal, init.get(), SIGKILL, nullptr, 0);
  // The kernel reports the end of a pid namespace's first process only when all others in it are gone.
  pollfd end{.fd = init.get(), .events = POLLIN};
  if (::poll(&end, 1, kPatienceMs) == 1) return Ok();
  return Error(
      Code::kBusy,
      fmt::format("processes of a world whose session was killed do not end; its first is {}",
                  note->init));
}

}  // namespace sandglass::session

#include "tests/parity/outcome.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/parity/case.h"

namespace sandglass::parity {

Outcome& TheOutcome() {
  static void* const kShared =
      ::mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (kShared == MAP_FAILED) std::abort();
  return *static_cast<Outcome*>(kShared);
}

void Note(std::string_view text) {
  Outcome* outcome = &TheOutcome();
  const size_t room = sizeof(outcome->notes) - outcome->length;
  const size_t taken = std::min(room, text.size());
  std::memcpy(outcome->notes + outcome->length, text.data(), taken);
  outcome->length += taken;
}

void NoteNumber(std::string_view name, uint64_t value) { Note(fmt::format(" {}={}", name, value)); }

long NoteOpened(long fd) {
  if (fd < 0) return fd;
  struct stat seen;
  const int opened = static_cast<int>(fd);
  if (::fstat(opened, &seen) != 0) Note(" not open");
  // O_NOFOLLOW has a case of its own.
  const int flags = ::fcntl(opened, F_GETFL) & ~O_NOFOLLOW;
  Note(fmt::format(" flags={:o} close-on-exec={} type={:o} at={}", flags, ::fcntl(opened, F_GETFD),
                   seen.st_mode & S_IFMT, ::lseek(opened, 0, SEEK_CUR)));
  char byte = 0;
  const ssize_t got = S_ISREG(seen.st_mode) ? ::pread(opened, &byte, 1, 0) : 0;
  Note(got < 0 ? " unreadable" : " readable");
  return fd;
}

}  // namespace sandglass::parity

// Tries to change the project through the 32-bit interface, and prints what the kernel answers. Its descriptor 5 is one that was
// handed out: it lies on a mount that can be written to.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

namespace {

long Call32(long number, long a, long b, long c) {
  long result = 0;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c)
                   : "memory", "r8", "r9", "r10", "r11");
  return static_cast<int>(result);
}

}  // namespace

int main() {
  void* low =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return 1;
  auto* path = static_cast<char*>(low);
  std::strcpy(path, "new");
  std::printf("open %d\n", Call32(5, reinterpret_cast<long>(path), 0101, 0644) >= 0);
  std::strcpy(path, "victim");
  std::printf("unlink %ld\n", Call32(10, reinterpret_cast<long>(path), 0, 0));
  std::printf("ftruncate %ld fchmod %ld fchown %ld\n", Call32(93, 5, 0, 0), Call32(94, 5, 0600, 0),
              Call32(207, 5, 1, 1));
  std::strcpy(path, "/proc/self/fd/5");
  const long by_path = reinterpret_cast<long>(path);
  std::printf("truncate %ld chmod %ld setxattr %ld utimes %ld\n", Call32(92, by_path, 0, 0),
              Call32(15, by_path, 0600, 0), Call32(226, by_path, by_path, by_path),
              Call32(271, by_path, 0, 0));
  std::printf("setflags %ld socketcall %ld\n", Call32(54, 5, 0x40046602, by_path),
              Call32(102, 1, by_path, 0));
  std::printf("mount %ld\nio_uring %ld\n", Call32(21, 0, 0, 0), Call32(425, 1, 0, 0));
  return 0;
}

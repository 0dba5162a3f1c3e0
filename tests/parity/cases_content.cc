// Sizes and ranges of files.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/parity/path_cases.h"

namespace sandglass::parity {
namespace {

void LimitSize() {
  const rlimit small{5, 5};
  ::setrlimit(RLIMIT_FSIZE, &small);
}

void AddTruncate(Cases& cases) {
  AddExistingCases(cases, "truncate", TakesDirfd::kNo,
                   [](int, const char* path) { return Sys(SYS_truncate, path, 3); });
  for (const long size : {0L, 7L, 100L, 1L << 20, -1L, INT64_MAX}) {
    cases.push_back({"truncate", Kind::kBadArgument, "to " + std::to_string(size),
                     [size] { return Sys(SYS_truncate, "file", size); }});
    cases.push_back({"ftruncate", Kind::kBadArgument, "to " + std::to_string(size),
                     [size] { return Sys(SYS_ftruncate, ::open("file", O_RDWR), size); }});
  }
  cases.push_back({"truncate", Kind::kFlags, "over the limit, signal ignored", [] {
                     LimitSize();
                     ::signal(SIGXFSZ, SIG_IGN);
                     return Sys(SYS_truncate, "file", 100);
                   }});
  cases.push_back({"truncate", Kind::kFlags, "over the limit, signal taken", [] {
                     LimitSize();
                     return Sys(SYS_truncate, "file", 100);
                   }});
  cases.push_back({"ftruncate", Kind::kFlags, "over the limit, signal ignored", [] {
                     const int fd = ::open("file", O_RDWR);
                     LimitSize();
                     ::signal(SIGXFSZ, SIG_IGN);
                     return Sys(SYS_ftruncate, fd, 100);
                   }});
  AddDescriptorCases(cases, "ftruncate", [](int fd) { return Sys(SYS_ftruncate, fd, 3); });
}

void AddAllocate(Cases& cases) {
  AddDescriptorCases(cases, "fallocate", [](int fd) { return Sys(SYS_fallocate, fd, 0, 0, 100); });
  struct Range {
    const char* what;
    int mode;
    long offset, length;
  };
  constexpr Range kRanges[] = {
      {"keeping the size", FALLOC_FL_KEEP_SIZE, 0, 8192},
      {"a hole", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4},
      {"a hole that changes the size", FALLOC_FL_PUNCH_HOLE, 0, 4},
      {"zeros", FALLOC_FL_ZERO_RANGE, 2, 20},
      {"collapsing", FALLOC_FL_COLLAPSE_RANGE, 0, 4096},
      {"inserting", FALLOC_FL_INSERT_RANGE, 0, 4096},
      {"no length", 0, 0, 0},
      {"a negative offset", 0, -1, 10},
      {"no such mode", 0x4000, 0, 10},
      {"beyond all sizes", 0, INT64_MAX - 10, 100},
  };
  for (const Range& range : kRanges) {
    cases.push_back({"fallocate", Kind::kFlags, range.what, [range] {
                       return Sys(SYS_fallocate, ::open("file", O_RDWR), range.mode, range.offset,
                                  range.length);
                     }});
  }
}

void AddClone(Cases& cases) {
  const auto clone = [](int fd) {
    const int source = ::open("shared", O_RDONLY);
    return Sys(SYS_ioctl, fd, FICLONE, source);
  };
  AddDescriptorCases(cases, "ioctl FICLONE", clone);
  cases.push_back({"ioctl FICLONE", Kind::kDescriptor, "from what is not open",
                   [] { return Sys(SYS_ioctl, ::open("file", O_RDWR), FICLONE, 99); }});
  AddDescriptorCases(cases, "ioctl FICLONERANGE", [](int fd) {
    file_clone_range range{.src_fd = ::open("shared", O_RDONLY), .src_length = 0};
    return Sys(SYS_ioctl, fd, FICLONERANGE, &range);
  });
  cases.push_back({"ioctl FICLONERANGE", Kind::kBadArgument, "an address without memory",
                   [] { return Sys(SYS_ioctl, ::open("file", O_RDWR), FICLONERANGE, nullptr); }});
}

}  // namespace

void AddContentCases(Cases& cases) {
  AddTruncate(cases);
  AddAllocate(cases);
  AddClone(cases);
}

}  // namespace sandglass::parity

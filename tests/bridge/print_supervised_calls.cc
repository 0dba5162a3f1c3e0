// Prints docs/supervised_calls.md.
#include <cstdio>

#include "bridge/supervise/syscall_table.h"

int main() {
  std::fputs(sandglass::bridge::SyscallTableAsMarkdown().c_str(), stdout);
  return 0;
}

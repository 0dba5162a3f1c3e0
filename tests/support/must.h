// What test set-up does when the machine refuses: end the test program with the reason, since no
// verdict reached after a half-made set-up would mean anything. Never for what is under test.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace sandglass::test {

[[noreturn]] inline void SetupFailed(const Error& error) {
  std::fprintf(stderr, "test set-up failed: %s\n", error.ToString().c_str());
  std::abort();
}

template <class T>
T Must(Result<T> result) {
  if (!result.ok()) SetupFailed(result.error());
  return std::move(result).value();
}
inline void Must(const Status& status) {
  if (!status.ok()) SetupFailed(status.error());
}

// The result of a system call that answers -1 on failure.
template <class T>
T MustCall(T result, std::string_view what) {
  if (result == -1) SetupFailed(Error::FromErrno(errno, what));
  return result;
}

}  // namespace sandglass::test

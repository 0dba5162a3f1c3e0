// Result<T>: a value or an Error, because our code throws nothing.
//
// TRY(expr) returns early on error; TRY_ASSIGN(auto x, expr) also binds the value. CHECK(cond) is
// for a caller's bug only, never for bytes that came from a guest, the network, a disk or a person.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

#define SANDGLASS_CONCAT_INNER(a, b) a##b
#define SANDGLASS_CONCAT(a, b) SANDGLASS_CONCAT_INNER(a, b)

#define CHECK(cond)                                        \
  do {                                                     \
    if (!(cond)) [[unlikely]]                              \
      ::sandglass::CheckFailed(#cond, __FILE__, __LINE__); \
  } while (false)

#define TRY(expr)                                                                         \
  do {                                                                                    \
    if (auto try_result = (expr); !try_result.ok()) return std::move(try_result).error(); \
  } while (false)

#define TRY_ASSIGN(decl, expr) TRY_ASSIGN_IMPL(SANDGLASS_CONCAT(try_value_, __LINE__), decl, expr)
#define TRY_ASSIGN_IMPL(tmp, decl, expr)        \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = std::move(tmp).value()

namespace sandglass {

[[noreturn]] inline void CheckFailed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, what);
  std::abort();
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const& {
    CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;
inline Status Ok() { return {}; }

}  // namespace sandglass

// Situations that calls with paths share, so that each is tried with all of them.
#pragma once

#include <fcntl.h>

#include <functional>
#include <string>

#include "tests/parity/case.h"

namespace sandglass::parity {

// The call on one path, relative to a descriptor.
using AtCall = std::function<long(int dirfd, const char* path)>;

enum class TakesDirfd : uint8_t { kNo, kYes };

// A path of the tables: `ABS/` becomes the stage's own path, `LONG` a name that no file may have, `HUGE` a path that is too long,
// `FD:` the path of a descriptor that is open on what follows, `BAD` an address where there is no memory.
class StagePath {
 public:
  explicit StagePath(std::string_view pattern);
  const char* get() const;

 private:
  std::string text_;
  bool bad_ = false;
};

// The call makes a name. What a case is called begins with `prefix`, in all three.
void AddNewNameCases(Cases& cases, const std::string& call, TakesDirfd takes, const AtCall& act,
                     const std::string& prefix = "");
// The call works on an object that has one.
void AddExistingCases(Cases& cases, const std::string& call, TakesDirfd takes, const AtCall& act,
                      const std::string& prefix = "");
// The call takes a descriptor of its object.
void AddDescriptorCases(Cases& cases, const std::string& call,
                        const std::function<long(int fd)>& act, const std::string& prefix = "");

}  // namespace sandglass::parity

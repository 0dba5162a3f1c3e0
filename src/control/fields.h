// Fields: reads the members of one message and says clearly what is wrong with them: 'exec: "id" is missing'. Part of decoding;
// used by messages.cc only. Borrows the JSON value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"
#include "control/messages.h"

namespace sandglass::control {

class Fields {
 public:
  // `where` names the message, or the object in it.
  Fields(std::string_view where, const Json& object) : where_(where), object_(object) {}

  // A member that is null counts as missing.
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // All of these: kInvalid if the member is missing or of another type; kLimit if it is too long or too large.
  Result<StepId> Id(std::string_view key) const;
  Result<int64_t> Number(std::string_view key, int64_t least, int64_t most) const;
  Result<std::chrono::milliseconds> Milliseconds(std::string_view key,
                                                 std::chrono::milliseconds most) const;
  // Any bytes.
  Result<std::string> Data(std::string_view key, size_t max_bytes) const;
  // Bytes that can be handed to the kernel as a string: no NUL.
  Result<std::string> CString(std::string_view key, size_t max_bytes) const;
  Result<std::vector<std::string>> Arguments(std::string_view key) const;
  Result<std::vector<EnvEntry>> Environment(std::string_view key) const;
  Result<TerminalSize> Size() const;
  // The object of that name.
  Result<Fields> Object(std::string_view key) const;
  // Missing is false.
  Result<bool> Flag(std::string_view key) const;

  Error Wrong(Code code, std::string_view key, std::string_view what) const;

 private:
  const Json* Find(std::string_view key) const;
  Result<const Json*> Need(std::string_view key) const;
  Result<std::string> Bytes(std::string_view key, const Json& value, size_t max_bytes) const;
  Result<std::string> Terminated(std::string_view key, const Json& value, size_t max_bytes) const;

  std::string where_;
  const Json& object_;
};

}  // namespace sandglass::control

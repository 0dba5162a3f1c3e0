// Questions: what a client was asked and has not answered. Answers come as messages of their own, at any time or never. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/json.h"

namespace sandglass::api::mcp {

class Questions {
 public:
  // Null: the client refused, or cannot answer any more.
  using Then = std::function<void(const Json* result)>;

  // The id that the answer will have.
  std::string Add(Then then);
  // Whatever nobody asked for is ignored.
  void Answer(const Json& id, const Json* result);
  // The answer is not waited for any more. Whether it was.
  bool Withdraw(const std::string& id) { return open_.erase(id) > 0; }

 private:
  std::map<std::string, Then, std::less<>> open_;
  uint64_t next_ = 1;
};

}  // namespace sandglass::api::mcp

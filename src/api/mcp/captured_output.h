// CapturedOutput: what a command wrote to one stream, its beginning and its end, however much it was. A model reads all of an answer, so
// there is a limit, and what stands in the middle of a long output is what is missed least. Value type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sandglass::api::mcp {

inline constexpr size_t kKeptOfEachEnd = size_t{24} << 10;

class CapturedOutput {
 public:
  void Append(std::string_view bytes);
  // Bytes that the world wrote and nobody could take.
  void Miss(uint64_t bytes) { missed_ += bytes; }

  uint64_t left_out() const;
  // With a line that says so where something is left out.
  std::string Text() const;
  // The last line that has something on it, for whoever watches.
  std::string LastLine() const;

 private:
  std::string_view tail() const;

  std::string head_, tail_;
  uint64_t behind_head_ = 0;
  uint64_t missed_ = 0;
};

}  // namespace sandglass::api::mcp

// Bounds-checked reading and appending of little-endian bytes: the only way that our decoders touch
// foreign data.
//
// ByteCursor never reads past its end and never allocates; a short input is an Error of code
// kCorrupt. Value types.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace sandglass {

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Also of none.
inline bool AllZero(ByteView bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

class ByteCursor {
 public:
  explicit ByteCursor(ByteView bytes) : rest_(bytes) {}

  size_t remaining() const { return rest_.size(); }
  bool empty() const { return rest_.empty(); }

  // A fixed-size value. kCorrupt: fewer bytes are left.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  Result<T> Take() {
    if (rest_.size() < sizeof(T)) return Truncated();
    T value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  // The next `size` bytes, still owned by the input.
  Result<ByteView> TakeBytes(size_t size) {
    if (rest_.size() < size) return Truncated();
    ByteView taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  // A u32 length and that many bytes. kCorrupt: longer than `max` or than what is left.
  Result<std::string_view> TakeText(size_t max) {
    TRY_ASSIGN(uint32_t size, Take<uint32_t>());
    if (size > max) return Error(Code::kCorrupt, "text longer than allowed");
    TRY_ASSIGN(ByteView bytes, TakeBytes(size));
    return AsText(bytes);
  }

 private:
  static Error Truncated() { return Error(Code::kCorrupt, "input ends too early"); }

  ByteView rest_;
};

class ByteWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void Put(const T& value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    out_.insert(out_.end(), raw, raw + sizeof(T));
  }
  void PutBytes(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void PutText(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    PutBytes(AsBytes(text));
  }

  const Bytes& bytes() const { return out_; }
  void Clear() { out_.clear(); }

 private:
  Bytes out_;
};

}  // namespace sandglass

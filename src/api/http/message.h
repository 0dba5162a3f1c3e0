// HTTP/1.1 messages: requests out of a stream of bytes, and answers as text. Parsing is Boost.Beast's, kept inside message.cc because it
// throws and is slow to compile; nothing here throws. Pure; one thread per reader.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sandglass::api::http {

struct Limits {
  size_t head_bytes = size_t{16} << 10;
  size_t body_bytes = size_t{1} << 20;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  // as it was sent
  std::string target;
  Headers headers;
  std::string body;
  bool is_1_1 = true;
  bool keeps_alive = true;

  // Names are compared without case. nullopt: there is none of that name, or more than one.
  std::optional<std::string_view> Header(std::string_view name) const;
  size_t Count(std::string_view name) const;
};

// What is wrong with a request, as the status to answer with.
struct BadRequest {
  int status;
  std::string reason;
};

class Reader {
 public:
  explicit Reader(Limits limits);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Takes bytes from the front of `bytes` until a request is complete. Nothing: more bytes are needed. After something bad the stream
  // cannot be read on.
  struct Outcome {
    std::optional<Request> request;
    std::optional<BadRequest> bad;
  };
  Outcome Next(std::string& bytes);
  // A request has begun and is not complete.
  bool inside_request() const { return inside_; }
  // The client waits to be told that it may send the body. Says so once.
  bool TakeExpectation();

 private:
  struct Parser;
  const Limits limits_;
  std::unique_ptr<Parser> parser_;
  bool inside_ = false;
  bool expects_ = false;
};

enum class Framing : uint8_t {
  kLength,  // a whole body
  kChunks,  // pieces with their lengths
  kClose,   // until the end of the connection
};
// The head of an answer, with its empty line.
std::string Head(int status, const Headers& headers, Framing framing, size_t length = 0);
// A piece of a body in chunks; an empty one is its end.
std::string Chunk(std::string_view bytes);

}  // namespace sandglass::api::http

#include "api/http/message.h"

#include <fmt/format.h>

#include <exception>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/error.h"

namespace sandglass::api::http {
namespace {

namespace beast = boost::beast;

bool SameName(std::string_view a, std::string_view b) {
  return beast::iequals(beast::string_view(a.data(), a.size()),
                        beast::string_view(b.data(), b.size()));
}

BadRequest Bad(const beast::error_code& why) {
  if (why == beast::http::error::body_limit) return {413, "the body is too long"};
  if (why == beast::http::error::header_limit || why == beast::http::error::buffer_overflow)
    return {431, "the head is too long"};
  return {400, "that is no HTTP: " + why.message()};
}

std::string ToString(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::optional<std::string_view> Request::Header(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : headers) {
    if (!SameName(key, name)) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

size_t Request::Count(std::string_view name) const {
  size_t count = 0;
  for (const auto& [key, value] : headers) count += SameName(key, name) ? 1 : 0;
  return count;
}

struct Reader::Parser {
  explicit Parser(const Limits& limits) {
    parser.header_limit(static_cast<uint32_t>(limits.head_bytes));
    parser.body_limit(limits.body_bytes);
  }
  beast::http::request_parser<beast::http::string_body> parser;
};

Reader::Reader(Limits limits) : limits_(limits), parser_(std::make_unique<Parser>(limits)) {}
Reader::~Reader() = default;

bool Reader::TakeExpectation() { return std::exchange(expects_, false); }

Reader::Outcome Reader::Next(std::string& bytes) try {
  auto& parser = parser_->parser;
  while (!bytes.empty()) {
    const bool had_head = parser.is_header_done();
    beast::error_code why;
    const size_t taken = parser.put(boost::asio::buffer(bytes), why);
    bytes.erase(0, taken);
    inside_ = true;
    if (why == beast::http::error::need_more) {
      // Beast finds a head too long only once it is complete.
      if (!parser.is_header_done() && bytes.size() > limits_.head_bytes)
        return {std::nullopt, BadRequest{431, "the head is too long"}};
      if (taken == 0) break;
      continue;
    }
    if (why) return {std::nullopt, Bad(why)};
    if (!had_head && parser.is_header_done()) {
      // Beast 1.81 asserts that the last chunk comes in one piece, so a client could end us with chunks.
      if (parser.chunked()) return {std::nullopt, BadRequest{411, "a body needs its length"}};
      parser.eager(true);
    }
    if (!had_head && parser.is_header_done() && !parser.is_done())
      expects_ = SameName(ToString(parser.get()[beast::http::field::expect]), "100-continue");
    if (parser.is_done()) break;
    if (taken == 0) break;
  }
  if (!parser.is_done()) return {};
  auto message = parser.release();
  Request request{.method = ToString(message.method_string()),
                  .target = ToString(message.target()),
                  .headers = {},
                  .body = std::move(message.body()),
                  .is_1_1 = message.version() >= 11,
                  .keeps_alive = message.keep_alive()};
  for (const auto& field : message.base())
    request.headers.emplace_back(ToString(field.name_string()), ToString(field.value()));
  parser_ = std::make_unique<Parser>(limits_);
  inside_ = expects_ = false;
  return {std::move(request), std::nullopt};
} catch (const std::exception& thrown) {
  return {std::nullopt, BadRequest{400, thrown.what()}};
}

std::string Head(int status, const Headers& headers, Framing framing, size_t length) {
  const auto reason = beast::http::obsolete_reason(static_cast<beast::http::status>(status));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", status, ToString(reason));
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  switch (framing) {
    case Framing::kLength:
      head += fmt::format("Content-Length: {}\r\n", length);
      break;
    case Framing::kChunks:
      head += "Transfer-Encoding: chunked\r\n";
      break;
    case Framing::kClose:
      break;
  }
  return head + "\r\n";
}

std::string Chunk(std::string_view bytes) {
  if (bytes.empty()) return "0\r\n\r\n";
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace sandglass::api::http

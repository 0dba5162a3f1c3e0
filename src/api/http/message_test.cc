#include "api/http/message.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "api/http/connection.h"
#include "tests/support/must.h"

namespace sandglass::api::http {
namespace {

constexpr const char* kPost =
    "POST /mcp HTTP/1.1\r\nHost: a\r\nX: 1\r\nx: 2\r\nContent-Length: 5\r\n\r\nhello";

TEST(HttpMessage, RequestsAreCutOutOfTheStreamHoweverItComes) {
  const std::string stream = std::string(kPost) + "GET / HTTP/1.0\r\n\r\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    Reader reader({});
    std::string bytes;
    std::vector<Request> requests;
    for (size_t at = 0; at < stream.size(); at += piece) {
      bytes += stream.substr(at, piece);
      while (auto request = reader.Next(bytes).request) requests.push_back(std::move(*request));
    }
    ASSERT_EQ(requests.size(), 2u) << piece;
    EXPECT_EQ(requests[0].body, "hello");
    EXPECT_EQ(requests[0].target, "/mcp");
    EXPECT_EQ(requests[0].Header("HOST"), "a");
    EXPECT_EQ(requests[0].Count("X"), 2u);
    EXPECT_EQ(requests[0].Header("X"), std::nullopt);
    EXPECT_TRUE(requests[0].keeps_alive);
    EXPECT_EQ(requests[1].method, "GET");
    EXPECT_FALSE(requests[1].keeps_alive);
    EXPECT_FALSE(reader.inside_request());
  }
}

TEST(HttpMessage, WhatIsTooLongOrNoHttpIsBad) {
  const auto status = [](std::string bytes) {
    Reader reader({.head_bytes = 100, .body_bytes = 10});
    const auto outcome = reader.Next(bytes);
    return outcome.bad ? outcome.bad->status : 0;
  };
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n"), 413);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(200, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(200, 'x')), 431);
  EXPECT_EQ(status("nonsense\r\n\r\n"), 400);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n"), 0);
}

// The parser below would end the program over a last chunk that comes in pieces.
TEST(HttpMessage, ChunksAreRefusedHoweverTheyCome) {
  const std::string text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    Reader reader({});
    std::string bytes;
    int status = 0;
    for (size_t at = 0; at < text.size() && status == 0; at += piece) {
      bytes += text.substr(at, piece);
      const auto outcome = reader.Next(bytes);
      EXPECT_FALSE(outcome.request);
      if (outcome.bad) status = outcome.bad->status;
    }
    EXPECT_EQ(status, 411) << piece;
  }
}

TEST(HttpMessage, WhoWaitsForLeaveToSendGetsIt) {
  Reader reader({});
  std::string bytes = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_FALSE(reader.Next(bytes).request);
  EXPECT_TRUE(reader.TakeExpectation());
  EXPECT_FALSE(reader.TakeExpectation());
  bytes = "ab";
  EXPECT_EQ(reader.Next(bytes).request->body, "ab");
}

TEST(HttpMessage, AnswersHaveTheirShape) {
  EXPECT_EQ(Head(404, {{"A", "b"}}, Framing::kLength, 3),
            "HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(Head(200, {}, Framing::kChunks),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(Chunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
  EXPECT_EQ(Chunk(""), "0\r\n\r\n");
}

// A connection and its client.
struct Pair {
  explicit Pair(int type = SOCK_STREAM) {
    int sockets[2];
    test::MustCall(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets), "pair");
    client = Fd(sockets[0]);
    server.emplace(Fd(sockets[1]), ConnectionLimits{}, clock);
  }
  void Send(std::string_view bytes) const {
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  // A loop would work on it at once.
  bool IsReady() const {
    pollfd ready = server->Poll();
    return ::poll(&ready, 1, 0) > 0;
  }

  SteadyClock clock;
  Fd client;
  std::optional<Connection> server;
};

TEST(HttpConnection, AClientThatLeavesIsNoticedWhateverItSentBefore) {
  for (const char* more : {"", "\r\n", kPost}) {
    Pair pair;
    pair.Send(kPost);
    pair.server->Work();
    ASSERT_TRUE(pair.server->TakeRequest());
    pair.Send(more);
    pair.server->Work();
    EXPECT_FALSE(pair.IsReady());
    pair.client.Reset();
    EXPECT_TRUE(pair.IsReady());
    pair.server->Work();
    EXPECT_TRUE(pair.server->is_closed()) << more;
  }
  Pair half;
  half.Send("POST /mcp");
  half.server->Work();
  EXPECT_FALSE(half.server->TakeRequest());
  half.client.Reset();
  half.server->Work();
  EXPECT_TRUE(half.server->is_closed());
}

TEST(HttpConnection, WhoSendsARequestAndNoMoreIsAnsweredAndClosedWithoutASpin) {
  for (const std::string more : {"", "\r\n"}) {
    Pair pair;
    pair.Send(kPost + more);
    test::MustCall(::shutdown(pair.client.get(), SHUT_WR), "shutdown");
    pair.server->Work();
    ASSERT_TRUE(pair.server->TakeRequest());
    pair.server->Work();
    EXPECT_FALSE(pair.server->is_closed());
    EXPECT_FALSE(pair.IsReady());
    pair.server->Respond(200, {}, "hi");
    EXPECT_FALSE(pair.server->TakeRequest());
    EXPECT_TRUE(pair.server->is_closed());
    char answer[1000];
    EXPECT_GT(::recv(pair.client.get(), answer, sizeof(answer), 0), 0);
  }
}

TEST(HttpConnection, WhoSentMoreThanIsReadAndLeavesCausesNoSpin) {
  Pair pair;
  pair.Send(kPost);
  pair.server->Work();
  ASSERT_TRUE(pair.server->TakeRequest());
  pair.Send(std::string(64 << 10, 'x'));
  pair.server->Work();
  pair.client.Reset();
  EXPECT_FALSE(pair.IsReady());
  pair.server->Respond(200, {}, "hi");
  EXPECT_TRUE(pair.server->is_closed());
}

TEST(HttpConnection, WhoIsRefusedAndGoesOnSendingIsReadInTurns) {
  Pair pair(SOCK_SEQPACKET);  // a read for each that is sent
  pair.Send("nonsense\r\n\r\n");
  pair.server->Work();
  EXPECT_FALSE(pair.server->TakeRequest());
  for (int i = 0; i < 20; ++i) pair.Send("more");
  pair.server->Work();
  EXPECT_TRUE(pair.IsReady());
  pair.server->Work();
  EXPECT_FALSE(pair.IsReady());
  EXPECT_FALSE(pair.server->is_closed());
}

}  // namespace
}  // namespace sandglass::api::http

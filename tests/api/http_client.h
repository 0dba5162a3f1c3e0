// HttpClient: one connection to a server on this machine, by plain sockets, so that a test can also say what no library would.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "tests/support/must.h"

namespace sandglass::test {

struct HttpAnswer {
  int status = 0;  // 0: the connection ended
  std::string head, body;

  // "" where there is none.
  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return "";
    const size_t begin = at + 2 + name.size() + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  Json Parsed() const { return Must(ParseJson(body, 64 << 20)); }
  // The data of each event of a stream.
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (size_t at = body.find("data: "); at != body.npos; at = body.find("data: ", at + 1))
      events.push_back(body.substr(at + 6, body.find('\n', at) - at - 6));
    return events;
  }
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port) {
    socket_ = Fd(MustCall(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MustCall(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
             "connect");
  }
  void SendRaw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // what was answered can still be read
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // Up to the end of the answer; of a stream, up to the first place where it says `until`.
  HttpAnswer Read(const std::string& until = "") {
    HttpAnswer answer;
    while (read_.find("\r\n\r\n") == read_.npos) {
      if (!ReadMore()) return answer;
    }
    const size_t head_end = read_.find("\r\n\r\n") + 4;
    answer.head = read_.substr(0, head_end);
    read_.erase(0, head_end);
    answer.status = std::stoi(answer.head.substr(9, 3));
    if (answer.head.find("chunked") != answer.head.npos)
      ReadChunks(answer.body, until);
    else
      ReadBody(answer.body, std::stoul("0" + answer.Header("Content-Length")));
    return answer;
  }
  // More of a stream whose beginning was read.
  std::string ReadOn(const std::string& until) {
    std::string body;
    ReadChunks(body, until);
    return body;
  }
  // Whether the server has closed it, or does soon.
  bool IsClosed() {
    while (ReadMore()) {
    }
    return ended_;
  }

 private:
  bool ReadMore() {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 20'000) <= 0) return false;
    char buffer[1 << 16];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    ended_ = got <= 0;
    if (!ended_) read_.append(buffer, static_cast<size_t>(got));
    return !ended_;
  }
  void ReadBody(std::string& body, size_t size) {
    while (read_.size() < size && ReadMore()) {
    }
    body = read_.substr(0, size);
    read_.erase(0, size);
  }
  void ReadChunks(std::string& body, const std::string& until) {
    while (until.empty() || body.find(until) == body.npos) {
      const size_t end = read_.find("\r\n");
      if (end == read_.npos) {
        if (!ReadMore()) return;
        continue;
      }
      const size_t size = std::stoul(read_.substr(0, end), nullptr, 16);
      while (read_.size() < end + 2 + size + 2) {
        if (!ReadMore()) return;
      }
      body += read_.substr(end + 2, size);
      read_.erase(0, end + 2 + size + 2);
      if (size == 0) return;
    }
  }

  Fd socket_;
  std::string read_;
  bool ended_ = false;
};

}  // namespace sandglass::test

// Serves the ConformanceService by HTTP on any free port of the loopback device, and says where, until its input ends.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "api/mcp/http_server.h"
#include "tests/mcp_clients/conformance_service.h"

namespace {

using sandglass::Instant;

int MillisecondsTo(std::optional<Instant> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - sandglass::SteadyClock().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

std::optional<Instant> Earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

int main() {
  sandglass::test::ConformanceService service;
  auto server = sandglass::api::mcp::HttpServer::Listen(
      service,
      {.open = sandglass::api::mcp::ServeWithoutToken("the conformance suite has none to send")},
      sandglass::Logger::Null());
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  while (true) {
    std::vector<pollfd> fds = {{STDIN_FILENO, POLLIN, 0}};
    (*server)->AddTo(fds);
    (void)::poll(fds.data(), fds.size(),
                 MillisecondsTo(Earlier(service.Deadline(), (*server)->Deadline())));
    if (fds.front().revents != 0) return 0;
    service.Work();
    (*server)->Work();
  }
}

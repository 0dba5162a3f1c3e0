// sandglass serve: a session that another program drives, by JSON Lines on the standard streams.
#include <memory>
#include <utility>

#include "api/mcp/socket_server.h"
#include "api/mcp/tool_service.h"
#include "api/stdio/server.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/mcp_token.h"
#include "cli/project_choice.h"
#include "cli/run_options.h"
#include "cli/served_session.h"

namespace sandglass::cli {
namespace {

constexpr Option kStdioOption{.name = "stdio",
                              .help = "requests on standard input, answers on standard output"};
constexpr Option kStallOption{
    .name = "stall-timeout",
    .value = ValueKind::kText,
    .value_name = "TIME",
    .help =
        "if the client reads nothing for so long, output of commands is dropped instead of waited "
        "for; default: 30s"};
constexpr Option kMcpSocketOption{
    .name = "mcp-socket",
    .value = ValueKind::kPath,
    .value_name = "PATH",
    .help =
        "serve the tools of `sandglass mcp` in the same session, by a Unix socket that only you "
        "can use"};
constexpr Option kOptions[] = {kStdioOption,      kMcpSocketOption, kTokenFileOption,
                               kUndoDirOption,    kNoUndoForOption, kWithoutLandlockOption,
                               kAllowBroadOption, kStallOption,     kHelpOption};

// Null: not asked for.
Result<std::unique_ptr<api::mcp::SocketServer>> McpServerFor(const Arguments& arguments,
                                                             api::mcp::Service& service,
                                                             const Logger& log) {
  std::unique_ptr<api::mcp::SocketServer> none;
  const std::string path = arguments.Value(kMcpSocketOption.name);
  const std::string token_file = arguments.Value(kTokenFileOption.name);
  if (path.empty() && !token_file.empty())
    return Error(Code::kInvalid, "serve: --token-file is for --mcp-socket");
  if (path.empty()) return none;
  std::string token;
  if (!token_file.empty()) {
    TRY_ASSIGN(token, TokenFromFile(token_file));
  }
  return api::mcp::SocketServer::Listen(service, {.path = path, .token = token}, log);
}

Status Run(const Arguments& arguments, Console& console) {
  if (!arguments.Has(kStdioOption.name))
    return Error(Code::kInvalid, "serve: say --stdio; it is the only interface yet");
  const ServedLog log(console);
  api::ServerOptions options =
      ServerOptionsFor(arguments, console, log.logger(), "stdio_api", session::Watching::kOn);
  if (arguments.Has(kStallOption.name)) {
    TRY_ASSIGN(options.stall_timeout, TimeOf(arguments, kStallOption));
  }
  TRY_ASSIGN(const auto loop, api::ServerLoop::Open(options.host));
  api::mcp::ToolService tools(*loop, "", options.host.program_version);
  TRY_ASSIGN(const auto mcp_server, McpServerFor(arguments, tools, loop->log()));
  api::stdio::Server server(*loop, options);
  loop->Add(server);
  if (mcp_server) {
    loop->Add(tools);
    loop->Add(*mcp_server);
  }
  return loop->Serve();
}

}  // namespace

constinit const Command kServeCommand{
    .name = "serve",
    .summary = "let another program drive a session",
    .description =
        "One JSON object per line: requests on standard input; responses and events on standard "
        "output, and nothing else there. The error stream has the log, JSON Lines too, from level "
        "info unless --log-level says otherwise. `sandglass api describe` lists the operations; "
        "docs/api.md explains them. With --mcp-socket, models use the session that this program's "
        "client has started.\n\n"
        "At the end of input a running command comes to its end, then the session ends. If nobody "
        "reads standard output any more, and on SIGTERM, the command is ended first. What it did "
        "until then is a step like any other.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

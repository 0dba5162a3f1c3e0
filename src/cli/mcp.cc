// sandglass mcp: a session that a model drives, by the Model Context Protocol.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "api/mcp/http_server.h"
#include "api/mcp/line_server.h"
#include "api/mcp/random_name.h"
#include "api/mcp/socket_server.h"
#include "api/mcp/tool_service.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/mcp_install.h"
#include "cli/mcp_token.h"
#include "cli/project_choice.h"
#include "cli/run_options.h"
#include "cli/served_session.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kHttpOption{
    .name = "http",
    .value = ValueKind::kText,
    .value_name = "PORT",
    .help =
        "serve HTTP on this machine instead of the standard streams, at any free port unless one "
        "is named; prints the address and the token that clients need, as one line of JSON",
    .need = ValueNeed::kOptional};
constexpr Option kSocketOption{
    .name = "socket",
    .value = ValueKind::kPath,
    .value_name = "PATH",
    .help =
        "serve a Unix socket that only you can use instead of the standard streams; with "
        "--token-file clients need a token, too"};
constexpr Option kOptions[] = {
    kProjectOption,    kHttpOption, kSocketOption,  kTokenFileOption, kRemoveOption,
    kDryRunOption,     kYesOption,  kUndoDirOption, kNoUndoForOption, kWithoutLandlockOption,
    kAllowBroadOption, kHelpOption};
constexpr Operand kOperands[] = {{"install", ValueKind::kMcpAction, Arity::kOptional,
                                  "write the configuration of a client instead of serving"},
                                 {"CLIENT", ValueKind::kMcpClient, Arity::kOptional,
                                  "claude-code, claude-desktop, cursor, vscode or codex"}};

Result<uint16_t> PortOf(const Arguments& arguments) {
  const std::string text = arguments.Value(kHttpOption.name);
  if (text.empty()) return uint16_t{0};
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size())
    return Error(Code::kInvalid, fmt::format("mcp: --http={} is no port", text));
  return port;
}

using Servers = std::vector<std::unique_ptr<api::Participant>>;

// Says where it is; the token only if it is nowhere else.
Status AddHttp(Servers& servers, api::mcp::Service& service, const Logger& log,
               const Arguments& arguments, std::string token, Console& console) {
  TRY_ASSIGN(const uint16_t port, PortOf(arguments));
  const bool is_new = token.empty();
  if (is_new) token = api::mcp::RandomName();
  TRY_ASSIGN(auto server,
             api::mcp::HttpServer::Listen(service, {.port = port, .token = token}, log));
  Json place = Json::Object({{"url", server->url()}});
  if (is_new)
    place.Set("token", token);
  else
    place.Set("token_file", arguments.Value(kTokenFileOption.name));
  console.PrintJson(place);
  servers.push_back(std::move(server));
  return console.Flush();
}

// What was asked for, or else the standard streams.
Result<Servers> ServersFor(const Arguments& arguments, api::mcp::Service& service,
                           const api::ServerOptions& options, Console& console) {
  const Logger& log = options.host.log;
  const bool by_http = arguments.Has(kHttpOption.name);
  const bool by_socket = arguments.Has(kSocketOption.name);
  Servers servers;
  std::string token;
  if (arguments.Has(kTokenFileOption.name)) {
    if (!by_http && !by_socket)
      return Error(Code::kInvalid, "mcp: --token-file is for --http and --socket");
    TRY_ASSIGN(token, TokenFromFile(arguments.Value(kTokenFileOption.name)));
  }
  if (by_socket) {
    TRY_ASSIGN(auto server,
               api::mcp::SocketServer::Listen(
                   service, {.path = arguments.Value(kSocketOption.name), .token = token}, log));
    servers.push_back(std::move(server));
  }
  if (by_http) {
    TRY(AddHttp(servers, service, log, arguments, token, console));
  }
  if (servers.empty())
    servers.push_back(std::make_unique<api::mcp::LineServer>(
        service,
        api::mcp::LinePeer::Options{
            .ends = {options.in, options.out}, .stall_timeout = options.stall_timeout, .token = ""},
        log));
  return servers;
}

Status Run(const Arguments& arguments, Console& console) {
  if (!arguments.operands().empty()) return InstallMcp(arguments, console);
  for (const Option& option : {kRemoveOption, kDryRunOption, kYesOption}) {
    if (arguments.Has(option.name))
      return Error(Code::kInvalid, fmt::format("mcp: --{} is for mcp install", option.name));
  }
  TRY_ASSIGN(const undo::UndoPaths paths, FindPaths(arguments));
  const ServedLog log(console);
  const api::ServerOptions options = ServerOptionsFor(arguments, console, log.logger(), "mcp");
  TRY_ASSIGN(const auto loop, api::ServerLoop::Open(options.host));
  api::mcp::ToolService service(*loop, paths.project, options.host.program_version);
  loop->Add(service);
  TRY_ASSIGN(const Servers servers, ServersFor(arguments, service, options, console));
  for (const auto& server : servers) loop->Add(*server);
  return loop->Serve();
}

}  // namespace

constinit const Command kMcpCommand{
    .name = "mcp",
    .summary = "let a model drive a session, as a server of the Model Context Protocol",
    .description =
        "For the configuration of an MCP client: the client starts it and talks to it on standard "
        "input and output. A model gets tools to run commands, to read, write, edit and find "
        "files, "
        "and to undo and redo. The world, which has no network, starts with the first tool that "
        "needs it. Each command, write and edit is a step, which `sandglass undo` takes back "
        "too.\n\n"
        "With --http or --socket it serves clients that are already there, until it is ended by "
        "SIGTERM or Ctrl-C. Whoever reaches it and has the token can run commands in the world "
        "and change the project.\n\n"
        "`sandglass mcp install CLIENT` writes an entry for this program into the configuration "
        "of an MCP client of yours, for whatever project the client works on, or for the one of "
        "-p. It shows the entry and asks first; everything else in the file stays as it is, and a "
        "file that cannot be understood is left alone. --remove, --dry-run and --yes are for "
        "that.\n\n"
        "Undo across a person's edits is refused, and no tool can force it. The error stream has "
        "the log, JSON Lines from level info unless --log-level says otherwise. docs/mcp.md "
        "explains the tools.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

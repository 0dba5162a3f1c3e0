// sandglass mcp: a session that a model drives, by the Model Context Protocol on the standard streams.
#include <memory>
#include <utility>

#include "api/mcp/server.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/project_choice.h"
#include "cli/run_options.h"
#include "cli/served_session.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kProjectOption,         kUndoDirOption,    kNoUndoForOption,
                               kWithoutLandlockOption, kAllowBroadOption, kHelpOption};

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const undo::UndoPaths paths, FindPaths(arguments));
  const ServedLog log(console);
  api::ServerOptions options = ServerOptionsFor(arguments, console, log.logger(), "mcp");
  TRY_ASSIGN(const auto server, api::mcp::Server::Open(std::move(options), paths.project));
  return server->Serve();
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
        "Undo across a person's edits is refused, and no tool can force it. The error stream has "
        "the log, JSON Lines from level info unless --log-level says otherwise. docs/mcp.md "
        "explains the tools.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

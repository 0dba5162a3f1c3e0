// sandglass serve: a session that another program drives, by JSON Lines on the standard streams.
#include <memory>
#include <utility>

#include "api/stdio/server.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
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
constexpr Option kOptions[] = {
    kStdioOption,      kUndoDirOption, kNoUndoForOption, kWithoutLandlockOption,
    kAllowBroadOption, kStallOption,   kHelpOption};

Status Run(const Arguments& arguments, Console& console) {
  if (!arguments.Has(kStdioOption.name))
    return Error(Code::kInvalid, "serve: say --stdio; it is the only interface yet");
  const ServedLog log(console);
  api::ServerOptions options = ServerOptionsFor(arguments, console, log.logger(), "stdio_api");
  if (arguments.Has(kStallOption.name)) {
    TRY_ASSIGN(options.stall_timeout, TimeOf(arguments, kStallOption));
  }
  TRY_ASSIGN(const auto server, api::stdio::Server::Open(std::move(options)));
  return server->Serve();
}

}  // namespace

constinit const Command kServeCommand{
    .name = "serve",
    .summary = "let another program drive a session",
    .description =
        "One JSON object per line: requests on standard input; responses and events on standard "
        "output, and nothing else there. The error stream has the log, JSON Lines too, from level "
        "info unless --log-level says otherwise. `sandglass api describe` lists the operations; "
        "docs/api.md explains them.\n\n"
        "At the end of input a running command comes to its end, then the session ends. If nobody "
        "reads standard output any more, and on SIGTERM, the command is ended first. What it did "
        "until then is a step like any other.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli

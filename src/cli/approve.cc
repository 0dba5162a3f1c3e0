// sandglass approve: answers what a safeguard of a running session holds.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/held_text.h"
#include "cli/store_access.h"
#include "session/request_server.h"

namespace sandglass::cli {
namespace {

constexpr Option kDenyOption{
    .name = "deny",
    .help = "do not let it happen: its processes are ended, and the whole step is taken back"};
constexpr Option kOptions[] = {kDenyOption,    kProjectOption, kStoreOption,
                               kUndoDirOption, kJsonOption,    kHelpOption};
constexpr Operand kOperands[] = {
    {"ID", ValueKind::kText, Arity::kOptional, "what is held, such as sg_003; without it, a list"}};

Result<session::HeldAnswer> Ask(const undo::UndoPaths& paths, const session::HeldRequest& request) {
  auto answer = session::AskSession(paths.store, request);
  if (answer.ok() || answer.error().code() != Code::kNotFound) return answer;
  if (request.id.empty()) return session::HeldAnswer{};
  return Error(Code::kNotFound,
               fmt::format("nothing is held: no session runs on {}", PrintableName(paths.project)));
}

Status List(const session::HeldAnswer& answer, Console& console) {
  if (console.wants_json())
    console.PrintJson(Json::Object({{"held", HeldToJson(answer.held)}}));
  else
    console.Print(answer.held.empty() ? "nothing is held\n" : HeldText(answer.held));
  return Ok();
}

Status TellAnswer(const session::HeldRequest& request, const session::HeldAnswer& answer,
                  Console& console) {
  const bool allowed = request.decision == undo::Decision::kAllow;
  if (console.wants_json())
    console.PrintJson(Json::Object({{"id", request.id},
                                    {"decision", allowed ? "allow" : "deny"},
                                    {"held", HeldToJson(answer.held)}}));
  else
    console.Print(fmt::format("{}: {}\n", PrintableName(request.id),
                              allowed ? "allowed; it goes on"
                                      : "denied; its processes were ended, and it is taken back"));
  return Ok();
}

Status Run(const Arguments& arguments, Console& console) {
  const bool deny = arguments.Has(kDenyOption.name);
  session::HeldRequest request;
  if (!arguments.operands().empty()) request.id = arguments.operands().front();
  if (!deny) request.decision = undo::Decision::kAllow;
  if (request.id.empty() && deny)
    return Error(Code::kInvalid, "approve --deny: say which one; `sandglass approve` lists them");
  TRY_ASSIGN(const undo::UndoPaths paths, FindExistingStore(arguments));
  TRY_ASSIGN(const session::HeldAnswer answer, Ask(paths, request));
  if (answer.error) return *answer.error;
  return request.id.empty() ? List(answer, console) : TellAnswer(request, answer, console);
}

}  // namespace

constinit const Command kApproveCommand{
    .name = "approve",
    .summary = "answer what a safeguard holds",
    .description =
        "A command that is about to destroy more than was allowed is held before it does so, and "
        "somebody must answer in time; no answer is a denial. Whoever runs it may be asked "
        "elsewhere, but you can always answer here: without an ID you see what is held and the "
        "paths that it is about, with one you let it happen, or with --deny not. A command that is "
        "denied has its processes ended, and all that its step did is taken back.\n\n"
        "Only a person outside of the world can answer: inside there is no way to the session.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

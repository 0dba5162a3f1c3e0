#include "control/messages.h"

#include <fmt/format.h>

#include <limits>
#include <span>

#include "base/json.h"
#include "control/fields.h"

namespace sandglass::control {
namespace {

// --- Encoding ---

Json Head(std::string_view type, StepId id) {
  return Json::Object({{"type", type}, {"id", id.value}});
}

void SetSize(Json& to, TerminalSize size) {
  to.Set("rows", size.rows);
  to.Set("columns", size.columns);
}

Json ToJson(const Exec& exec) {
  Json json = Head("exec", exec.id);
  if (exec.command) json.Set("command", BytesToJson(*exec.command));
  if (!exec.argv.empty()) {
    Json::Items items;
    for (const std::string& argument : exec.argv) items.push_back(BytesToJson(argument));
    json.Set("argv", Json::FromItems(std::move(items)));
  }
  if (!exec.env.empty()) {
    Json::Members members;
    for (const EnvEntry& entry : exec.env)
      members.push_back({entry.name, BytesToJson(entry.value)});
    json.Set("env", Json::FromMembers(std::move(members)));
  }
  if (exec.cwd) json.Set("cwd", BytesToJson(*exec.cwd));
  if (exec.pty) {
    Json pty = Json::Object();
    SetSize(pty, *exec.pty);
    json.Set("pty", std::move(pty));
  }
  if (exec.takes_input) json.Set("input", true);
  if (exec.timeout) json.Set("timeout_ms", exec.timeout->count());
  if (exec.grace != kDefaultGrace) json.Set("grace_ms", exec.grace.count());
  if (exec.more_come) json.Set("more_come", true);
  if (exec.output_given) json.Set("output_given", true);
  return json;
}

Json ToJson(const Cancel& cancel) { return Head("cancel", cancel.id); }

Json ToJson(const RollbackNotify& notify) {
  return Json::Object({{"type", "rollback_notify"}, {"step_id", notify.step_id.value}});
}

Json ToJson(const Input& input) {
  Json json = Head("input", input.id);
  json.Set("data", BytesToJson(input.data));
  if (input.eof) json.Set("eof", true);
  return json;
}

Json ToJson(const Resize& resize) {
  Json json = Head("resize", resize.id);
  SetSize(json, resize.size);
  return json;
}

Json ToJson(const Signal& signal) { return Head("signal", signal.id).Set("signal", signal.number); }

Json ToJson(const Ack& ack) { return Head("ack", ack.id).Set("bytes", ack.bytes); }

Json ToJson(const Ready& ready) {
  return Json::Object({{"type", "ready"}, {"version", ready.version}});
}

Json ToJson(const StepStarted& started) { return Head("step_started", started.id); }

Json ToJson(const Output& output) {
  Json json = Head("output", output.id);
  json.Set("stream", output.stream == Stream::kStdout ? "stdout" : "stderr");
  json.Set("data", BytesToJson(output.data));
  return json;
}

Json ToJson(const StepCompleted& completed) {
  Json json = Head("step_completed", completed.id);
  json.Set("exit_code", completed.exit_code);
  if (completed.signal) json.Set("signal", *completed.signal);
  if (completed.timed_out) json.Set("timed_out", true);
  if (completed.error) json.Set("error", BytesToJson(*completed.error));
  return json;
}

Json ToJson(const Problem& problem) {
  Json json = Json::Object({{"type", "problem"}});
  if (problem.id) json.Set("id", problem.id->value);
  json.Set("message", BytesToJson(problem.message));
  return json;
}

// --- Decoding ---

// What to run, and where.
Status DecodeProgram(const Fields& in, Exec& exec) {
  if (in.Has("command") == in.Has("argv")) {
    return in.Wrong(Code::kInvalid, "command", "or \"argv\" must be there, and not both");
  }
  if (in.Has("command")) {
    TRY_ASSIGN(exec.command, in.CString("command", kMaxArgumentBytes));
  } else {
    TRY_ASSIGN(exec.argv, in.Arguments("argv"));
    if (exec.argv.front().empty()) return in.Wrong(Code::kInvalid, "argv", "names no program");
  }
  if (in.Has("env")) {
    TRY_ASSIGN(exec.env, in.Environment("env"));
  }
  if (in.Has("cwd")) {
    TRY_ASSIGN(exec.cwd, in.CString("cwd", kMaxPathBytes));
    if (!exec.cwd->starts_with('/')) return in.Wrong(Code::kInvalid, "cwd", "is not absolute");
  }
  return Ok();
}

Result<HostMessage> DecodeExec(const Fields& in) {
  Exec exec;
  TRY_ASSIGN(exec.id, in.Id("id"));
  TRY(DecodeProgram(in, exec));
  if (in.Has("pty")) {
    TRY_ASSIGN(const Fields pty, in.Object("pty"));
    TRY_ASSIGN(exec.pty, pty.Size());
  }
  TRY_ASSIGN(exec.takes_input, in.Flag("input"));
  TRY_ASSIGN(exec.more_come, in.Flag("more_come"));
  TRY_ASSIGN(exec.output_given, in.Flag("output_given"));
  if (in.Has("timeout_ms")) {
    TRY_ASSIGN(exec.timeout, in.Milliseconds("timeout_ms", kMaxTimeout));
  }
  if (in.Has("grace_ms")) {
    TRY_ASSIGN(exec.grace, in.Milliseconds("grace_ms", kMaxGrace));
  }
  return HostMessage(std::move(exec));
}

Result<HostMessage> DecodeCancel(const Fields& in) {
  TRY_ASSIGN(const StepId id, in.Id("id"));
  return HostMessage(Cancel{id});
}

Result<HostMessage> DecodeRollbackNotify(const Fields& in) {
  // Ambient steps are rolled back too, and their ids are negative.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  TRY_ASSIGN(const int64_t step, in.Number("step_id", -kMost, kMost));
  return HostMessage(RollbackNotify{StepId{step}});
}

Result<HostMessage> DecodeInput(const Fields& in) {
  Input input;
  TRY_ASSIGN(input.id, in.Id("id"));
  TRY_ASSIGN(input.data, in.Data("data", kMaxDataBytes));
  TRY_ASSIGN(input.eof, in.Flag("eof"));
  return HostMessage(std::move(input));
}

Result<HostMessage> DecodeResize(const Fields& in) {
  TRY_ASSIGN(const StepId id, in.Id("id"));
  TRY_ASSIGN(const TerminalSize size, in.Size());
  return HostMessage(Resize{id, size});
}

Result<HostMessage> DecodeSignal(const Fields& in) {
  TRY_ASSIGN(const StepId id, in.Id("id"));
  TRY_ASSIGN(const int64_t number, in.Number("signal", 1, kMaxSignal));
  return HostMessage(Signal{id, static_cast<int>(number)});
}

Result<Ack> DecodeAck(const Fields& in) {
  TRY_ASSIGN(const StepId id, in.Id("id"));
  TRY_ASSIGN(const int64_t bytes, in.Number("bytes", 1, kWindowBytes));
  return Ack{id, static_cast<uint64_t>(bytes)};
}

template <class Message>
Result<Message> DecodeAckAs(const Fields& in) {
  TRY_ASSIGN(const Ack ack, DecodeAck(in));
  return Message(ack);
}

Result<ShimMessage> DecodeReady(const Fields& in) {
  TRY_ASSIGN(const int64_t version, in.Number("version", 1, std::numeric_limits<int32_t>::max()));
  return ShimMessage(Ready{version});
}

Result<ShimMessage> DecodeStepStarted(const Fields& in) {
  TRY_ASSIGN(const StepId id, in.Id("id"));
  return ShimMessage(StepStarted{id});
}

Result<ShimMessage> DecodeOutput(const Fields& in) {
  Output output;
  TRY_ASSIGN(output.id, in.Id("id"));
  constexpr size_t kLongestName = 6;
  TRY_ASSIGN(const std::string stream, in.Data("stream", kLongestName));
  if (stream != "stdout" && stream != "stderr") {
    return in.Wrong(Code::kInvalid, "stream", "is neither \"stdout\" nor \"stderr\"");
  }
  output.stream = stream == "stdout" ? Stream::kStdout : Stream::kStderr;
  TRY_ASSIGN(output.data, in.Data("data", kMaxDataBytes));
  return ShimMessage(std::move(output));
}

Result<ShimMessage> DecodeStepCompleted(const Fields& in) {
  StepCompleted completed;
  TRY_ASSIGN(completed.id, in.Id("id"));
  TRY_ASSIGN(const int64_t exit_code, in.Number("exit_code", 0, 255));
  completed.exit_code = static_cast<int>(exit_code);
  if (in.Has("signal")) {
    TRY_ASSIGN(const int64_t signal, in.Number("signal", 1, kMaxSignal));
    completed.signal = static_cast<int>(signal);
  }
  TRY_ASSIGN(completed.timed_out, in.Flag("timed_out"));
  if (in.Has("error")) {
    TRY_ASSIGN(completed.error, in.Data("error", kMaxReasonBytes));
  }
  return ShimMessage(std::move(completed));
}

Result<ShimMessage> DecodeProblem(const Fields& in) {
  Problem problem;
  if (in.Has("id")) {
    TRY_ASSIGN(problem.id, in.Id("id"));
  }
  TRY_ASSIGN(problem.message, in.Data("message", kMaxReasonBytes));
  return ShimMessage(std::move(problem));
}

template <class Message>
struct Row {
  std::string_view type;
  Result<Message> (*decode)(const Fields& in);
};

constexpr Row<HostMessage> kHostRows[] = {
    {"exec", DecodeExec},
    {"cancel", DecodeCancel},
    {"rollback_notify", DecodeRollbackNotify},
    {"input", DecodeInput},
    {"resize", DecodeResize},
    {"signal", DecodeSignal},
    {"ack", DecodeAckAs<HostMessage>},
};
constexpr Row<ShimMessage> kShimRows[] = {
    {"ready", DecodeReady},
    {"step_started", DecodeStepStarted},
    {"output", DecodeOutput},
    {"step_completed", DecodeStepCompleted},
    {"ack", DecodeAckAs<ShimMessage>},
    {"problem", DecodeProblem},
};

Error UnknownType(std::string_view type) {
  constexpr size_t kShown = 32;
  std::string shown;
  AppendJsonString(shown, type.substr(0, kShown));
  return Error(Code::kUnsupported, fmt::format("message of unknown type {}", shown));
}

template <class Message>
Result<Message> Decode(std::string_view line, std::span<const Row<Message>> rows) {
  if (line.size() > kMaxLineBytes) {
    return Error(Code::kLimit, fmt::format("message is longer than {} bytes", kMaxLineBytes));
  }
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxLineBytes));
  if (json.AsObject() == nullptr) return Error(Code::kInvalid, "message is not a JSON object");
  const Json* type = json.Find("type");
  if (type == nullptr) return Error(Code::kInvalid, "message: \"type\" is missing");
  if (type->AsString() == nullptr) {
    return Error(Code::kInvalid, "message: \"type\" is not a string");
  }
  for (const Row<Message>& row : rows) {
    if (row.type == *type->AsString()) return row.decode(Fields(row.type, json));
  }
  return UnknownType(*type->AsString());
}

template <class Message>
Status ValidateBy(Result<Message> (*decode)(std::string_view), const Message& message) {
  TRY_ASSIGN(const Message understood, decode(Encode(message)));
  if (understood != message) {
    return Error(Code::kInvalid,
                 "message holds what JSON cannot carry, such as a name not in UTF-8");
  }
  return Ok();
}

template <class Message>
std::string EncodeAny(const Message& message) {
  return WriteJson(std::visit([](const auto& one) { return ToJson(one); }, message));
}

}  // namespace

std::string Encode(const HostMessage& message) { return EncodeAny(message); }
std::string Encode(const ShimMessage& message) { return EncodeAny(message); }

Result<HostMessage> DecodeHostMessage(std::string_view line) {
  return Decode<HostMessage>(line, kHostRows);
}
Result<ShimMessage> DecodeShimMessage(std::string_view line) {
  return Decode<ShimMessage>(line, kShimRows);
}

Status Validate(const HostMessage& message) { return ValidateBy(&DecodeHostMessage, message); }
Status Validate(const ShimMessage& message) { return ValidateBy(&DecodeShimMessage, message); }

}  // namespace sandglass::control

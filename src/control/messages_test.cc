#include "control/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sandglass::control {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Exec FullExec() {
  return {.id = {42},
          .argv = {"make", "-j\xff", ""},
          .env = {{"LANG", "C"}, {"RAW", "\xfe"}},
          .cwd = "/home/\xff/p",
          .pty = TerminalSize{50, 132},
          .takes_input = true,
          .timeout = 1500ms,
          .grace = 0ms,
          .more_come = true,
          .output_given = true};
}

std::vector<HostMessage> HostMessages() {
  return {Exec{.id = {1}, .command = "npm install"},
          FullExec(),
          Cancel{{7}},
          RollbackNotify{{-3}},
          Input{.id = {7}, .data = "ls\n"},
          Input{.id = {7}, .data = std::string("\0\x1b\xff", 3), .eof = true},
          Resize{{7}, {1, 65535}},
          Signal{{7}, 2},
          Ack{{7}, kWindowBytes}};
}

std::vector<ShimMessage> ShimMessages() {
  return {Ready{},
          StepStarted{{7}},
          Output{.id = {7}, .data = "added 150 packages\n"},
          Output{.id = {7}, .stream = Stream::kStderr, .data = "\x80\xff"},
          StepCompleted{.id = {7}, .exit_code = 255},
          StepCompleted{.id = {7}, .exit_code = 137, .signal = 9, .timed_out = true},
          StepCompleted{.id = {7}, .exit_code = 127, .error = "no such program"},
          Ack{{7}, 1},
          Problem{.message = "what?"},
          Problem{.id = StepId{7}, .message = "no terminal"}};
}

Error HostError(std::string_view line) {
  const auto message = DecodeHostMessage(line);
  return message.ok() ? Error(Code::kIo, "was understood") : message.error();
}
Error ShimError(std::string_view line) {
  const auto message = DecodeShimMessage(line);
  return message.ok() ? Error(Code::kIo, "was understood") : message.error();
}

TEST(ControlMessages, EveryMessageComesBackAsItWas) {
  for (const HostMessage& message : HostMessages()) {
    const std::string line = Encode(message);
    const auto back = DecodeHostMessage(line);
    ASSERT_TRUE(back.ok()) << line << back.error().ToString();
    EXPECT_TRUE(*back == message) << line;
    EXPECT_TRUE(Validate(message).ok());
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  for (const ShimMessage& message : ShimMessages()) {
    const std::string line = Encode(message);
    const auto back = DecodeShimMessage(line);
    ASSERT_TRUE(back.ok()) << line << back.error().ToString();
    EXPECT_TRUE(*back == message) << line;
    EXPECT_TRUE(Validate(message).ok());
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(ControlMessages, ReadLikeTheFoundingExamples) {
  EXPECT_EQ(Encode(HostMessage(Exec{.id = {42}, .command = "npm install", .cwd = "/mnt/working"})),
            R"({"type":"exec","id":42,"command":"npm install","cwd":"/mnt/working"})");
  EXPECT_EQ(Encode(ShimMessage(StepStarted{{42}})), R"({"type":"step_started","id":42})");
  EXPECT_EQ(Encode(ShimMessage(Output{.id = {42}, .data = "added 150 packages in 3s\n"})),
            R"({"type":"output","id":42,"stream":"stdout","data":"added 150 packages in 3s\n"})");
  EXPECT_EQ(Encode(ShimMessage(StepCompleted{.id = {42}})),
            R"({"type":"step_completed","id":42,"exit_code":0})");
}

TEST(ControlMessages, BytesThatAreNotUtf8TravelAsBase64) {
  EXPECT_EQ(Encode(HostMessage(Input{.id = {1}, .data = "\xff\xfe"})),
            R"({"type":"input","id":1,"data":{"base64":"//4="}})");
}

TEST(ControlMessages, UnknownMembersAreIgnoredAndNullCountsAsMissing) {
  const auto message = DecodeHostMessage(
      R"({"later":[1],"type":"exec","id":1,"command":"a","argv":null,"cwd":null,"pty":null})");
  ASSERT_TRUE(message.ok());
  EXPECT_TRUE(*message == HostMessage(Exec{.id = {1}, .command = "a"}));
}

TEST(ControlMessages, MalformedJsonIsAClearError) {
  for (const auto line : {"", "{", "hello", R"({"type":"cancel","id":1)", "{}{}", "\xff"}) {
    EXPECT_EQ(ShimError(line).code(), Code::kInvalid) << line;
    EXPECT_THAT(ShimError(line).message(), HasSubstr("JSON")) << line;
  }
  for (const auto line : {"[]", "1", "null", "\"exec\""}) {
    EXPECT_EQ(ShimError(line).message(), "message is not a JSON object") << line;
  }
  EXPECT_EQ(ShimError("{}").message(), "message: \"type\" is missing");
  EXPECT_EQ(ShimError(R"({"type":7})").message(), "message: \"type\" is not a string");
}

TEST(ControlMessages, AnUnknownTypeIsAnErrorOfItsOwn) {
  EXPECT_EQ(ShimError(R"({"type":"dance"})").code(), Code::kUnsupported);
  EXPECT_EQ(ShimError(R"({"type":"dance"})").message(), "message of unknown type \"dance\"");
  const std::string longer = "{\"type\":\"" + std::string(5000, 'x') + "\"}";
  EXPECT_LT(ShimError(longer).message().size(), 100u);
}

TEST(ControlMessages, NeitherEndUnderstandsItsOwnMessages) {
  for (const HostMessage& message : HostMessages()) {
    if (std::holds_alternative<Ack>(message)) continue;
    EXPECT_EQ(ShimError(Encode(message)).code(), Code::kUnsupported);
  }
  for (const ShimMessage& message : ShimMessages()) {
    if (std::holds_alternative<Ack>(message)) continue;
    EXPECT_EQ(HostError(Encode(message)).code(), Code::kUnsupported);
  }
}

TEST(ControlMessages, EveryMemberThatMustBeThereIsMissed) {
  const auto each_member_missed = [](const std::string& line, auto decode,
                                     std::vector<std::string_view> optional) {
    const Json whole = ParseJson(line).value();
    for (const JsonMember& left_out : *whole.AsObject()) {
      Json rest = Json::Object();
      for (const JsonMember& member : *whole.AsObject()) {
        if (member.key != left_out.key) rest.Set(member.key, member.value);
      }
      const bool may_miss =
          std::find(optional.begin(), optional.end(), left_out.key) != optional.end();
      EXPECT_EQ(decode(WriteJson(rest)).ok(), may_miss) << WriteJson(rest);
    }
  };
  for (const HostMessage& message : HostMessages()) {
    each_member_missed(Encode(message), DecodeHostMessage,
                       {"env", "cwd", "pty", "input", "timeout_ms", "grace_ms", "more_come",
                        "output_given", "eof"});
  }
  for (const ShimMessage& message : ShimMessages()) {
    const bool free = std::holds_alternative<Problem>(message);
    each_member_missed(Encode(message), DecodeShimMessage,
                       {"signal", "timed_out", "error", free ? "id" : "signal"});
  }
}

struct Wrong {
  std::string_view line;
  Code code;
  std::string_view message;
};

TEST(ControlMessages, WrongMembersAreNamed) {
  const Wrong from_host[] = {
      {R"({"type":"cancel"})", Code::kInvalid, R"(cancel: "id" is missing)"},
      {R"({"type":"cancel","id":"1"})", Code::kInvalid, R"(cancel: "id" is not a number)"},
      {R"({"type":"cancel","id":1.5})", Code::kInvalid, R"(cancel: "id" is not a whole number)"},
      {R"({"type":"cancel","id":0})", Code::kLimit, R"(cancel: "id" is not between 1 and )"},
      {R"({"type":"cancel","id":-4})", Code::kLimit, R"(cancel: "id" is not between 1 and )"},
      {R"({"type":"cancel","id":18446744073709551615})", Code::kLimit, R"("id" is not between)"},
      {R"({"type":"exec","id":1})", Code::kInvalid, R"("command" or "argv" must be there)"},
      {R"({"type":"exec","id":1,"command":"a","argv":["b"]})", Code::kInvalid, "not both"},
      {R"({"type":"exec","id":1,"command":7})", Code::kInvalid, R"("command" is neither a string)"},
      {R"({"type":"exec","id":1,"command":"a\u0000b"})", Code::kInvalid, "contains a NUL"},
      {R"({"type":"exec","id":1,"argv":"a"})", Code::kInvalid, R"("argv" is not an array)"},
      {R"({"type":"exec","id":1,"argv":[]})", Code::kLimit, R"("argv" has not 1 to 4096 items)"},
      {R"({"type":"exec","id":1,"argv":[""]})", Code::kInvalid, R"("argv" names no program)"},
      {R"({"type":"exec","id":1,"argv":["a",1]})", Code::kInvalid, R"("argv" is neither)"},
      {R"({"type":"exec","id":1,"command":"a","env":[]})", Code::kInvalid,
       R"("env" is not an obj)"},
      {R"({"type":"exec","id":1,"command":"a","env":{"":"x"}})", Code::kInvalid, "name that is em"},
      {R"({"type":"exec","id":1,"command":"a","env":{"A=B":"x"}})", Code::kInvalid, "contains '='"},
      {R"({"type":"exec","id":1,"command":"a","env":{"A":1}})", Code::kInvalid, R"("env" is nei)"},
      {R"({"type":"exec","id":1,"command":"a","cwd":"src"})", Code::kInvalid, "is not absolute"},
      {R"({"type":"exec","id":1,"command":"a","pty":true})", Code::kInvalid, R"("pty" is not an)"},
      {R"({"type":"exec","id":1,"command":"a","pty":{"rows":1}})", Code::kInvalid,
       R"(exec.pty: "columns" is missing)"},
      {R"({"type":"exec","id":1,"command":"a","input":1})", Code::kInvalid, "neither true nor"},
      {R"({"type":"exec","id":1,"command":"a","timeout_ms":-1})", Code::kLimit, "timeout_ms"},
      {R"({"type":"exec","id":1,"command":"a","grace_ms":600001})", Code::kLimit, "grace_ms"},
      {R"({"type":"input","id":1,"data":{"base64":"?"}})", Code::kInvalid, "valid base64"},
      {R"({"type":"resize","id":1,"rows":0,"columns":1})", Code::kLimit, R"("rows" is not betw)"},
      {R"({"type":"resize","id":1,"rows":1,"columns":65536})", Code::kLimit, R"("columns" is not)"},
      {R"({"type":"signal","id":1,"signal":65})", Code::kLimit, R"("signal" is not between 1 and)"},
      {R"({"type":"ack","id":1,"bytes":0})", Code::kLimit, R"("bytes" is not between)"},
  };
  for (const auto& [line, code, message] : from_host) {
    EXPECT_EQ(HostError(line).code(), code) << line;
    EXPECT_THAT(HostError(line).message(), HasSubstr(message)) << line;
  }
  const Wrong from_shim[] = {
      {R"({"type":"output","id":1,"stream":"stdin","data":""})", Code::kInvalid, "neither \"stdo"},
      {R"({"type":"output","id":1,"stream":"standard","data":""})", Code::kLimit, "longer than 6"},
      {R"({"type":"output","id":1,"stream":"stdout","data":[]})", Code::kInvalid, R"("data" is)"},
      {R"({"type":"step_completed","id":1,"exit_code":256})", Code::kLimit, R"("exit_code" is)"},
      {R"({"type":"step_completed","id":1,"exit_code":0,"signal":0})", Code::kLimit, "signal"},
      {R"({"type":"ready","version":0})", Code::kLimit, R"(ready: "version" is not between)"},
      {R"({"type":"ack","id":1,"bytes":262145})", Code::kLimit, R"("bytes" is not between)"},
  };
  for (const auto& [line, code, message] : from_shim) {
    EXPECT_EQ(ShimError(line).code(), code) << line;
    EXPECT_THAT(ShimError(line).message(), HasSubstr(message)) << line;
  }
}

TEST(ControlMessages, LimitsHoldExactly) {
  const auto code = [](const HostMessage& message) {
    const Status status = Validate(message);
    return status.ok() ? std::nullopt : std::optional(status.error().code());
  };
  const auto exec = [](std::string command) {
    return Exec{.id = {1}, .command = std::move(command)};
  };
  EXPECT_EQ(code(exec(std::string(kMaxArgumentBytes, 'x'))), std::nullopt);
  EXPECT_EQ(code(exec(std::string(kMaxArgumentBytes + 1, 'x'))), Code::kLimit);
  EXPECT_EQ(code(Input{.id = {1}, .data = std::string(kMaxDataBytes + 1, 'x')}), Code::kLimit);
  Exec many = {.id = {1}, .argv = std::vector<std::string>(kMaxArguments, "a")};
  EXPECT_EQ(code(many), std::nullopt);
  many.argv.push_back("a");
  EXPECT_EQ(code(many), Code::kLimit);
  Exec deep = exec("a");
  deep.cwd = "/" + std::string(kMaxPathBytes - 1, 'd');
  EXPECT_EQ(code(deep), std::nullopt);
  deep.cwd->push_back('d');
  EXPECT_EQ(code(deep), Code::kLimit);
  Exec entry = exec("a");
  entry.env = {{"A", std::string(kMaxArgumentBytes - 2, 'x')}};
  EXPECT_EQ(code(entry), std::nullopt);
  entry.env[0].value += 'x';
  EXPECT_EQ(code(entry), Code::kLimit);
  Exec crowded = exec("a");
  for (size_t i = 0; i <= kMaxEnvEntries; ++i) crowded.env.push_back({std::to_string(i), ""});
  EXPECT_EQ(code(crowded), Code::kLimit);
}

TEST(ControlMessages, TheWorstDataStillFitsIntoALine) {
  for (const char worst : {'\x01', '\xff', '"', 'a'}) {
    const std::string data(kMaxDataBytes, worst);
    EXPECT_TRUE(Validate(ShimMessage(Output{.id = {1}, .data = data})).ok()) << int{worst};
    EXPECT_TRUE(Validate(HostMessage(Input{.id = {1}, .data = data})).ok()) << int{worst};
  }
}

TEST(ControlMessages, ALineOfMoreThanAMebibyteIsRefusedUnparsed) {
  std::string line = R"({"type":"step_started","id":1})";
  line.resize(kMaxLineBytes, ' ');
  EXPECT_TRUE(DecodeShimMessage(line).ok());
  line += ' ';
  EXPECT_EQ(ShimError(line).code(), Code::kLimit);
  Exec large{.id = {1}, .argv = std::vector<std::string>(9, std::string(kMaxArgumentBytes, 'a'))};
  EXPECT_EQ(Validate(HostMessage(large)).error().code(), Code::kLimit);
}

TEST(ControlMessages, WhatJsonCannotCarryIsNotValid) {
  Exec exec{.id = {1}, .command = "a", .env = {{"\xff", "x"}}};
  EXPECT_EQ(Validate(HostMessage(exec)).error().code(), Code::kInvalid);
  exec.env = {{"A", "1"}, {"A", "2"}};
  EXPECT_EQ(Validate(HostMessage(exec)).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace sandglass::control

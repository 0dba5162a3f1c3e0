#include "api/stdio/messages.h"

#include <gtest/gtest.h>

#include <string>

#include "api/limits.h"

namespace sandglass::api::stdio {
namespace {

// "code field id" of what is no request, or "".
std::string Refusal(std::string_view line) {
  const auto parsed = ParseRequest(line);
  const auto* refused = std::get_if<Refused>(&parsed);
  if (refused == nullptr) return "";
  const Json* field = refused->error.data.Find("field");
  return std::string(NameOf(refused->error.code)) +
         (field != nullptr ? " " + *field->AsString() : "") +
         (refused->request_id ? " of " + *refused->request_id : "");
}

constexpr const char* kRequests[] = {
    R"({"type":"protocol.negotiate","request_id":"1","payload":{"versions":[1]}})",
    R"({"type":"session.start","request_id":"1","payload":{"working_directories":[{"path":"/p","label":"project","access":"read_write"},{"path":"/q","access":"read_only"}],"network_policy":"open","vm_mode":"persistent"}})",
    R"({"type":"session.stop","request_id":"1"})",
    R"({"type":"session.reset","request_id":"1"})",
    R"({"type":"session.status","request_id":"1","payload":{}})",
    R"({"type":"undo.rollback","request_id":"1","payload":{"count":2,"force":true}})",
    R"({"type":"undo.redo","request_id":"1"})",
    R"({"type":"undo.restore","request_id":"1","payload":{"step_id":3,"paths":["a"]}})",
    R"({"type":"undo.history","request_id":"1","payload":{"directory":1}})",
    R"({"type":"undo.changes","request_id":"1","payload":{"step_id":-1}})",
    R"({"type":"undo.diff","request_id":"1","payload":{"step_id":3}})",
    R"({"type":"undo.configure","request_id":"5","payload":{"max_log_size_bytes":1073741824,"max_step_count":100,"max_single_step_size_bytes":209715200}})",
    R"({"type":"undo.discard","request_id":"1"})",
    R"({"type":"agent.execute","request_id":"1","payload":{"command":"npm install"}})",
    R"({"type":"agent.cancel","request_id":"1"})",
    R"({"type":"agent.input","request_id":"1","payload":{"data":"y\n"}})",
    R"({"type":"agent.resize","request_id":"1","payload":{"rows":24,"columns":80}})",
    R"({"type":"agent.prompt","request_id":"1","payload":{"prompt":"go"}})",
    R"({"type":"fs.list","request_id":"1"})",
    R"({"type":"fs.read","request_id":"1","payload":{"path":"a","directory":"/p"}})",
    R"({"type":"fs.write","request_id":"1","payload":{"path":"a","content":"b"}})",
    R"({"type":"fs.edit","request_id":"1","payload":{"path":"a","old_text":"b","new_text":"","replace_all":true}})",
    R"({"type":"fs.glob","request_id":"1","payload":{"pattern":"**/*.cc","order":"name"}})",
    R"({"type":"fs.grep","request_id":"1","payload":{"pattern":"a+","globs":["*.h"],"cursor":{"path":"a","line":3}}})",
    R"({"type":"fs.status","request_id":"1"})",
    R"({"type":"safeguard.configure","request_id":"2","payload":{"delete_threshold":50,"timeout_seconds":30}})",
    R"({"type":"safeguard.confirm","request_id":"3","payload":{"safeguard_id":"sg_001","action":"allow"}})",
};

TEST(StdioMessages, SA_01_EveryRequestTypeIsAccepted) {
  EXPECT_EQ(std::size(kRequests), AllOperations().size());
  for (const char* line : kRequests) {
    const auto parsed = ParseRequest(line);
    const auto* request = std::get_if<Request>(&parsed);
    ASSERT_NE(request, nullptr) << line << ": " << Refusal(line);
    const auto wrong = FindMismatch(*request->operation->request, request->payload);
    EXPECT_FALSE(wrong) << line << ": " << wrong->path << " " << wrong->message;
  }
}

TEST(StdioMessages, SA_02_AnUnknownOperationIsNamedSo) {
  EXPECT_EQ(Refusal(R"({"type":"session.begin","request_id":"7"})"), "unknown_operation of 7");
}

TEST(StdioMessages, SA_03_AMissingMemberIsNamed) {
  EXPECT_EQ(Refusal(R"({"request_id":"7"})"), "invalid_request type of 7");
  EXPECT_EQ(Refusal(R"({"type":"session.status"})"), "invalid_request request_id");
  EXPECT_EQ(Refusal(R"({"type":"session.status","request_id":7})"), "invalid_request request_id");
  EXPECT_EQ(Refusal(R"({"type":1,"request_id":"7"})"), "invalid_request type of 7");
  EXPECT_EQ(Refusal(R"({"type":"session.status","request_id":"7","payload":[]})"),
            "invalid_request payload of 7");
  EXPECT_EQ(Refusal(R"({"type":"session.status","request_id":"7","params":{}})"),
            "invalid_request params of 7");
  EXPECT_EQ(Refusal(R"([])"), "invalid_request ");
}

TEST(StdioMessages, WhatIsNoJsonIsRefused) {
  for (const std::string& line :
       {std::string("nonsense"), std::string("{"), std::string("{\"type\":\"\xff\"}"),
        std::string("{\"type\":\"a\0b\"}", 14), std::string("{} {}"), std::string(100, '[')})
    EXPECT_EQ(Refusal(line), "parse_error") << line;
  EXPECT_EQ(Refusal(std::string(kMaxLineBytes + 1, ' ')), "too_long");
}

TEST(StdioMessages, AKeyThatIsGivenTwiceIsRefused) {
  EXPECT_EQ(Refusal(R"({"type":"fs.list","type":"fs.read","request_id":"1"})"), "parse_error of 1");
  EXPECT_EQ(
      Refusal(R"({"type":"fs.list","request_id":"1","payload":{"path":"a","p\u0061th":"b"}})"),
      "parse_error of 1");
  EXPECT_EQ(Refusal(R"({"type":"fs.list","request_id":"1","payload":{"path":"\":\\"}})"), "");
}

TEST(StdioMessages, AnswersHaveTheirShape) {
  EXPECT_EQ(EncodeResponse("1", Json::Object()),
            "{\"type\":\"response\",\"request_id\":\"1\",\"status\":\"ok\"}\n");
  EXPECT_EQ(
      EncodeResponse("1", Json::Object({{"a", 1}})),
      "{\"type\":\"response\",\"request_id\":\"1\",\"status\":\"ok\",\"payload\":{\"a\":1}}\n");
  EXPECT_EQ(EncodeRefusal({std::nullopt, {ApiCode::kParseError, "no"}}),
            "{\"type\":\"response\",\"request_id\":null,\"status\":\"error\",\"error\":{\"code\":"
            "\"parse_error\",\"message\":\"no\",\"data\":{}}}\n");
  EXPECT_EQ(EncodeEvent("event.warning", Json::Object({{"code", "x"}})),
            "{\"type\":\"event.warning\",\"payload\":{\"code\":\"x\"}}\n");
}

}  // namespace
}  // namespace sandglass::api::stdio

// Writes the seed corpus of control_channel_fuzz into a folder: make_control_channel_corpus
// fuzz/corpus/control_channel
//
// What is right comes from the real encoder, so that a change of a message changes the seeds. Names of seeds say what they hold.
#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "control/messages.h"
#include "fuzz/control_channel_input.h"

namespace sandglass::fuzz {
namespace {

using namespace control;
using namespace std::chrono_literals;

struct Seed {
  std::string name;
  std::string content;
};

class Seeds {
 public:
  void Add(std::string name, ControlInput kind, std::string_view rest) {
    all_.push_back({std::move(name), static_cast<char>(kind) + std::string(rest)});
  }
  void Host(std::string name, const HostMessage& message) {
    Add("host_" + name, ControlInput::kHostLine, Encode(message));
  }
  void Shim(std::string name, const ShimMessage& message) {
    Add("shim_" + name, ControlInput::kShimLine, Encode(message));
  }
  const std::vector<Seed>& all() const { return all_; }

 private:
  std::vector<Seed> all_;
};

void AddHostMessages(Seeds& seeds) {
  seeds.Host("exec", Exec{.id = {42}, .command = "npm install", .cwd = "/mnt/working"});
  seeds.Host("exec_full", Exec{.id = {42},
                               .argv = {"make", "-j\xff", ""},
                               .env = {{"LANG", "C"}, {"RAW", "\xfe"}},
                               .cwd = "/p",
                               .pty = TerminalSize{50, 132},
                               .takes_input = true,
                               .timeout = 1500ms,
                               .grace = 0ms});
  seeds.Host("exec_two_programs", Exec{.id = {1}, .command = "a", .argv = {"b"}});
  seeds.Host("exec_no_program", Exec{.id = {1}});
  seeds.Host("exec_empty_program", Exec{.id = {1}, .argv = {""}});
  seeds.Host("exec_nul", Exec{.id = {1}, .command = std::string("a\0b", 3)});
  seeds.Host("exec_relative", Exec{.id = {1}, .command = "a", .cwd = "src"});
  seeds.Host("exec_env_name", Exec{.id = {1}, .command = "a", .env = {{"A=B", "x"}}});
  seeds.Host("exec_many_arguments",
             Exec{.id = {1}, .argv = std::vector<std::string>(kMaxArguments + 1, "")});
  Exec crowded{.id = {1}, .command = "a"};
  for (size_t i = 0; i <= kMaxEnvEntries; ++i) crowded.env.push_back({fmt::format("{:x}", i), ""});
  seeds.Host("exec_many_entries", crowded);
  seeds.Host("cancel", Cancel{{7}});
  seeds.Host("rollback_notify", RollbackNotify{{-3}});
  seeds.Host("input", Input{.id = {7}, .data = "ls\n"});
  seeds.Host("input_eof", Input{.id = {7}, .data = "\xff", .eof = true});
  seeds.Host("resize", Resize{{7}, {40, 100}});
  seeds.Host("signal", Signal{{7}, 2});
  seeds.Host("signal_none", Signal{{7}, 65});
  seeds.Host("ack", Ack{{7}, 65536});
}

void AddShimMessages(Seeds& seeds) {
  seeds.Shim("ready", Ready{});
  seeds.Shim("step_started", StepStarted{{42}});
  seeds.Shim("output", Output{.id = {42}, .data = "added 150 packages in 3s\n"});
  seeds.Shim("output_bytes",
             Output{.id = {42}, .stream = Stream::kStderr, .data = std::string("\0\xff\x1b", 3)});
  seeds.Shim("step_completed", StepCompleted{.id = {42}});
  seeds.Shim("step_completed_full", StepCompleted{.id = {42},
                                                  .exit_code = 137,
                                                  .signal = 9,
                                                  .timed_out = true,
                                                  .error = "no such program"});
  seeds.Shim("step_completed_code", StepCompleted{.id = {42}, .exit_code = 256});
  seeds.Shim("ack", Ack{{42}, 1});
  seeds.Shim("problem", Problem{.id = StepId{42}, .message = "no terminal"});
}

void AddWrongLines(Seeds& seeds) {
  const std::pair<std::string_view, std::string_view> lines[] = {
      {"cut", R"({"type":"cancel","id":1)"},
      {"array", "[1,2]"},
      {"no_type", "{\"id\":1}"},
      {"number_type", R"({"type":7})"},
      {"unknown_type", R"({"type":"dance\u0000 with a rather long name, longer than shown"})"},
      {"no_id", R"({"type":"cancel"})"},
      {"text_id", R"({"type":"cancel","id":"1"})"},
      {"real_id", R"({"type":"cancel","id":1.5})"},
      {"large_id", R"({"type":"cancel","id":18446744073709551615})"},
      {"null_id", R"({"type":"cancel","id":null})"},
      {"argv_text", R"({"type":"exec","id":1,"argv":"a"})"},
      {"argv_number", R"({"type":"exec","id":1,"argv":["a",1]})"},
      {"env_array", R"({"type":"exec","id":1,"command":"a","env":[]})"},
      {"env_number", R"({"type":"exec","id":1,"command":"a","env":{"A":1}})"},
      {"pty_flag", R"({"type":"exec","id":1,"command":"a","pty":true})"},
      {"pty_half", R"({"type":"exec","id":1,"command":"a","pty":{"rows":1}})"},
      {"input_number", R"({"type":"exec","id":1,"command":"a","input":1})"},
      {"timeout_large", R"({"type":"exec","id":1,"command":"a","timeout_ms":1e3})"},
      {"no_base64", R"({"type":"input","id":1,"data":{"base64":"?"}})"},
      {"escapes", R"({"type":"input","id":1,"data":"\ud83d\ude00\u001b\/"})"},
  };
  for (const auto& [name, line] : lines) {
    seeds.Add(fmt::format("wrong_{}", name), ControlInput::kHostLine, line);
  }
  seeds.Add("wrong_stream", ControlInput::kShimLine,
            R"({"type":"output","id":1,"stream":"stdin","data":""})");
  seeds.Add("wrong_long_stream", ControlInput::kShimLine,
            R"({"type":"output","id":1,"stream":"standard","data":""})");
  seeds.Add("wrong_deep", ControlInput::kShimLine, std::string(100, '['));
}

void AddStreams(Seeds& seeds) {
  const std::string long_line(kStreamLineBytes + 40, 'x');
  const std::string exact(kStreamLineBytes, 'y');
  seeds.Add("stream_lines", ControlInput::kStream, "\x02one\ntwo\n\nthree\nfo");
  seeds.Add("stream_merged", ControlInput::kStream, "\xffone\ntwo\n\nthree\nfo");
  seeds.Add("stream_long", ControlInput::kStream, "\x07" + long_line + "\n" + exact + "\nnext\n");
  seeds.Add("stream_long_merged", ControlInput::kStream, "\xff" + long_line + "\nnext\n");
  seeds.Add("stream_long_cut", ControlInput::kStream, "\x10" + long_line);
}

void AddSessions(Seeds& seeds) {
  const auto say = [](std::initializer_list<ShimMessage> messages) {
    std::string bytes = "\x20";
    for (const ShimMessage& message : messages) bytes += Encode(message) + '\n';
    return bytes;
  };
  const Output output{.id = {1}, .data = "hello"};
  const StepCompleted ended{.id = {1}, .exit_code = 1};
  seeds.Add("session", ControlInput::kSession,
            say({Ready{}, StepStarted{{1}}, output, Ack{{1}, 4}, StepStarted{{2}}, ended,
                 StepCompleted{.id = {2}, .exit_code = 139, .signal = 11}}));
  seeds.Add("session_violations", ControlInput::kSession,
            say({output, ended, StepStarted{{1}}, StepStarted{{1}}, Ack{{1}, 11}, ended, ended,
                 StepStarted{{3}}, Ready{}, Ready{}, Problem{.message = "help"}}));
  seeds.Add("session_version", ControlInput::kSession,
            say({Ready{.version = 2}, StepStarted{{1}}}));
  seeds.Add("session_nonsense", ControlInput::kSession, "\x05nonsense\n{}\n{\n");
}

Status Write(const Seeds& seeds, const char* folder) {
  const Fd dir(::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const Seed& seed : seeds.all())
    TRY(ReplaceFileAt(dir.get(), seed.name.c_str(), seed.content));
  return Ok();
}

}  // namespace
}  // namespace sandglass::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_control_channel_corpus <folder>\n", stderr);
    return 2;
  }
  sandglass::fuzz::Seeds seeds;
  sandglass::fuzz::AddHostMessages(seeds);
  sandglass::fuzz::AddShimMessages(seeds);
  sandglass::fuzz::AddWrongLines(seeds);
  sandglass::fuzz::AddStreams(seeds);
  sandglass::fuzz::AddSessions(seeds);
  const sandglass::Status written = sandglass::fuzz::Write(seeds, argv[1]);
  if (written.ok()) return 0;
  std::fprintf(stderr, "%s\n", written.error().ToString().c_str());
  return 1;
}

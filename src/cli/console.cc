#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/io.h"
#include "base/printable.h"

namespace sandglass::cli {
namespace {

// One line without its end; nullopt: there is no more. Byte by byte, so that nothing behind it is
// taken from a later reader.
std::optional<std::string> ReadLine(int fd) {
  std::string line;
  char byte = 0;
  while (true) {
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    if (byte == '\n') return line;
    line += byte;
  }
}

}  // namespace

bool Console::out_is_terminal() const { return ::isatty(streams_.out) == 1; }

bool Console::err_is_for_people() const {
  return ::isatty(streams_.err) == 1 && !log_.enabled(LogLevel::kError);
}

void Console::Note(std::string_view text, std::optional<StepId> step) const {
  if (log_.enabled(LogLevel::kError)) return (step ? log_.WithStep(*step) : log_).Warn(text);
  (void)WriteFully(streams_.err, AsBytes(fmt::format("sandglass: {}\n", PrintableText(text))));
}

Result<bool> Console::Confirm(std::string_view question) const {
  if (!can_ask()) {
    return Error(Code::kInvalid, "nobody can be asked here; give --yes if you are sure");
  }
  while (true) {
    TRY(WriteFully(streams_.err, AsBytes(fmt::format("{} [y/N] ", question))));
    const auto answer = ReadLine(streams_.in);
    if (!answer || answer->empty() || *answer == "n" || *answer == "no") return false;
    if (*answer == "y" || *answer == "yes") return true;
  }
}

bool Console::can_ask() const { return ::isatty(streams_.in) == 1 && ::isatty(streams_.err) == 1; }

Result<char> Console::Choose(std::string_view question, std::string_view letters,
                             char otherwise) const {
  if (!can_ask()) return Error(Code::kInvalid, "nobody can be asked here");
  while (true) {
    TRY(WriteFully(streams_.err, AsBytes(fmt::format("{} ", question))));
    const auto answer = ReadLine(streams_.in);
    if (!answer) return otherwise;
    if (answer->size() == 1 && letters.find(answer->front()) != letters.npos)
      return answer->front();
    TRY(WriteFully(streams_.err, AsBytes("please answer with one of the letters in brackets\n")));
  }
}

Json Console::ErrorToJson(const Error& error) const {
  Json details = Json::Object({{"code", CodeName(error.code())}, {"message", error.message()}});
  for (const JsonMember& member : *error_details_.AsObject()) details.Set(member.key, member.value);
  return Json::Object({{"error", std::move(details)}});
}

void Console::Fail(const Error& error) {
  if (log_.enabled(LogLevel::kError))
    log_.Error(error.message(), {{"code", CodeName(error.code())}});
  else
    Note(error.message());
  if (keeps_output_) return;
  out_.clear();
  if (wants_json()) PrintJson(ErrorToJson(error));
}

Status Console::Flush() {
  const std::string out = std::exchange(out_, {});
  auto written = WriteFully(streams_.out, AsBytes(out));
  if (!written.ok()) return written.error().WithContext("write the output");
  return Ok();
}

}  // namespace sandglass::cli

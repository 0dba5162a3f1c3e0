#include "api/mcp/tool_texts.h"

#include <fmt/format.h>

#include <algorithm>

namespace sandglass::api::mcp {
namespace {

constexpr size_t kShownPaths = 20;

// A name or a text, also one that is no UTF-8.
std::string Text(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  if (member == nullptr) return "";
  const auto bytes = BytesFromJson(*member);
  return bytes.ok() ? *bytes : "";
}

int64_t Number(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  return member != nullptr ? member->AsInt().value_or(0) : 0;
}

std::optional<int64_t> NumberIfAny(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  return member != nullptr ? member->AsInt() : std::nullopt;
}

bool IsTrue(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  return member != nullptr && member->AsBool().value_or(false);
}

const Json::Items& ItemsOf(const Json& object, std::string_view key) {
  static const Json::Items kNone;
  const Json* member = object.Find(key);
  return member != nullptr && member->AsArray() != nullptr ? *member->AsArray() : kNone;
}

// "1 created, 2 modified", or "nothing changed".
std::string CountsText(const Json& counts) {
  std::string text;
  for (const char* key : {"created", "modified", "deleted", "renamed"}) {
    const int64_t number = Number(counts, key);
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, key);
  }
  return text.empty() ? "nothing changed" : text;
}

void AppendWarnings(std::string& text, const Json& result) {
  for (const Json& warning : ItemsOf(result, "warnings")) {
    if (warning.AsString() != nullptr) text += fmt::format("warning: {}\n", *warning.AsString());
  }
}

void AppendStream(std::string& text, std::string_view name, const std::string& output) {
  if (output.empty()) return;
  text += fmt::format("{}:\n{}", name, output);
  if (output.back() != '\n') text += '\n';
}

std::string EndingText(const Json& result) {
  const std::string ending = Text(result, "ending");
  const std::string message = Text(result, "message");
  if (ending == "exited") return fmt::format("exit code {}", Number(result, "exit_code"));
  std::string text = fmt::format("{}, exit code {}", ending, Number(result, "exit_code"));
  return message.empty() ? text : fmt::format("{}: {}", text, message);
}

std::string StepText(const Json& result) {
  const auto& directories = ItemsOf(result, "directories");
  const Json* counts = directories.empty() ? nullptr : directories[0].Find("counts");
  std::string text = fmt::format("step {}: {}", Number(result, "step_id"),
                                 counts != nullptr ? CountsText(*counts) : "nothing changed");
  const auto& paths = ItemsOf(result, "affected_paths");
  for (size_t i = 0; i < std::min(paths.size(), kShownPaths); ++i) {
    const auto path = BytesFromJson(paths[i]);
    if (path.ok()) text += fmt::format("{}{}", i == 0 ? " (" : ", ", *path);
  }
  if (paths.size() > kShownPaths) text += ", ...";
  return paths.empty() ? text : text + ")";
}

std::string ChangesText(const Json& result) {
  std::string text;
  const auto& changes = ItemsOf(result, "changes");
  for (size_t i = 0; i < std::min(changes.size(), kShownPaths); ++i)
    text += fmt::format("  {} {}\n", Text(changes[i], "change"), Text(changes[i], "path"));
  const int64_t total = Number(result, "total_changes");
  if (total > static_cast<int64_t>(kShownPaths))
    text += fmt::format("  and {} more\n", total - static_cast<int64_t>(kShownPaths));
  AppendWarnings(text, result);
  return text;
}

std::string StepList(const Json& result) {
  std::string text;
  for (const Json& step : ItemsOf(result, "steps"))
    text += fmt::format("{}{}", text.empty() ? "" : ", ", step.AsInt().value_or(0));
  return text;
}

}  // namespace

std::string CommandText(const Json& result) {
  std::string text = fmt::format("{}; {}\n", EndingText(result), StepText(result));
  AppendStream(text, "stdout", Text(result, "stdout"));
  AppendStream(text, "stderr", Text(result, "stderr"));
  if (const int64_t left_out = Number(result, "left_out_bytes"); left_out > 0)
    text += fmt::format(
        "note: {} bytes of output were left out. To see them, run the command with its output in a "
        "file (COMMAND > output.txt 2>&1) and read parts of that with read_file or grep.\n",
        left_out);
  AppendWarnings(text, result);
  return text;
}

std::string ReadText(const Json& result) {
  std::string text = Text(result, "content");
  if (Text(result, "encoding") == "base64") text = "(bytes that are no text, in base64)\n" + text;
  const auto line = NumberIfAny(result, "next_line");
  const auto offset = NumberIfAny(result, "next_offset");
  if (line) return fmt::format("{}\n[more follows: first_line {}]\n", text, *line);
  if (offset)
    return fmt::format("{}\n[more follows: offset {} of {} bytes]\n", text, *offset,
                       Number(result, "size"));
  return text;
}

std::string WrittenText(const Json& result) {
  return fmt::format("wrote {} bytes to {}; step {}, which undo takes back\n",
                     Number(result, "size"), Text(result, "path"), Number(result, "step_id"));
}

std::string EditedText(const Json& result) {
  const int64_t places = Number(result, "replaced");
  return fmt::format("replaced {} place{} in {}, the first in line {}; step {}\n", places,
                     places == 1 ? "" : "s", Text(result, "path"), Number(result, "first_line"),
                     Number(result, "step_id"));
}

std::string ListingText(const Json& result) {
  std::string text;
  const auto& entries = ItemsOf(result, "entries");
  for (const Json& entry : entries) {
    const std::string type = Text(entry, "type");
    text += Text(entry, "name");
    if (type == "directory")
      text += "/";
    else if (type == "symlink")
      text += " -> " + Text(entry, "target");
    else
      text += fmt::format("  {} bytes", Number(entry, "size"));
    text += '\n';
  }
  const int64_t total = Number(result, "total");
  if (static_cast<int64_t>(entries.size()) < total)
    text += fmt::format("[{} of {} entries; offset leads to more]\n", entries.size(), total);
  return text.empty() ? "the folder is empty\n" : text;
}

std::string GlobText(const Json& result) {
  std::string text;
  const auto& matches = ItemsOf(result, "matches");
  for (const Json& match : matches) text += Text(match, "path") + '\n';
  const int64_t total = Number(result, "total");
  if (static_cast<int64_t>(matches.size()) < total)
    text += fmt::format("[{} of {} files; offset leads to more]\n", matches.size(), total);
  return text.empty() ? "no file matches\n" : text;
}

std::string GrepText(const Json& result) {
  std::string text;
  for (const Json& file : ItemsOf(result, "files")) {
    const std::string path = Text(file, "path");
    if (file.Find("lines") == nullptr)
      text += fmt::format("{}: {}\n", path, Number(file, "matches"));
    for (const Json& line : ItemsOf(file, "lines"))
      text +=
          fmt::format("{}{}{}{}{}\n", path, IsTrue(line, "match") ? ":" : "-", Number(line, "line"),
                      IsTrue(line, "match") ? ":" : "-", Text(line, "text"));
  }
  const Json* next = result.Find("next");
  if (next != nullptr && !next->is_null())
    text += fmt::format("[more follows: cursor {}]\n", WriteJson(*next));
  return text.empty() ? "nothing matches\n" : text;
}

std::string UndoText(const Json& result) {
  return fmt::format("taken back: step {}; redo brings it again\n{}", StepList(result),
                     ChangesText(result));
}

std::string RedoText(const Json& result) {
  return fmt::format("done again: step {}\n{}", StepList(result), ChangesText(result));
}

std::string HistoryText(const Json& result) {
  std::string text;
  for (const Json& entry : ItemsOf(result, "steps")) {
    if (Text(entry, "type") == "barrier") {
      text += fmt::format("-- edits by somebody else, which undo does not cross: {}\n",
                          WriteJson(*entry.Find("affected_paths")));
      continue;
    }
    const Json* counts = entry.Find("counts");
    text += fmt::format("step {} ({}, {}): {} [{}]{}\n", Number(entry, "step_id"),
                        Text(entry, "type"), Text(entry, "timestamp"), Text(entry, "command"),
                        counts != nullptr ? CountsText(*counts) : "",
                        IsTrue(entry, "protected") ? "" : " cannot be undone exactly");
  }
  if (text.empty()) text = "no steps yet\n";
  return text + fmt::format("{} entries, oldest first; {} can be redone\n", Number(result, "total"),
                            Number(result, "redo_steps"));
}

std::string DiffText(const Json& result) {
  std::string text = Text(result, "diff");
  if (text.empty()) text = "the step changed no content\n";
  if (const auto next = NumberIfAny(result, "next_offset"))
    text += fmt::format("[more follows: offset {}]\n", *next);
  return text;
}

std::string StatusText(const Json& result) {
  const std::string state = Text(result, "state");
  if (state == "stopped") return "stopped: the first tool that needs the world starts it\n";
  std::string text = fmt::format("{}; network: {}\n", state, Text(result, "network_policy"));
  for (const Json& directory : ItemsOf(result, "working_directories"))
    text += fmt::format("project: {}\n", Text(directory, "path"));
  if (const Json* command = result.Find("command"))
    text += fmt::format("runs: {}\n", Text(*command, "command"));
  return text;
}

// --- Failures

namespace {

std::string_view ConflictAdvice(std::string_view operation) {
  if (operation == "fs.edit")
    return "Read the file again, and give more of the text around the place, or replace_all.";
  return "Nothing was changed: somebody else edited these paths, and that work would be lost. Tell "
         "the user, who can look and run `sandglass undo --force` outside; no tool can force it.";
}

std::string_view NotFoundAdvice(std::string_view operation) {
  if (operation.starts_with("undo.")) return "get_undo_history lists the steps that there are.";
  if (operation.starts_with("fs.")) return "list_directory, glob and grep show what there is.";
  return "";
}

// What to do, where the message of the table speaks to programs, or to nobody.
std::string_view Advice(std::string_view operation, ApiCode code) {
  switch (code) {
    case ApiCode::kConflict:
      return ConflictAdvice(operation);
    case ApiCode::kNotFound:
      return NotFoundAdvice(operation);
    case ApiCode::kCommandRunning:
      return "Wait for the result of that execute_command, or cancel it.";
    case ApiCode::kBusy:
      return "Processes that a command left behind are in the way: end them with execute_command, "
             "then try again.";
    case ApiCode::kUnprotected:
    case ApiCode::kNotRestorable:
      return "It cannot be done exactly, so nothing was changed. Tell the user, who can decide "
             "outside; no tool can force it.";
    case ApiCode::kOutsideRoot:
      return "Only paths inside the project can be used.";
    case ApiCode::kDenied:
      return "Do not try to get around it; tell the user.";
    case ApiCode::kLocked:
      return "Another session has this project. Ask the user to end it.";
    case ApiCode::kUndoUnavailable:
    case ApiCode::kVersion:
      return "Ask the user to run `sandglass discard` in the project, which forgets its old "
             "history, and to start this server again.";
    case ApiCode::kSessionLost:
      return "Call the tool again: that starts a new world. What the last command had begun was "
             "taken back.";
    case ApiCode::kNoSpace:
      return "Free some space, or ask the user to.";
    case ApiCode::kParseError:
    case ApiCode::kTooLong:
    case ApiCode::kInvalidRequest:
    case ApiCode::kInvalidArgument:
    case ApiCode::kUnknownOperation:
    case ApiCode::kUnsupportedProtocol:
    case ApiCode::kUnsupported:
    case ApiCode::kNotStarted:
    case ApiCode::kAlreadyStarted:
    case ApiCode::kNoCommand:
    case ApiCode::kShuttingDown:
    case ApiCode::kExists:
    case ApiCode::kCorrupt:
    case ApiCode::kLimit:
    case ApiCode::kFailed:
    case ApiCode::kCancelled:
    case ApiCode::kForeign:
      return "";
  }
  return "";
}

}  // namespace

std::string FailureText(std::string_view operation, const ApiError& error) {
  std::string text = fmt::format("failed ({}): {}\n", NameOf(error.code), error.message);
  const auto& conflicts = ItemsOf(error.data, "conflicts");
  for (size_t i = 0; i < std::min(conflicts.size(), kShownPaths); ++i)
    text += fmt::format("  {}: {}\n", Text(conflicts[i], "path"), Text(conflicts[i], "detail"));
  if (const std::string_view advice = Advice(operation, error.code); !advice.empty())
    text += fmt::format("{}\n", advice);
  return text;
}

}  // namespace sandglass::api::mcp

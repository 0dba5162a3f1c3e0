#include "api/mcp/tools.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/mcp/tool_texts.h"
#include "api/shapes.h"

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kExecuteArguments[] = {"command", "cwd", "env", "timeout_ms"};
constexpr std::string_view kReadArguments[] = {"path",   "first_line", "line_count",
                                               "offset", "limit",      "encoding"};
constexpr std::string_view kWriteArguments[] = {"path", "content", "encoding", "create_parents"};
constexpr std::string_view kEditArguments[] = {"path", "old_text", "new_text", "replace_all"};
constexpr std::string_view kListArguments[] = {"path", "limit", "offset"};
constexpr std::string_view kGlobArguments[] = {
    "pattern", "path", "include_hidden", "include_ignored", "order", "limit", "offset"};
constexpr std::string_view kGrepArguments[] = {
    "pattern", "path",           "globs",           "mode",  "literal", "ignore_case", "before",
    "after",   "include_hidden", "include_ignored", "limit", "cursor"};
// No force and no stop_processes: what a person edited, and what still runs, is not a model's to decide about.
constexpr std::string_view kRewindArguments[] = {"count", "dry_run"};
constexpr std::string_view kHistoryArguments[] = {"limit", "offset"};
constexpr std::string_view kDiffArguments[] = {"step_id", "offset", "limit"};

constexpr DefaultArgument kReadDefaults[] = {{"limit", 64 << 10}};
constexpr DefaultArgument kHistoryDefaults[] = {{"limit", 20}};
constexpr DefaultArgument kDiffDefaults[] = {{"limit", 64 << 10}};

constexpr Field kOutputFields[] = {
    {"stdout", &kWords, Need::kRequired, "what is no UTF-8 is replaced"},
    {"stderr", &kWords, Need::kRequired, ""},
    {"left_out_bytes", &kCounter, Need::kRequired, "of a long output, from its middle"},
};

constexpr Tool kTools[] = {
    {.name = "execute_command",
     .title = "Run a command",
     .description =
         "Runs a line for /bin/sh in the project, inside an isolated world without network, and "
         "returns stdout, stderr, the exit code and what changed. Each command is one step: undo "
         "takes back everything that it did to the project's files, exactly. Its input is empty, "
         "so use options that keep programs from asking. Processes that it leaves behind go on. "
         "Of a long output the beginning and the end are returned.",
     .operation = "agent.execute",
     .arguments = kExecuteArguments,
     .text = CommandText,
     .effect = Effect::kChanges,
     .repeated = Repeated::kChangesAgain,
     .more_results = kOutputFields},
    {.name = "read_file",
     .title = "Read a file",
     .description =
         "Reads a file of the project, or a part of it: by lines (first_line, line_count) or by "
         "bytes (offset, limit). At most 64 KiB at once unless limit says more; the answer says "
         "where to go on.",
     .operation = "fs.read",
     .arguments = kReadArguments,
     .text = ReadText,
     .defaults = kReadDefaults},
    {.name = "write_file",
     .title = "Write a file",
     .description =
         "Writes a whole file of the project, or makes it. It is one step that undo takes back. "
         "For a small change of a text use edit_file.",
     .operation = "fs.write",
     .arguments = kWriteArguments,
     .text = WrittenText,
     .effect = Effect::kChanges},
    {.name = "edit_file",
     .title = "Edit a file",
     .description = "Replaces old_text, which must occur exactly once unless replace_all is true, "
                    "by new_text. "
                    "Encoding and line ends stay. It is one step that undo takes back.",
     .operation = "fs.edit",
     .arguments = kEditArguments,
     .text = EditedText,
     .effect = Effect::kChanges,
     .repeated = Repeated::kChangesAgain},
    {.name = "list_directory",
     .title = "List a folder",
     .description = "Lists a folder of the project, by name.",
     .operation = "fs.list",
     .arguments = kListArguments,
     .text = ListingText},
    {.name = "glob",
     .title = "Find files",
     .description =
         "Finds files by a pattern of their paths, such as **/*.py, newest first. Leaves out what "
         ".gitignore names and what is hidden, unless asked for.",
     .operation = "fs.glob",
     .arguments = kGlobArguments,
     .text = GlobText},
    {.name = "grep",
     .title = "Search in files",
     .description =
         "Finds lines by a regular expression (RE2). Leaves out what .gitignore names, hidden and "
         "binary files, unless asked for.",
     .operation = "fs.grep",
     .arguments = kGrepArguments,
     .text = GrepText},
    {.name = "undo",
     .title = "Undo steps",
     .description =
         "Takes back the newest count steps (default 1), newest first. Every execute_command, "
         "write_file and edit_file is one step; those that changed nothing are skipped. All files "
         "are exactly as before, also deleted and renamed ones, modes and times. If somebody else "
         "edited a file in between, that is a conflict: nothing is touched, and a person must "
         "decide; there is no way to force it from here. dry_run only says what would happen. "
         "redo brings back what was undone.",
     .operation = "undo.rollback",
     .arguments = kRewindArguments,
     .text = UndoText,
     .effect = Effect::kChanges,
     .repeated = Repeated::kChangesAgain},
    {.name = "redo",
     .title = "Redo steps",
     .description =
         "Does again what undo took back last, count steps (default 1). Possible until a new step "
         "changes something.",
     .operation = "undo.redo",
     .arguments = kRewindArguments,
     .text = RedoText,
     .effect = Effect::kChanges,
     .repeated = Repeated::kChangesAgain},
    {.name = "get_undo_history",
     .title = "List the steps",
     .description =
         "Lists the steps that can be undone, oldest first, with what each changed, and edits by "
         "others in between, which undo does not cross.",
     .operation = "undo.history",
     .arguments = kHistoryArguments,
     .text = HistoryText,
     .defaults = kHistoryDefaults},
    {.name = "get_step_diff",
     .title = "Show a step",
     .description = "Shows what one step changed, as a unified diff.",
     .operation = "undo.diff",
     .arguments = kDiffArguments,
     .text = DiffText,
     .defaults = kDiffDefaults},
    {.name = "get_session_status",
     .title = "Session status",
     .description =
         "Tells whether the world runs, for which project, and which command runs. Starts nothing.",
     .operation = "session.status",
     .arguments = {},
     .text = StatusText,
     .needs_session = NeedsSession::kNo},
};

const Operation& OperationOf(const Tool& tool) {
  const Operation* operation = FindOperation(tool.operation);
  CHECK(operation != nullptr);
  return *operation;
}

// The members of the operation's request that are offered, in the tool's order.
std::vector<Field> Offered(const Tool& tool) {
  std::vector<Field> fields;
  const auto all = OperationOf(tool).request->fields;
  for (const std::string_view name : tool.arguments) {
    const auto field = std::ranges::find(all, name, &Field::name);
    CHECK(field != all.end());
    fields.push_back(*field);
  }
  return fields;
}

std::vector<Field> Results(const Tool& tool) {
  const auto of_operation = OperationOf(tool).result->fields;
  std::vector<Field> fields(of_operation.begin(), of_operation.end());
  fields.insert(fields.end(), tool.more_results.begin(), tool.more_results.end());
  return fields;
}

Schema ResultSchema(std::span<const Field> fields) {
  return {.kind = SchemaKind::kObject, .fields = fields, .others = OtherMembers::kAllowed};
}

Json Annotations(const Tool& tool) {
  const bool reads = tool.effect == Effect::kReads;
  return Json::Object({{"title", tool.title},
                       {"readOnlyHint", reads},
                       {"destructiveHint", !reads},
                       {"idempotentHint", tool.repeated == Repeated::kChangesNothing},
                       {"openWorldHint", false}});
}

}  // namespace

std::span<const Tool> AllTools() { return kTools; }

const Tool* FindTool(std::string_view name) {
  const auto* found = std::ranges::find(kTools, name, &Tool::name);
  return found == std::end(kTools) ? nullptr : found;
}

Json ToJson(const Tool& tool, const Version& version) {
  const std::vector<Field> offered = Offered(tool), results = Results(tool);
  Json json = Json::Object({{"name", tool.name}});
  if (version.structured == Has::kYes) json.Set("title", tool.title);
  json.Set("description", tool.description);
  json.Set("inputSchema", ToJsonSchema({.kind = SchemaKind::kObject, .fields = offered}));
  if (version.structured == Has::kYes)
    json.Set("outputSchema", ToJsonSchema(ResultSchema(results)));
  if (version.annotations == Has::kYes) json.Set("annotations", Annotations(tool));
  return json;
}

std::optional<Mismatch> FindMismatch(const Tool& tool, const Json& arguments) {
  const std::vector<Field> offered = Offered(tool);
  return api::FindMismatch({.kind = SchemaKind::kObject, .fields = offered}, arguments);
}

std::optional<Mismatch> FindResultMismatch(const Tool& tool, const Json& result) {
  const std::vector<Field> results = Results(tool);
  return api::FindMismatch(ResultSchema(results), result);
}

Json WithDefaults(const Tool& tool, Json arguments) {
  for (const DefaultArgument& argument : tool.defaults) {
    if (arguments.Find(argument.name) == nullptr) arguments.Set(argument.name, argument.value);
  }
  return arguments;
}

std::string_view Instructions() {
  return "Sandglass runs commands in an isolated world without network, on the user's real project "
         "files, and records what they change. Every execute_command, write_file and edit_file is "
         "one step. undo takes back the newest steps exactly, redo brings them again, "
         "get_undo_history lists them and get_step_diff shows one. So try things, look at the "
         "result, and undo what did not work instead of repairing it by hand. Only files of the "
         "project are undone. If undo reports a conflict, a person edited the same files: nothing "
         "was touched; tell the user and do not try to get around it. One command runs at a time; "
         "files can be read and searched meanwhile.";
}

}  // namespace sandglass::api::mcp

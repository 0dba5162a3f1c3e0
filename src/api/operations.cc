#include <algorithm>
#include <array>

#include "api/host.h"
#include "api/limits.h"
#include "api/operation.h"
#include "api/shapes.h"

namespace sandglass::api {
namespace {

// A result may gain members later; a request may not have any that nobody knows.
constexpr Schema Result(std::span<const Field> fields) {
  return {.kind = SchemaKind::kObject, .fields = fields, .others = OtherMembers::kAllowed};
}
constexpr Schema Request(std::span<const Field> fields) {
  return {.kind = SchemaKind::kObject, .fields = fields};
}
constexpr Schema OneOf(std::span<const std::string_view> choices) {
  return {.kind = SchemaKind::kString, .choices = choices};
}
constexpr Schema Bounded(int64_t min, int64_t max) {
  return {.kind = SchemaKind::kInteger, .min = min, .max = max};
}

constexpr Schema kDone = Result({});

// --- protocol

constexpr Schema kVersionNumbers{
    .kind = SchemaKind::kArray, .min = 1, .max = 16, .items = &kNumber};
constexpr Field kNegotiateFields[] = {
    {"versions", &kVersionNumbers, Need::kRequired, "those that the client speaks"},
    {"client", &kWords, Need::kOptional, "its name, for the log"},
};
constexpr Schema kNegotiate = Request(kNegotiateFields);
constexpr Field kNegotiatedFields[] = {
    {"version", &kNumber, Need::kRequired, "the one that is spoken from now on"},
    {"supported", &kVersionNumbers, Need::kRequired, ""},
    {"program", &kWords, Need::kRequired, ""},
    {"program_version", &kWords, Need::kRequired, ""},
    {"operations", &kWordsList, Need::kRequired, "those that work"},
};
constexpr Schema kNegotiated = Result(kNegotiatedFields);

// --- session

constexpr std::string_view kAccessNames[] = {"read_write", "read_only"};
constexpr Schema kAccess = OneOf(kAccessNames);
constexpr Schema kLabel{.kind = SchemaKind::kString, .min = 0, .max = 256};
constexpr Field kWorkingDirectoryFields[] = {
    {"path", &kNamedPath, Need::kRequired, "a folder of this machine"},
    {"label", &kLabel, Need::kOptional, "a name for people, which `directory` takes too"},
    {"access", &kAccess, Need::kOptional, "default: read_write; read_only has no history"},
};
constexpr Schema kWorkingDirectory = Request(kWorkingDirectoryFields);
constexpr Schema kWorkingDirectories{
    .kind = SchemaKind::kArray, .min = 1, .max = kMaxDirectories, .items = &kWorkingDirectory};
constexpr std::string_view kNetworkNames[] = {"disabled", "allowlist", "open"};
constexpr Schema kNetworkPolicy = OneOf(kNetworkNames);
constexpr std::string_view kModeNames[] = {"persistent", "ephemeral"};
constexpr Schema kMode = OneOf(kModeNames);
constexpr std::string_view kWorldNames[] = {"auto", "local", "vm"};
constexpr Schema kWorld = OneOf(kWorldNames);
constexpr std::string_view kExternalNames[] = {"barrier", "warn", "lock"};
constexpr Schema kExternalPolicy = OneOf(kExternalNames);
constexpr Field kStartFields[] = {
    {"working_directories", &kWorkingDirectories, Need::kRequired,
     "1 to 8; commands start in the first"},
    {"network_policy", &kNetworkPolicy, Need::kOptional,
     "default: disabled; the others are not supported yet"},
    {"vm_mode", &kMode, Need::kOptional,
     "default: persistent; ephemeral forgets the world's own files (home, /tmp) at its end"},
    {"world", &kWorld, Need::kOptional, "default: auto; vm is not supported yet"},
    {"external_modifications", &kExternalPolicy, Need::kOptional,
     "what an edit by somebody else becomes; default: as configured, else barrier; lock is "
     "refused, because Linux lets nobody lock others out"},
};
constexpr Schema kStart = Request(kStartFields);

constexpr std::string_view kStateNames[] = {"stopped", "idle", "running", "undo_unavailable",
                                            "error"};
constexpr Schema kState = OneOf(kStateNames);
constexpr Field kShownDirectoryFields[] = {
    {"index", &kCounter, Need::kRequired, ""},
    {"path", &kPath, Need::kRequired, "its real path"},
    {"guest_path", &kPath, Need::kRequired, "where commands see it"},
    {"mount_tag", &kWords, Need::kRequired, ""},
    {"label", &kPath, Need::kRequired, ""},
    {"access", &kAccess, Need::kRequired, ""},
};
constexpr Schema kShownDirectory = Result(kShownDirectoryFields);
constexpr Schema kShownDirectories{.kind = SchemaKind::kArray, .items = &kShownDirectory};
constexpr Field kRunningFields[] = {
    {"request_id", &kWords, Need::kRequired, "of its agent.execute"},
    {"command", &kPath, Need::kRequired, ""},
    {"step_id", &kNumberOrNull, Need::kRequired, ""},
};
constexpr Schema kRunning = Result(kRunningFields);
constexpr Field kStatusFields[] = {
    {"state", &kState, Need::kRequired, ""},
    {"working_directories", &kShownDirectories, Need::kOptional, ""},
    {"world", &kWords, Need::kOptional, ""},
    {"backend", &kWords, Need::kOptional, "how changes reach the working directories"},
    {"vm_mode", &kMode, Need::kOptional, ""},
    {"network_policy", &kNetworkPolicy, Need::kOptional, ""},
    {"notes", &kWordsList, Need::kOptional, "by which means the world is contained and limited"},
    {"command", &kRunning, Need::kOptional, "the one that runs"},
    {"error", &kAnything, Need::kOptional, "why the session is in its error state"},
};
constexpr Schema kStatus = Result(kStatusFields);

// --- agent

constexpr Schema kCommand{
    .kind = SchemaKind::kBytes, .min = 1, .max = static_cast<int64_t>(kMaxCommandBytes)};
constexpr Schema kEnvName{.kind = SchemaKind::kString, .min = 1, .max = 1'024, .without = "="};
constexpr Schema kEnvValue{.kind = SchemaKind::kBytes, .min = 0, .max = 65'536};
constexpr Field kEnvFields[] = {
    {"name", &kEnvName, Need::kRequired, ""},
    {"value", &kEnvValue, Need::kRequired, ""},
};
constexpr Schema kEnvEntry = Request(kEnvFields);
constexpr Schema kEnv{.kind = SchemaKind::kArray, .min = 0, .max = 1'024, .items = &kEnvEntry};
constexpr Schema kTerminalEdge = Bounded(1, 10'000);
constexpr Field kTerminalFields[] = {
    {"rows", &kTerminalEdge, Need::kRequired, ""},
    {"columns", &kTerminalEdge, Need::kRequired, ""},
};
constexpr Schema kTerminal = Request(kTerminalFields);
constexpr Schema kTimeout = Bounded(1, 86'400'000);
constexpr Field kExecuteFields[] = {
    {"command", &kCommand, Need::kRequired, "a line for /bin/sh"},
    kDirectoryField,
    {"cwd", &kPath, Need::kOptional, "where it starts, from the working directory; default: there"},
    {"env", &kEnv, Need::kOptional, "added to the world's environment"},
    {"timeout_ms", &kTimeout, Need::kOptional, "then it is ended"},
    {"pty", &kTerminal, Need::kOptional, "it gets a terminal of this size, and takes input"},
    {"input", &kFlag, Need::kOptional,
     "it gets what agent.input sends; default: its input is empty"},
};
constexpr Schema kExecute = Request(kExecuteFields);
constexpr Field kExecutedFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, ""},
    {"exit_code", &kNumber, Need::kRequired, "as a shell says it: 128+n for signal n"},
    {"ending", &kEnding, Need::kRequired, ""},
    {"command_class", &kCommandClass, Need::kOptional,
     "what its words look like; to be shown, and nothing to rely on"},
    {"signal", &kNumberOrNull, Need::kRequired, ""},
    {"message", &kWordsOrNull, Need::kRequired, "why it could not be started"},
    {"affected_paths", &kPathList, Need::kRequired, "as in event.step_completed"},
    {"directories", &kDirectorySteps, Need::kRequired, ""},
    {"warnings", &kWordsList, Need::kRequired, ""},
};
constexpr Schema kExecuted = Result(kExecutedFields);
constexpr Schema kInputData{.kind = SchemaKind::kBlob, .min = 0, .max = 524'288};
constexpr Field kInputFields[] = {
    {"data", &kInputData, Need::kOptional, "bytes that are no UTF-8 as {\"base64\": \"...\"}"},
    {"eof", &kFlag, Need::kOptional, "nothing follows; a terminal wants \"\\u0004\" instead"},
};
constexpr Schema kInput = Request(kInputFields);
constexpr Schema kPrompt{.kind = SchemaKind::kText, .min = 1, .max = 524'288};
constexpr Field kPromptFields[] = {
    {"prompt", &kPrompt, Need::kRequired,
     "the input of the agent's command, or what stands for {prompt} in its words"},
    kDirectoryField,
    {"timeout_ms", &kTimeout, Need::kOptional, "then it is ended"},
};
constexpr Schema kPromptRequest = Request(kPromptFields);

// --- undo

constexpr Schema kRewindCount = Bounded(1, 1'000'000);
constexpr Field kForceField{
    "force", &kFlag, Need::kOptional,
    "go on in spite of conflicts; what is replaced is kept for redo, until the next step"};
constexpr Field kDryRunField{"dry_run", &kFlag, Need::kOptional,
                             "only say what would change and which conflicts there are"};
constexpr Field kStopField{"stop_processes", &kFlag, Need::kOptional,
                           "end what is in the way first, also the command that runs"};
constexpr Field kRewindFields[] = {
    {"count", &kRewindCount, Need::kOptional, "how many steps; default: 1"},
    kForceField,
    kDryRunField,
    kStopField,
    kDirectoryField,
};
constexpr Schema kRewind = Request(kRewindFields);
constexpr Schema kStepNumbers{.kind = SchemaKind::kArray, .items = &kStepNumber};
constexpr Field kRewoundFields[] = {
    {"steps", &kStepNumbers, Need::kRequired,
     "in the order in which they were taken back or redone"},
    {"changes", &kChanges, Need::kRequired, "the first 1000"},
    {"total_changes", &kCounter, Need::kRequired, ""},
    {"conflicts", &kAnything, Need::kRequired, "crossed by force, or kept as a person left them"},
    {"kept", &kPathList, Need::kRequired,
     "folders that stay because they hold something unrecorded"},
    {"warnings", &kWordsList, Need::kRequired, ""},
};
constexpr Schema kRewound = Result(kRewoundFields);
constexpr Schema kRestoredPaths{
    .kind = SchemaKind::kArray, .min = 1, .max = 10'000, .items = &kPath};
constexpr Field kRestoreFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, "to what was there before this step"},
    {"paths", &kRestoredPaths, Need::kRequired, "folders with all below"},
    kForceField,
    kDryRunField,
    kStopField,
    kDirectoryField,
};
constexpr Schema kRestore = Request(kRestoreFields);

constexpr Schema kPageSize = Bounded(1, 1'000);
constexpr Field kOffsetField{"offset", &kOffset, Need::kOptional, "skip so many; default: 0"};
constexpr Field kHistoryFields[] = {
    {"limit", &kPageSize, Need::kOptional, "at most so many entries; default: 50"},
    {"offset", &kOffset, Need::kOptional, "skip so many of the newest"},
    kDirectoryField,
};
constexpr Schema kHistoryRequest = Request(kHistoryFields);
constexpr std::string_view kEntryNames[] = {"command", "api", "ambient", "barrier"};
constexpr Schema kEntryType = OneOf(kEntryNames);
constexpr Field kEntryFields[] = {
    {"type", &kEntryType, Need::kRequired, "a barrier is an edit by somebody else"},
    {"timestamp", &kWords, Need::kRequired, "when it ended or was noticed"},
    {"affected_paths", &kPathList, Need::kRequired, "the first 20 of a step"},
    {"step_id", &kStepNumber, Need::kOptional, "of a step"},
    {"command", &kPath, Need::kOptional, "of a step"},
    {"counts", &kCounts, Need::kOptional, "of a step"},
    {"protected", &kFlag, Need::kOptional, "of a step: it can be undone exactly"},
    {"after_step", &kStepNumber, Need::kOptional, "of a barrier"},
    {"blocks_rollback", &kFlag, Need::kOptional, "of a barrier"},
};
constexpr Schema kEntry = Result(kEntryFields);
constexpr Schema kEntries{.kind = SchemaKind::kArray, .items = &kEntry};
constexpr Field kHistoryResultFields[] = {
    {"steps", &kEntries, Need::kRequired, "oldest first"},
    {"total", &kCounter, Need::kRequired, ""},
    {"redo_steps", &kCounter, Need::kRequired, "how many can be redone"},
};
constexpr Schema kHistory = Result(kHistoryResultFields);

constexpr Field kChangesFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, ""},
    {"limit", &kPageSize, Need::kOptional, "default: 1000"},
    kOffsetField,
    kDirectoryField,
};
constexpr Schema kChangesRequest = Request(kChangesFields);
constexpr Field kChangesResultFields[] = {
    {"changes", &kChanges, Need::kRequired, ""},
    {"total", &kCounter, Need::kRequired, ""},
};
constexpr Schema kChangesResult = Result(kChangesResultFields);

constexpr Schema kDiffLimit = Bounded(1, 524'288);
constexpr Field kDiffFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, ""},
    {"offset", &kOffset, Need::kOptional, "of its bytes: `next_offset` of the answer before"},
    {"limit", &kDiffLimit, Need::kOptional, "at most so many bytes; default: 512 KiB"},
    kDirectoryField,
};
constexpr Schema kDiffRequest = Request(kDiffFields);
constexpr Schema kDiffText{.kind = SchemaKind::kBlob};
constexpr Field kDiffResultFields[] = {
    {"diff", &kDiffText, Need::kRequired, "a unified diff, at most 512 KiB of it"},
    {"total_bytes", &kCounter, Need::kRequired, ""},
    {"next_offset", &kNumberOrNull, Need::kRequired, "null: that was all"},
    {"missing", &kAnything, Need::kRequired, "paths of which nobody can tell any more"},
};
constexpr Schema kDiff = Result(kDiffResultFields);

constexpr Schema kByteLimit = Bounded(1, int64_t{1} << 50);
constexpr Schema kStepLimit = Bounded(1, 1'000'000);
constexpr Field kConfigureFields[] = {
    {"max_log_size_bytes", &kByteLimit, Need::kOptional,
     "of all steps together; default: as configured, else 1 GiB"},
    {"max_step_count", &kStepLimit, Need::kOptional, "default: as configured, else 100"},
    {"max_single_step_size_bytes", &kByteLimit, Need::kOptional,
     "default: as configured, else 200 MiB"},
};
constexpr Schema kConfigure = Request(kConfigureFields);

// --- fs

constexpr Field kListFields[] = {
    {"path", &kPath, Need::kOptional, "a folder, from the working directory; default: itself"},
    {"limit", &kPageSize, Need::kOptional, "default: 1000"},
    kOffsetField,
    kDirectoryField,
};
constexpr Schema kList = Request(kListFields);
constexpr std::string_view kTypeNames[] = {"file", "directory", "symlink",
                                           "fifo", "socket",    "device"};
constexpr Schema kType = OneOf(kTypeNames);
constexpr Field kListedFields[] = {
    {"name", &kPath, Need::kRequired, ""},
    {"type", &kType, Need::kRequired, ""},
    {"size", &kCounter, Need::kRequired, "bytes"},
    {"mode", &kWords, Need::kRequired, "octal"},
    {"modified", &kWords, Need::kRequired, ""},
    {"target", &kPath, Need::kOptional, "of a symlink"},
};
constexpr Schema kListed = Result(kListedFields);
constexpr Schema kListedAll{.kind = SchemaKind::kArray, .items = &kListed};
constexpr Field kListResultFields[] = {
    {"path", &kPath, Need::kRequired, ""},
    {"entries", &kListedAll, Need::kRequired, "by name"},
    {"total", &kCounter, Need::kRequired, ""},
};
constexpr Schema kListResult = Result(kListResultFields);

constexpr Schema kReadLimit = Bounded(1, kMaxReadBytes);
constexpr Schema kLineNumber = Bounded(1, int64_t{1} << 50);
constexpr std::string_view kReadEncodingNames[] = {"auto", "utf8", "base64"};
constexpr Schema kReadEncoding = OneOf(kReadEncodingNames);
constexpr Field kReadFields[] = {
    {"path", &kNamedPath, Need::kRequired, "a file, from the working directory"},
    {"offset", &kOffset, Need::kOptional, "of its bytes; default: 0"},
    {"limit", &kReadLimit, Need::kOptional,
     "at most so many bytes; default: 512 KiB, which is the most"},
    {"first_line", &kLineNumber, Need::kOptional,
     "read whole lines from this one on, counted from 1; `offset` does not count then"},
    {"line_count", &kLineNumber, Need::kOptional, "at most so many lines; with first_line"},
    {"encoding", &kReadEncoding, Need::kOptional, "default: auto, which is utf8 where it is that"},
    kDirectoryField,
};
constexpr Schema kRead = Request(kReadFields);
constexpr std::string_view kEncodingNames[] = {"utf8", "base64"};
constexpr Schema kEncoding = OneOf(kEncodingNames);
constexpr Field kReadResultFields[] = {
    {"path", &kPath, Need::kRequired, ""},
    {"content", &kWords, Need::kRequired, ""},
    {"encoding", &kEncoding, Need::kRequired, "of `content`"},
    {"size", &kCounter, Need::kRequired, "of the whole file"},
    {"offset", &kCounter, Need::kRequired, ""},
    {"next_offset", &kNumberOrNull, Need::kRequired, "null: that was all"},
    {"next_line", &kNumberOrNull, Need::kOptional,
     "of a request for lines: where to go on; null: that was all"},
};
constexpr Schema kReadResult = Result(kReadResultFields);
constexpr Field kWriteFields[] = {
    {"path", &kNamedPath, Need::kRequired, "a file, from the working directory"},
    {"content", &kWords, Need::kRequired, "at most 640 KiB"},
    {"encoding", &kEncoding, Need::kOptional, "of `content`; default: utf8"},
    {"create_parents", &kFlag, Need::kOptional, "make folders that are missing; default: false"},
    kDirectoryField,
};
constexpr Schema kWrite = Request(kWriteFields);
constexpr Field kWrittenFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, "undo takes it back"},
    {"path", &kPath, Need::kRequired, ""},
    {"size", &kCounter, Need::kRequired, ""},
};
constexpr Schema kWritten = Result(kWrittenFields);
constexpr Schema kOldText{.kind = SchemaKind::kText, .min = 1, .max = 524'288};
constexpr Schema kNewText{.kind = SchemaKind::kText, .min = 0, .max = 524'288};
constexpr Field kEditFields[] = {
    {"path", &kNamedPath, Need::kRequired, "a text file, from the working directory"},
    {"old_text", &kOldText, Need::kRequired,
     "what to replace, with enough around it to occur once; a line break matches either kind"},
    {"new_text", &kNewText, Need::kRequired, "what to put there"},
    {"replace_all", &kFlag, Need::kOptional,
     "replace each occurrence; default: it must occur exactly once"},
    kDirectoryField,
};
constexpr Schema kEdit = Request(kEditFields);
constexpr Field kEditedFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, "undo takes it back"},
    {"path", &kPath, Need::kRequired, ""},
    {"size", &kCounter, Need::kRequired, "of the file now"},
    {"replaced", &kCounter, Need::kRequired, "how many places"},
    {"first_line", &kCounter, Need::kRequired, "the line of the first one"},
};
constexpr Schema kEdited = Result(kEditedFields);

constexpr Schema kPattern{.kind = SchemaKind::kString, .min = 1, .max = 4'096};
constexpr Field kHiddenField{"include_hidden", &kFlag, Need::kOptional,
                             "also names that begin with a dot; default: false"};
constexpr Field kIgnoredField{"include_ignored", &kFlag, Need::kOptional,
                              "also what .gitignore leaves out; default: false"};
constexpr std::string_view kGlobOrderNames[] = {"newest", "name"};
constexpr Schema kGlobOrder = OneOf(kGlobOrderNames);
constexpr Field kGlobFields[] = {
    {"pattern", &kPattern, Need::kRequired, "such as `**/*.cc` or `src/{a,b}/*.h`"},
    {"path", &kPath, Need::kOptional,
     "the folder that the pattern starts from; default: the working directory"},
    kHiddenField,
    kIgnoredField,
    {"order", &kGlobOrder, Need::kOptional, "default: newest first"},
    {"limit", &kPageSize, Need::kOptional, "default: 250"},
    kOffsetField,
    kDirectoryField,
};
constexpr Schema kGlobRequest = Request(kGlobFields);
constexpr Field kGlobMatchFields[] = {
    {"path", &kPath, Need::kRequired, "from the working directory"},
    {"type", &kType, Need::kRequired, ""},
    {"size", &kCounter, Need::kRequired, "bytes"},
    {"modified", &kWords, Need::kRequired, ""},
};
constexpr Schema kGlobMatch = Result(kGlobMatchFields);
constexpr Schema kGlobMatches{.kind = SchemaKind::kArray, .items = &kGlobMatch};
constexpr Field kGlobResultFields[] = {
    {"matches", &kGlobMatches, Need::kRequired, ""},
    {"total", &kCounter, Need::kRequired, "of all pages"},
};
constexpr Schema kGlobResult = Result(kGlobResultFields);

constexpr std::string_view kGrepModeNames[] = {"content", "files", "count"};
constexpr Schema kGrepMode = OneOf(kGrepModeNames);
constexpr Schema kGlobList{.kind = SchemaKind::kArray, .min = 0, .max = 64, .items = &kPattern};
constexpr Schema kContextLines = Bounded(0, 20);
constexpr Field kGrepCursorFields[] = {
    {"path", &kPath, Need::kRequired, ""},
    {"line", &kCounter, Need::kRequired, ""},
};
constexpr Schema kGrepCursor = Request(kGrepCursorFields);
constexpr const Schema* kGrepCursorForms[] = {&kNull, &kGrepCursor};
constexpr Schema kGrepCursorOrNull{.kind = SchemaKind::kAnyOf, .any_of = kGrepCursorForms};
constexpr Field kGrepFields[] = {
    {"pattern", &kPattern, Need::kRequired, "a regular expression (RE2), matched line by line"},
    {"path", &kPath, Need::kOptional, "a folder or a file; default: the working directory"},
    {"globs", &kGlobList, Need::kOptional,
     "only files that match one of these, and none that begins with `!`"},
    {"mode", &kGrepMode, Need::kOptional,
     "content: the lines; files: only their paths; count: lines per file. Default: content"},
    {"literal", &kFlag, Need::kOptional, "the pattern is plain text; default: false"},
    {"ignore_case", &kFlag, Need::kOptional, "default: false"},
    {"before", &kContextLines, Need::kOptional, "lines of context; default: 0"},
    {"after", &kContextLines, Need::kOptional, "lines of context; default: 0"},
    kHiddenField,
    kIgnoredField,
    {"limit", &kPageSize, Need::kOptional, "matches, or files; default: 250"},
    {"cursor", &kGrepCursor, Need::kOptional, "`next` of the page before"},
    kDirectoryField,
};
constexpr Schema kGrepRequest = Request(kGrepFields);
constexpr Schema kLineText{.kind = SchemaKind::kBlob};
constexpr Field kGrepLineFields[] = {
    {"line", &kCounter, Need::kRequired, "its number, from 1"},
    {"text", &kLineText, Need::kRequired, "at most 500 bytes of it"},
    {"match", &kFlag, Need::kRequired, "false: context"},
};
constexpr Schema kGrepLine = Result(kGrepLineFields);
constexpr Schema kGrepLines{.kind = SchemaKind::kArray, .items = &kGrepLine};
constexpr Field kGrepFileFields[] = {
    {"path", &kPath, Need::kRequired, "from the working directory"},
    {"matches", &kCounter, Need::kRequired, "matching lines, of this page for content"},
    {"lines", &kGrepLines, Need::kOptional, "of mode content"},
};
constexpr Schema kGrepFile = Result(kGrepFileFields);
constexpr Schema kGrepFiles{.kind = SchemaKind::kArray, .items = &kGrepFile};
constexpr Field kGrepResultFields[] = {
    {"files", &kGrepFiles, Need::kRequired, "by path"},
    {"next", &kGrepCursorOrNull, Need::kRequired,
     "give it as `cursor` for the next page; null: that was all"},
};
constexpr Schema kGrepResult = Result(kGrepResultFields);

constexpr Field kFsStatusFields[] = {
    {"backend", &kWords, Need::kRequired, ""},
    {"warnings", &kWordsList, Need::kRequired, "what a file system could not keep as it was"},
};
constexpr Schema kFsStatus = Result(kFsStatusFields);
constexpr Field kOnlyDirectoryFields[] = {kDirectoryField};
constexpr Schema kOnlyDirectory = Request(kOnlyDirectoryFields);

// --- safeguard

constexpr Schema kThreshold = Bounded(1, 1'000'000'000);
constexpr const Schema* kThresholdForms[] = {&kNull, &kThreshold};
constexpr Schema kThresholdOrNull{.kind = SchemaKind::kAnyOf, .any_of = kThresholdForms};
constexpr Schema kSeconds = Bounded(1, 86'400);
constexpr Field kSafeguardFields[] = {
    {"delete_threshold", &kThresholdOrNull, Need::kOptional,
     "ask before so many deletions; null: never"},
    {"overwrite_threshold_bytes", &kThresholdOrNull, Need::kOptional,
     "ask before a file of this size or more is opened for writing or truncated"},
    {"rename_over_threshold", &kThresholdOrNull, Need::kOptional,
     "ask before so many renames over something"},
    {"timeout_seconds", &kSeconds, Need::kOptional, "no answer by then is a denial; default: 30"},
};
constexpr Schema kSafeguard = Request(kSafeguardFields);
constexpr Schema kSafeguardId{.kind = SchemaKind::kString, .min = 1, .max = 64};
constexpr std::string_view kActionNames[] = {"allow", "deny"};
constexpr Schema kAction = OneOf(kActionNames);
constexpr Field kConfirmFields[] = {
    {"safeguard_id", &kSafeguardId, Need::kRequired, "of event.safeguard_triggered"},
    {"action", &kAction, Need::kRequired, ""},
};
constexpr Schema kConfirm = Request(kConfirmFields);

// --- Errors of their own

constexpr ApiCode kNegotiateErrors[] = {ApiCode::kUnsupportedProtocol};
constexpr ApiCode kStartErrors[] = {
    ApiCode::kAlreadyStarted, ApiCode::kUnsupported, ApiCode::kNotFound, ApiCode::kDenied,
    ApiCode::kLocked,         ApiCode::kForeign,     ApiCode::kFailed};
constexpr ApiCode kExecuteErrors[] = {ApiCode::kCommandRunning, ApiCode::kNotFound,
                                      ApiCode::kSessionLost, ApiCode::kDenied, ApiCode::kBusy};
constexpr ApiCode kPromptErrors[] = {ApiCode::kCommandRunning, ApiCode::kNotFound,
                                     ApiCode::kSessionLost,    ApiCode::kDenied,
                                     ApiCode::kBusy,           ApiCode::kUnsupported};
constexpr ApiCode kRunningErrors[] = {ApiCode::kNoCommand};
constexpr ApiCode kInputErrors[] = {ApiCode::kNoCommand, ApiCode::kBusy};
constexpr ApiCode kRewindErrors[] = {ApiCode::kConflict, ApiCode::kBusy,        ApiCode::kNotFound,
                                     ApiCode::kDenied,   ApiCode::kUnprotected, ApiCode::kCorrupt,
                                     ApiCode::kNoSpace};
constexpr ApiCode kStepErrors[] = {ApiCode::kNotFound, ApiCode::kDenied, ApiCode::kCorrupt};
constexpr ApiCode kConfigureErrors[] = {ApiCode::kCommandRunning, ApiCode::kBusy,
                                        ApiCode::kSessionLost};
constexpr ApiCode kDiscardErrors[] = {ApiCode::kConflict, ApiCode::kLocked};
constexpr ApiCode kFileErrors[] = {ApiCode::kNotFound, ApiCode::kOutsideRoot, ApiCode::kDenied,
                                   ApiCode::kUnsupported, ApiCode::kLimit};
constexpr ApiCode kWriteErrors[] = {
    ApiCode::kCommandRunning, ApiCode::kNotFound, ApiCode::kOutsideRoot, ApiCode::kDenied,
    ApiCode::kUnsupported,    ApiCode::kLimit,    ApiCode::kNoSpace,     ApiCode::kNotRestorable};
constexpr ApiCode kEditErrors[] = {
    ApiCode::kCommandRunning, ApiCode::kNotFound, ApiCode::kConflict, ApiCode::kOutsideRoot,
    ApiCode::kDenied,         ApiCode::kLimit,    ApiCode::kNoSpace,  ApiCode::kNotRestorable};
constexpr ApiCode kConfirmErrors[] = {ApiCode::kNotFound};

// What the table calls; a pointer to a member would not let it say which arguments it has.
template <void (Host::*handler)(Call)>
void To(Host& host, Call call) {
  (host.*handler)(std::move(call));
}

constexpr Operation kOperations[] = {
    {"protocol.negotiate", "Agree on a version of the protocol; without it, version 1 is spoken.",
     &kNegotiate, &kNegotiated, kNegotiateErrors, When::kAlways, To<&Host::Negotiate>},
    {"session.start", "Start a session on one or more working directories.", &kStart, &kStatus,
     kStartErrors, When::kAlways, To<&Host::StartSession>},
    {"session.stop",
     "End the session with everything in its world; a running command is ended first.",
     &kNothing,
     &kStatus,
     {},
     When::kAlways,
     To<&Host::StopSession>},
    {"session.reset",
     "Start again in a world that is new; the working directories and their history stay.",
     &kNothing, &kStatus, kStartErrors, When::kStarted, To<&Host::ResetSession>},
    {"session.status",
     "Tell what the session is and does.",
     &kNothing,
     &kStatus,
     {},
     When::kAlways,
     To<&Host::ShowStatus>},
    {"undo.rollback", "Take back the newest steps that changed something.", &kRewind, &kRewound,
     kRewindErrors, When::kReady, To<&Host::Rollback>},
    {"undo.redo", "Do again what was taken back last.", &kRewind, &kRewound, kRewindErrors,
     When::kReady, To<&Host::Redo>},
    {"undo.restore",
     "Bring single paths back to what they were before a step, as a step of its own.", &kRestore,
     &kRewound, kRewindErrors, When::kReady, To<&Host::Restore>},
    {"undo.history", "List the steps of a working directory, and edits by others in between.",
     &kHistoryRequest, &kHistory, kStepErrors, When::kReady, To<&Host::ShowHistory>},
    {"undo.changes", "List all that one step changed.", &kChangesRequest, &kChangesResult,
     kStepErrors, When::kReady, To<&Host::ShowChanges>},
    {"undo.diff", "Show what one step changed, as a unified diff.", &kDiffRequest, &kDiff,
     kStepErrors, When::kReady, To<&Host::ShowDiff>},
    {"undo.configure", "Set the limits of the undo log; also before the session starts.",
     &kConfigure, &kDone, kConfigureErrors, When::kAlways, To<&Host::ConfigureUndo>},
    {"undo.discard",
     "Forget an undo log of another version, after event.undo_version_mismatch, and go on.",
     &kOnlyDirectory, &kStatus, kDiscardErrors, When::kStarted, To<&Host::DiscardUndo>},
    {"agent.execute", "Run a command in the world, as one step; the answer comes at its end.",
     &kExecute, &kExecuted, kExecuteErrors, When::kIdle, To<&Host::Execute>},
    {"agent.cancel",
     "End the running command: SIGTERM, and SIGKILL 5 seconds later. Its agent.execute is answered "
     "as usual.",
     &kNothing, &kDone, kRunningErrors, When::kReady, To<&Host::Cancel>},
    {"agent.input", "Send input to the running command.", &kInput, &kDone, kInputErrors,
     When::kReady, To<&Host::Input>},
    {"agent.resize", "Give the terminal of the running command another size.", &kTerminal, &kDone,
     kRunningErrors, When::kReady, To<&Host::Resize>},
    {"agent.prompt",
     "Run the configured coding agent in the world with a prompt; what it writes is "
     "event.agent_output. It can be cancelled, and is a step, like any command.",
     &kPromptRequest, &kExecuted, kPromptErrors, When::kIdle, To<&Host::Prompt>},
    {"fs.list", "List a folder of a working directory.", &kList, &kListResult, kFileErrors,
     When::kReady, To<&Host::ListFolder>},
    {"fs.read", "Read a file of a working directory, or a part of it.", &kRead, &kReadResult,
     kFileErrors, When::kReady, To<&Host::ReadFile>},
    {"fs.write",
     "Write a file of a working directory, as one step; readers see the old or the new content.",
     &kWrite, &kWritten, kWriteErrors, When::kIdle, To<&Host::WriteFile>},
    {"fs.edit",
     "Replace a piece of a text file, as one step; encoding and line ends stay as they are.",
     &kEdit, &kEdited, kEditErrors, When::kIdle, To<&Host::EditFile>},
    {"fs.glob", "Find files by a pattern of their paths.", &kGlobRequest, &kGlobResult, kFileErrors,
     When::kReady, To<&Host::FindFiles>},
    {"fs.grep", "Find lines of files by a regular expression.", &kGrepRequest, &kGrepResult,
     kFileErrors, When::kReady, To<&Host::SearchFiles>},
    {"fs.status",
     "Tell what the file systems of the working directories cannot represent.",
     &kOnlyDirectory,
     &kFsStatus,
     {},
     When::kReady,
     To<&Host::ShowFileSystems>},
    {"safeguard.configure", "Set when a destructive step must be confirmed.", &kSafeguard, &kDone,
     kConfigureErrors, When::kAlways, To<&Host::ConfigureSafeguards>},
    {"safeguard.confirm", "Answer event.safeguard_triggered.", &kConfirm, &kDone, kConfirmErrors,
     When::kReady, To<&Host::ConfirmSafeguard>},
};

}  // namespace

std::string_view NameOf(When when) {
  switch (when) {
    case When::kAlways:
      return "always";
    case When::kStarted:
      return "started";
    case When::kReady:
      return "ready";
    case When::kIdle:
      return "idle";
  }
  return "";
}

std::span<const Operation> AllOperations() { return kOperations; }

const Operation* FindOperation(std::string_view name) {
  const auto* found = std::ranges::find(kOperations, name, &Operation::name);
  return found == std::end(kOperations) ? nullptr : found;
}

}  // namespace sandglass::api

#include <algorithm>

#include "api/operation.h"
#include "api/shapes.h"

namespace sandglass::api {
namespace {

constexpr Field kRequestIdField{"request_id", &kWords, Need::kOptional,
                                "of the request that it belongs to"};

constexpr Field kStepCompletedFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, ""},
    {"affected_paths", &kPathList, Need::kRequired,
     "the first ones of the first working directory; `undo.changes` has all"},
    {"exit_code", &kNumber, Need::kRequired, "as a shell says it: 128+n for signal n"},
    kRequestIdField,
    {"command", &kWords, Need::kOptional, ""},
    {"ending", &kEnding, Need::kOptional, ""},
    {"command_class", &kCommandClass, Need::kOptional,
     "what its words look like; to be shown, and nothing to rely on"},
    {"directories", &kDirectorySteps, Need::kOptional, "of each that can be written to"},
    {"warnings", &kWordsList, Need::kOptional,
     "what a person should know, also which changes were refused"},
};
constexpr Schema kStepCompleted{
    .kind = SchemaKind::kObject, .fields = kStepCompletedFields, .others = OtherMembers::kAllowed};

constexpr std::string_view kStreams[] = {"stdout", "stderr"};
constexpr Schema kStream{.kind = SchemaKind::kString, .choices = kStreams};
constexpr std::string_view kEncodings[] = {"utf8", "base64"};
constexpr Schema kEncoding{.kind = SchemaKind::kString, .choices = kEncodings};
constexpr Field kTerminalOutputFields[] = {
    {"stream", &kStream, Need::kRequired, "a terminal has only stdout"},
    {"data", &kWords, Need::kRequired, ""},
    {"encoding", &kEncoding, Need::kOptional,
     "of `data`; default: utf8. Bytes that are no UTF-8 come as base64"},
    {"step_id", &kStepNumber, Need::kOptional, ""},
    kRequestIdField,
    {"dropped_bytes", &kCounter, Need::kOptional,
     "so many bytes before these were dropped, because the client did not read"},
};
constexpr Schema kTerminalOutput{
    .kind = SchemaKind::kObject, .fields = kTerminalOutputFields, .others = OtherMembers::kAllowed};

constexpr Field kNoticeFields[] = {
    {"code", &kWords, Need::kRequired, "stable, for programs"},
    {"message", &kWords, Need::kRequired, "for people"},
    {"step_id", &kStepNumber, Need::kOptional, ""},
    kRequestIdField,
};
constexpr Schema kNotice{
    .kind = SchemaKind::kObject, .fields = kNoticeFields, .others = OtherMembers::kAllowed};

constexpr Field kSafeguardFields[] = {
    {"step_id", &kStepNumber, Need::kRequired, ""},
    {"safeguard_id", &kWords, Need::kRequired, "for `safeguard.confirm`"},
    {"delete_count", &kCounter, Need::kOptional, "of kind delete_count"},
    {"sample_paths", &kPathList, Need::kRequired,
     "at most 20; the one that triggered it is the last"},
    {"message", &kWords, Need::kRequired, "for people"},
    {"kind", &kWords, Need::kOptional,
     "delete_count, overwrite_large, truncate_large, rename_over or undo_limit"},
    {"amount", &kCounter, Need::kOptional, "how many, or how many bytes"},
    {"timeout_seconds", &kCounter, Need::kOptional, "no answer by then is a denial"},
};
constexpr Schema kSafeguard{
    .kind = SchemaKind::kObject, .fields = kSafeguardFields, .others = OtherMembers::kAllowed};

constexpr std::string_view kExternalKindNames[] = {"created", "modified", "metadata", "deleted"};
constexpr Schema kExternalKind{.kind = SchemaKind::kString, .choices = kExternalKindNames};
constexpr Schema kExternalKinds{.kind = SchemaKind::kArray, .items = &kExternalKind};
constexpr Field kExternalFields[] = {
    {"directory", &kCounter, Need::kRequired, "the index of the working directory"},
    {"affected_paths", &kPathList, Need::kRequired, "the first of them"},
    {"total_paths", &kCounter, Need::kOptional, "how many there are"},
    {"whole_tree", &kFlag, Need::kOptional,
     "the watcher lost track: anything may have been changed"},
    {"kinds", &kExternalKinds, Need::kOptional, "what was done, as far as it is known"},
    {"after_step", &kNumberOrNull, Need::kOptional,
     "the history has a barrier behind this step; null: it has none, because there is no step to "
     "be undone, or the policy is warn"},
    {"message", &kWords, Need::kOptional, "for people"},
};
constexpr Schema kExternal{
    .kind = SchemaKind::kObject, .fields = kExternalFields, .others = OtherMembers::kAllowed};

constexpr Field kRecoveryFields[] = {
    {"directory", &kCounter, Need::kRequired, "the index of the working directory"},
    {"step_id", &kNumberOrNull, Need::kRequired, "of the step that was rolled back"},
    {"restored_paths", &kCounter, Need::kRequired, "how many paths were put back"},
    {"interrupted_rewind", &kFlag, Need::kRequired, "a killed undo or redo was put right"},
    {"conflicts", &kAnything, Need::kOptional, "what a person changed meanwhile, and was kept"},
    {"message", &kWords, Need::kRequired, "for people"},
};
constexpr Schema kRecovery{
    .kind = SchemaKind::kObject, .fields = kRecoveryFields, .others = OtherMembers::kAllowed};

constexpr Field kVersionFields[] = {
    {"directory", &kCounter, Need::kRequired, "the index of the working directory"},
    {"expected_version", &kCounter, Need::kRequired, ""},
    {"message", &kWords, Need::kRequired, "for people"},
};
constexpr Schema kVersionMismatch{
    .kind = SchemaKind::kObject, .fields = kVersionFields, .others = OtherMembers::kAllowed};

constexpr Event kEvents[] = {
    {"event.step_completed", "A command or an API operation has ended and its step is closed.",
     &kStepCompleted},
    {"event.agent_output", "The coding agent that agent.prompt runs wrote something.",
     &kTerminalOutput},
    {"event.terminal_output", "The running command wrote something.", &kTerminalOutput},
    {"event.warning", "Something that a person should know and that stops nothing.", &kNotice},
    {"event.error", "The session is in an error state; start it again.", &kNotice},
    {"event.safeguard_triggered",
     "A step is about to destroy more than was allowed; it waits for `safeguard.confirm`.",
     &kSafeguard},
    {"event.external_modification",
     "Somebody else changed files in a working directory; undo will not cross that unasked.",
     &kExternal},
    {"event.recovery", "A step that was interrupted by a crash was rolled back at the start.",
     &kRecovery},
    {"event.undo_version_mismatch",
     "The undo log was made by another version; commands are refused until `undo.discard`.",
     &kVersionMismatch},
};

}  // namespace

std::span<const Event> AllEvents() { return kEvents; }

const Event* FindEvent(std::string_view name) {
  const auto* found = std::ranges::find(kEvents, name, &Event::name);
  return found == std::end(kEvents) ? nullptr : found;
}

}  // namespace sandglass::api

// Shapes that the schemas of several operations and events share. Constant data.
#pragma once

#include "api/schema.h"

namespace sandglass::api {

inline constexpr int64_t kMaxPathBytes = 16'384;
inline constexpr int64_t kMaxDirectories = 8;

inline constexpr Schema kNothing{.kind = SchemaKind::kObject};
inline constexpr Schema kAnything{.kind = SchemaKind::kAny};
inline constexpr Schema kNull{.kind = SchemaKind::kNull};
inline constexpr Schema kFlag{.kind = SchemaKind::kBoolean};
inline constexpr Schema kNumber{.kind = SchemaKind::kInteger};
inline constexpr Schema kCounter{.kind = SchemaKind::kInteger, .min = 0};
inline constexpr Schema kStepNumber{.kind = SchemaKind::kInteger,
                                    .help = "negative: of changes that no command made"};
inline constexpr Schema kWords{.kind = SchemaKind::kText};
inline constexpr Schema kWordsList{.kind = SchemaKind::kArray, .items = &kWords};
inline constexpr Schema kPath{.kind = SchemaKind::kBytes, .min = 0, .max = kMaxPathBytes};
inline constexpr Schema kNamedPath{.kind = SchemaKind::kBytes, .min = 1, .max = kMaxPathBytes};
inline constexpr Schema kPathList{.kind = SchemaKind::kArray, .items = &kPath};
inline constexpr Schema kOffset{.kind = SchemaKind::kInteger, .min = 0};

// Which of the session's working directories is meant.
inline constexpr Schema kDirectoryIndex{
    .kind = SchemaKind::kInteger, .min = 0, .max = kMaxDirectories - 1};
inline constexpr const Schema* kDirectoryForms[] = {&kDirectoryIndex, &kNamedPath};
inline constexpr Schema kDirectory{.kind = SchemaKind::kAnyOf, .any_of = kDirectoryForms};
inline constexpr Field kDirectoryField{
    "directory", &kDirectory, Need::kOptional,
    "which working directory: its index, or its path; default: the first"};

inline constexpr Field kCountFields[] = {
    {"created", &kCounter, Need::kRequired, ""},
    {"modified", &kCounter, Need::kRequired, ""},
    {"deleted", &kCounter, Need::kRequired, ""},
    {"renamed", &kCounter, Need::kRequired, ""},
};
inline constexpr Schema kCounts{
    .kind = SchemaKind::kObject, .fields = kCountFields, .others = OtherMembers::kAllowed};

inline constexpr std::string_view kChangeNames[] = {"created", "modified", "deleted", "renamed"};
inline constexpr Schema kChangeName{.kind = SchemaKind::kString, .choices = kChangeNames};
inline constexpr Field kChangeFields[] = {
    {"change", &kChangeName, Need::kRequired, ""},
    {"path", &kPath, Need::kRequired, "from the working directory"},
    {"old_path", &kPath, Need::kOptional, "of what was renamed"},
    {"old_size", &kCounter, Need::kRequired, "bytes"},
    {"new_size", &kCounter, Need::kRequired, "bytes"},
};
inline constexpr Schema kChange{
    .kind = SchemaKind::kObject, .fields = kChangeFields, .others = OtherMembers::kAllowed};
inline constexpr Schema kChanges{.kind = SchemaKind::kArray, .items = &kChange};

// What one step did to one working directory.
inline constexpr Field kDirectoryStepFields[] = {
    {"directory", &kCounter, Need::kRequired, "the index of the working directory"},
    {"affected_paths", &kPathList, Need::kRequired, "the first of them; `undo.changes` has all"},
    {"total_paths", &kCounter, Need::kRequired, "how many there are"},
    {"counts", &kCounts, Need::kRequired, "what became of them"},
};
inline constexpr Schema kDirectoryStep{
    .kind = SchemaKind::kObject, .fields = kDirectoryStepFields, .others = OtherMembers::kAllowed};
inline constexpr Schema kDirectorySteps{.kind = SchemaKind::kArray, .items = &kDirectoryStep};

inline constexpr std::string_view kEndings[] = {"exited",    "signalled",   "timed_out",
                                                "cancelled", "not_started", "lost"};
inline constexpr Schema kEnding{.kind = SchemaKind::kString, .choices = kEndings};
inline constexpr std::string_view kCommandClasses[] = {"read_only", "write", "destructive"};
inline constexpr Schema kCommandClass{.kind = SchemaKind::kString, .choices = kCommandClasses};
inline constexpr const Schema* kNumberOrNullForms[] = {&kNull, &kNumber};
inline constexpr Schema kNumberOrNull{.kind = SchemaKind::kAnyOf, .any_of = kNumberOrNullForms};
inline constexpr const Schema* kWordsOrNullForms[] = {&kNull, &kWords};
inline constexpr Schema kWordsOrNull{.kind = SchemaKind::kAnyOf, .any_of = kWordsOrNullForms};

}  // namespace sandglass::api

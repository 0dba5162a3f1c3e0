// Changing one entry in somebody else's configuration file and not one byte beside it: comments, order, numbers and layout stay as their
// owner wrote them. What cannot be understood for certain is refused. Pure; any thread.
//
// JSON: {"<table>": {"<name>": value}}. TOML: the section [<table>.<name>] with those below it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sandglass::cli {

// Where an entry is.
struct EntryName {
  std::string_view table, name;
};

// The text with the entry, which takes the place of one that is there. "" is an empty file. `value` is JSON over several lines, without
// indentation. kInvalid: the text is no JSON, or has something else in that place; the message says what.
Result<std::string> SetJsonEntry(std::string_view text, const EntryName& entry,
                                 std::string_view value);
// The text without it; that it is missing is success.
Result<std::string> RemoveJsonEntry(std::string_view text, const EntryName& entry);
// What those two would take out, as it is written there; "": nothing.
Result<std::string> FindJsonEntry(std::string_view text, const EntryName& entry);

// The same for TOML; `body` is the lines of the section, without its header.
Result<std::string> SetTomlEntry(std::string_view text, const EntryName& entry,
                                 std::string_view body);
Result<std::string> RemoveTomlEntry(std::string_view text, const EntryName& entry);
Result<std::string> FindTomlEntry(std::string_view text, const EntryName& entry);

}  // namespace sandglass::cli

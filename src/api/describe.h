// The table of operations and events, as JSON and as text: what `sandglass api describe` prints, what schemas/ holds, and the generated
// part of docs/api.md. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sandglass::api {

// Everything in one object.
Json Description();
// For people: one line for each.
std::string DescriptionText();
// Name and content of each file of schemas/.
std::vector<std::pair<std::string, std::string>> SchemaFiles();
// docs/api.md with its generated part made anew; nullopt: it has no place for it.
std::optional<std::string> WithDocumentedTables(std::string_view document);

}  // namespace sandglass::api

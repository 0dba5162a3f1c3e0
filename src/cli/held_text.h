// What a safeguard holds, as text for a person who is to decide. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "session/held_requests.h"

namespace sandglass::cli {

// "step 3 is about to delete 50 files or folders".
std::string HeldSentence(const undo::SafeguardQuestion& question);
// One indented line for each of the first paths, and one that says how many more there are to be seen.
std::string SampleText(const undo::SafeguardQuestion& question, size_t most);
// All of it, for each that is held: its name, the sentence, how long there is to answer, and all sample paths.
std::string HeldText(const std::vector<session::HeldOperation>& held);
Json HeldToJson(const std::vector<session::HeldOperation>& held);

}  // namespace sandglass::cli

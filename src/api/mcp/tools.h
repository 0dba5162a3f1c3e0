// Tool: one thing that a model can do, by an operation of the table (api/operation.h) and nothing else. A row says which members of the
// operation's request a model may give; their schemas, checks and handlers are those of the table. What is left out (force, among others)
// cannot be said at all. Constant data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/mcp/versions.h"
#include "api/operation.h"

namespace sandglass::api::mcp {

enum class Effect : uint8_t { kReads, kChanges };
enum class Repeated : uint8_t { kChangesAgain, kChangesNothing };
// Whether the session is started for it.
enum class NeedsSession : uint8_t { kYes, kNo };

// What an argument is if the model leaves it out, where the table's own default is made for programs.
struct DefaultArgument {
  std::string_view name;
  int64_t value;
};

struct Tool {
  std::string_view name;
  std::string_view title;
  std::string_view description;  // for the model
  std::string_view operation;
  std::span<const std::string_view> arguments;
  std::string (*text)(const Json& result);  // the result as a model reads it
  Effect effect = Effect::kReads;
  Repeated repeated = Repeated::kChangesNothing;
  NeedsSession needs_session = NeedsSession::kYes;
  std::span<const DefaultArgument> defaults = {};
  std::span<const Field> more_results = {};  // beside those of the operation
};

std::span<const Tool> AllTools();
// Null: there is none of that name.
const Tool* FindTool(std::string_view name);

// What a client gets of it.
Json ToJson(const Tool& tool, const Version& version);
// What is wrong with them; nullopt: they fit.
std::optional<Mismatch> FindMismatch(const Tool& tool, const Json& arguments);
// What a result must look like; also for tests.
std::optional<Mismatch> FindResultMismatch(const Tool& tool, const Json& result);
Json WithDefaults(const Tool& tool, Json arguments);

// How undo works, for the model, once per session.
std::string_view Instructions();

}  // namespace sandglass::api::mcp

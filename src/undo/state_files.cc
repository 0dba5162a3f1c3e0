#include "undo/state_files.h"

#include <fmt/format.h>

#include <charconv>

#include "base/hash.h"
#include "base/json.h"

namespace sandglass::undo {
namespace {

constexpr size_t kHexIdChars = 32;
constexpr size_t kHexWordChars = 16;

template <class Int>
std::optional<Int> ParseInt(std::string_view text, int base = 10) {
  Int value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Barrier> ParseBarrier(const Json& item) {
  const auto after = item.GetInt("after_step_id");
  const auto at = item.GetInt("time_ns");
  const Json* paths = item.Find("paths");
  const auto depth = item.GetInt("redo_depth");
  if (!after.ok() || !at.ok() || !depth.ok() || *depth < 0 || *depth > UINT32_MAX ||
      paths == nullptr || paths->AsArray() == nullptr)
    return std::nullopt;
  Barrier barrier{
      .after = {*after}, .at = {*at}, .redo_depth = static_cast<uint32_t>(*depth), .paths = {}};
  for (const Json& path : *paths->AsArray()) {
    if (auto bytes = BytesFromJson(path); bytes.ok()) barrier.paths.push_back(std::move(*bytes));
  }
  return barrier;
}

// The last element of an array: a checksum of all that stands before it. Who does not know it takes it for an entry without fields.
constexpr const char* kChecksumKey = "xxh3";

std::string ChecksumElement(std::string_view before) {
  return fmt::format("{{\"{}\":\"{:016x}\"}}]", kChecksumKey, HashBytes64(AsBytes(before)));
}

bool HasChecksum(std::string_view text) {
  const size_t at = text.rfind('{');
  return at != std::string_view::npos && text.substr(at) == ChecksumElement(text.substr(0, at));
}

Result<std::string> AbsolutePathMember(const Json& json, std::string_view key) {
  const Json* member = json.Find(key);
  if (member == nullptr) return Error(Code::kCorrupt, fmt::format("no {} in the entry", key));
  auto path = BytesFromJson(*member);
  if (!path.ok() || !path->starts_with('/') || path->find('\0') != std::string::npos) {
    return Error(Code::kCorrupt, fmt::format("the entry's {} is no absolute path", key));
  }
  return path;
}

}  // namespace

std::string HexId(ObjectId id) { return fmt::format("{:016x}{:016x}", id.hi, id.lo); }

std::optional<ObjectId> ParseHexId(std::string_view text) {
  if (text.size() != kHexIdChars) return std::nullopt;
  const auto hi = ParseInt<uint64_t>(text.substr(0, kHexIdChars / 2), 16),
             lo = ParseInt<uint64_t>(text.substr(kHexIdChars / 2), 16);
  if (!hi || !lo) return std::nullopt;
  return ObjectId{.lo = *lo, .hi = *hi};
}

Result<uint32_t> ParseVersion(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  const auto version = ParseInt<uint32_t>(text);
  if (version) return *version;
  return Error(Code::kVersion,
               "the undo store's version cannot be read; discard the store to go on");
}

std::string WriteVersion(uint32_t version) { return fmt::format("{}\n", version); }

Result<StoreOwner> ParseStoreOwner(std::string_view text) {
  const auto json = ParseJson(text, kMaxStateFile);
  const auto root = json.ok() ? json->GetString("root") : json.error();
  const auto id = root.ok() ? ParseHexId(*root) : std::nullopt;
  if (!id) return Error(Code::kCorrupt, "the undo store does not say which project it belongs to");
  StoreOwner owner{.root = *id, .path = "?"};
  if (const Json* path = json->Find("path")) {
    if (auto bytes = BytesFromJson(*path); bytes.ok()) owner.path = std::move(*bytes);
  }
  const auto hex = [&](const char* key) -> std::optional<uint64_t> {
    const auto text = json->GetString(key);
    return text.ok() && text->size() == kHexWordChars ? ParseInt<uint64_t>(*text, 16)
                                                      : std::nullopt;
  };
  owner.salt = hex("salt");
  const auto fsid = hex("fsid");
  if (!fsid) owner.salt.reset();
  if (owner.salt) owner.file_system = {.uuid = hex("uuid"), .fsid = *fsid};
  return owner;
}

std::string WriteStoreOwner(const StoreOwner& owner) {
  Json json = Json::Object({{"root", HexId(owner.root)}, {"path", BytesToJson(owner.path)}});
  const auto set = [&](const char* key, uint64_t value) {
    json.Set(key, fmt::format("{:016x}", value));
  };
  if (owner.salt) {
    set("salt", *owner.salt);
    set("fsid", owner.file_system.fsid);
    if (owner.file_system.uuid) set("uuid", *owner.file_system.uuid);
  }
  return WriteJson(json);
}

Result<std::vector<Barrier>> ParseBarriers(std::string_view text) {
  const Error damaged(Code::kCorrupt, "the file of barriers is damaged");
  const auto json = ParseJson(text, kMaxStateFile);
  if (!json.ok() || json->AsArray() == nullptr) return damaged;
  size_t count = json->AsArray()->size();
  if (count > 0 && json->AsArray()->back().Find(kChecksumKey) != nullptr) {
    if (!HasChecksum(text)) return damaged;
    --count;
  }
  std::vector<Barrier> barriers;
  for (size_t i = 0; i < count; ++i) {
    auto barrier = ParseBarrier((*json->AsArray())[i]);
    if (!barrier) return damaged;
    barriers.push_back(std::move(*barrier));
  }
  return barriers;
}

std::string WriteBarriers(const std::vector<Barrier>& barriers) {
  Json list = Json::Array();
  for (const Barrier& barrier : barriers) {
    Json paths = Json::Array();
    for (const std::string& path : barrier.paths) paths.Append(BytesToJson(path));
    list.Append(Json::Object({{"after_step_id", barrier.after.value},
                              {"time_ns", barrier.at.ns},
                              {"redo_depth", int64_t{barrier.redo_depth}},
                              {"paths", std::move(paths)}}));
  }
  std::string text = WriteJson(list);
  text.pop_back();
  if (!barriers.empty()) text += ',';
  return text + ChecksumElement(text);
}

std::unordered_set<ObjectId> ParseKeepList(std::string_view text) {
  std::unordered_set<ObjectId> objects;
  constexpr size_t kLine = kHexIdChars + 1;
  for (; text.size() >= kLine; text.remove_prefix(kLine)) {
    if (auto id = ParseHexId(text.substr(0, kHexIdChars))) objects.insert(*id);
  }
  return objects;
}

std::string WriteKeepList(const std::unordered_set<ObjectId>& objects) {
  std::string text;
  for (const ObjectId& id : objects) text += HexId(id) + '\n';
  return text;
}

std::optional<Journey> ParseJourney(std::string_view text) {
  Journey journey;
  const auto number = [&](uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.starts_with(' ')) return false;
    text.remove_prefix(1);
    return true;
  };
  if (!number(journey.target) || !number(journey.start)) return std::nullopt;
  if (text == "force\n")
    journey.force = Force::kYes;
  else if (text != "gentle\n")
    return std::nullopt;
  return journey;
}

std::string WriteJourney(const Journey& journey) {
  return fmt::format("{} {} {}\n", journey.target, journey.start,
                     journey.force == Force::kYes ? "force" : "gentle");
}

Result<RegisteredProject> ParseRegistryEntry(std::string_view text) {
  const auto json = ParseJson(text, kMaxRegistryEntry);
  if (!json.ok()) return Error(Code::kCorrupt, "the entry is no JSON");
  TRY_ASSIGN(std::string project, AbsolutePathMember(*json, "project"));
  TRY_ASSIGN(std::string store, AbsolutePathMember(*json, "store"));
  return RegisteredProject{std::move(project), std::move(store)};
}

std::string WriteRegistryEntry(const RegisteredProject& entry) {
  return WriteJson(Json::Object(
             {{"project", BytesToJson(entry.project)}, {"store", BytesToJson(entry.store)}})) +
         "\n";
}

}  // namespace sandglass::undo

#include "session/watch/external_modification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/rel_path.h"

namespace sandglass::session {
namespace {

constexpr size_t kPathsInANotice = 5;

struct KindName {
  ExternalKind kind;
  std::string_view name;
};
constexpr KindName kKindNames[] = {
    {ExternalKind::kCreated, "created"},
    {ExternalKind::kContent, "modified"},
    {ExternalKind::kMetadata, "metadata"},
    {ExternalKind::kRemoved, "deleted"},
};

Json KindsToJson(ExternalKinds kinds) {
  Json list = Json::Array();
  for (const KindName& row : kKindNames) {
    if (kinds.Has(row.kind)) list.Append(row.name);
  }
  return list;
}

Result<ExternalKinds> KindsFrom(const Json& json) {
  const Json* list = json.Find("kinds");
  if (list == nullptr || list->AsArray() == nullptr)
    return Error(Code::kInvalid, "\"kinds\" is no list");
  ExternalKinds kinds;
  for (const Json& item : *list->AsArray()) {
    const std::string* name = item.AsString();
    const auto* row = name == nullptr ? std::end(kKindNames)
                                      : std::ranges::find(kKindNames, *name, &KindName::name);
    if (row == std::end(kKindNames)) return Error(Code::kInvalid, "a kind of change is unknown");
    kinds.Add(row->kind);
  }
  return kinds;
}

Result<std::vector<std::string>> PathsFrom(const Json& json) {
  const Json* list = json.Find("affected_paths");
  if (list == nullptr || list->AsArray() == nullptr)
    return Error(Code::kInvalid, "\"affected_paths\" is no list");
  if (list->AsArray()->size() > kMaxToldPaths) return Error(Code::kLimit, "too many paths");
  std::vector<std::string> paths;
  for (const Json& item : *list->AsArray()) {
    TRY_ASSIGN(std::string path, BytesFromJson(item));
    if (!IsNormalRelPath(path)) return Error(Code::kInvalid, "a path is not in normal form");
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::optional<StepId>> BarrierFrom(const Json& json) {
  const Json* barrier = json.Find("barrier_id");
  if (barrier == nullptr || barrier->is_null()) return std::optional<StepId>();
  const auto id = barrier->AsInt();
  if (!id) return Error(Code::kInvalid, "\"barrier_id\" is no step");
  return std::optional(StepId{*id});
}

}  // namespace

std::string_view ExternalKindName(ExternalKind kind) {
  return std::ranges::find(kKindNames, kind, &KindName::kind)->name;
}

void SetPaths(const std::vector<std::string>& paths, ExternalModification& event) {
  event.affected = paths.size();
  size_t bytes = 0;
  for (const std::string& path : paths) {
    bytes += path.size();
    if (event.affected_paths.size() == kMaxToldPaths || bytes > kMaxToldPathBytes) return;
    event.affected_paths.push_back(path);
  }
}

std::string Encode(const ExternalModification& event) {
  Json paths = Json::Array();
  for (const std::string& path : event.affected_paths) paths.Append(BytesToJson(path));
  return WriteJson(
      Json::Object({{"project", BytesToJson(event.project)},
                    {"affected_paths", std::move(paths)},
                    {"affected_count", event.affected},
                    {"whole_tree", event.extent == Extent::kWholeTree},
                    {"barrier_id", event.barrier ? Json(event.barrier->value) : Json(nullptr)},
                    {"kinds", KindsToJson(event.kinds)}}));
}

Result<ExternalModification> DecodeExternalModification(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text, kMaxEventBytes));
  ExternalModification event;
  const Json* project = json.Find("project");
  if (project == nullptr) return Error(Code::kInvalid, "\"project\" is missing");
  TRY_ASSIGN(event.project, BytesFromJson(*project));
  TRY_ASSIGN(event.affected_paths, PathsFrom(json));
  TRY_ASSIGN(event.affected, json.GetUint("affected_count"));
  TRY_ASSIGN(const bool whole_tree, json.GetBool("whole_tree"));
  event.extent = whole_tree ? Extent::kWholeTree : Extent::kPaths;
  TRY_ASSIGN(event.barrier, BarrierFrom(json));
  TRY_ASSIGN(event.kinds, KindsFrom(json));
  return event;
}

std::string NoticeOf(const ExternalModification& event) {
  if (event.extent == Extent::kWholeTree)
    return fmt::format(
        "so much changed in {} at once that nobody can tell what of it somebody else did{}",
        event.project, event.barrier ? ": undoing what was done until now asks for --force" : "");
  const size_t named = std::min(event.affected_paths.size(), kPathsInANotice);
  const std::vector<std::string> paths(event.affected_paths.begin(),
                                       event.affected_paths.begin() + static_cast<long>(named));
  const std::string more =
      event.affected > named ? fmt::format(" and {} more", event.affected - named) : "";
  return fmt::format("somebody else changed {}{}", fmt::join(paths, ", "), more);
}

}  // namespace sandglass::session

#include "cli/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/printable.h"
#include "session/obeyed_files.h"

namespace sandglass::cli {
namespace {

constexpr size_t kListedLines = 20;

Json PathsToJson(const std::vector<std::string>& paths) {
  Json list = Json::Array();
  for (const std::string& path : paths) list.Append(BytesToJson(path));
  return list;
}

Json TextsToJson(const std::vector<std::string>& texts) {
  Json list = Json::Array();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

// The first items, each as an indented line, and how many there are besides.
template <class T, class ToLine>
std::string ListText(const std::vector<T>& items, ToLine to_line) {
  std::string out;
  const size_t listed = std::min(items.size(), kListedLines);
  for (size_t i = 0; i < listed; ++i) out += fmt::format("  {}\n", to_line(items[i]));
  if (items.size() > listed) out += fmt::format("  and {} more\n", items.size() - listed);
  return out;
}

std::string SizesText(const undo::Change& change) {
  switch (change.kind) {
    case undo::ChangeKind::kCreated:
      return PrintableSize(change.new_size);
    case undo::ChangeKind::kDeleted:
      return PrintableSize(change.old_size);
    case undo::ChangeKind::kModified:
    case undo::ChangeKind::kRenamed:
      break;
  }
  if (change.old_size == change.new_size) return PrintableSize(change.new_size);
  return fmt::format("{} -> {}", PrintableSize(change.old_size), PrintableSize(change.new_size));
}

}  // namespace

namespace {

// null: a damaged step does not tell.
Json TimeToJson(Instant at) { return at.ns != 0 ? Json(at.ns) : Json(); }

}  // namespace

Json ToJson(const undo::StepInfo& step) {
  return Json::Object({{"step_id", step.id.value},
                       {"kind", undo::KindName(step.kind)},
                       {"label", BytesToJson(step.label)},
                       {"opened_ns", TimeToJson(step.opened)},
                       {"closed_ns", TimeToJson(step.closed)},
                       {"damaged", step.damaged},
                       {"protected", step.protection == undo::Protection::kFull},
                       {"created", step.counts.created},
                       {"modified", step.counts.modified},
                       {"deleted", step.counts.deleted},
                       {"renamed", step.counts.renamed},
                       {"copied_bytes", step.copied_bytes},
                       {"retained_bytes", step.retained_bytes}});
}

Json ToJson(const undo::Barrier& barrier) {
  return Json::Object({{"after_step", barrier.after.value},
                       {"at_ns", barrier.at.ns},
                       {"paths", PathsToJson(barrier.paths)}});
}

Json ToJson(const undo::Change& change) {
  Json json =
      Json::Object({{"change", undo::ChangeName(change.kind)}, {"path", BytesToJson(change.path)}});
  if (change.kind == undo::ChangeKind::kRenamed) json.Set("old_path", BytesToJson(change.old_path));
  return json.Set("old_size", change.old_size).Set("new_size", change.new_size);
}

Json ToJson(const std::vector<undo::Conflict>& conflicts) {
  Json list = Json::Array();
  for (const undo::Conflict& conflict : conflicts) {
    Json json = Json::Object({{"conflict", undo::ConflictName(conflict.kind)},
                              {"path", BytesToJson(conflict.path)},
                              {"detail", conflict.detail}});
    if (conflict.step) json.Set("step_id", conflict.step->value);
    list.Append(std::move(json));
  }
  return list;
}

Json ToJson(const undo::RewindReport& report) {
  Json steps = Json::Array(), changes = Json::Array();
  for (const StepId step : report.steps) steps.Append(step.value);
  for (const undo::Change& change : report.changes) changes.Append(ToJson(change));
  return Json::Object({{"steps", std::move(steps)},
                       {"changes", std::move(changes)},
                       {"conflicts", ToJson(report.conflicts)},
                       {"kept", PathsToJson(report.kept)},
                       {"warnings", TextsToJson(report.warnings)}});
}

Json ToJson(const undo::RecoveryReport& recovery) {
  Json json = ToJson(recovery.rewind);
  json.Set("recovered", recovery.recovered).Set("interrupted_rewind", recovery.interrupted_rewind);
  return json.Set("step_id", recovery.step ? Json(recovery.step->value) : Json());
}

std::string CountsText(const undo::ChangeCounts& counts) {
  std::string out;
  const auto add = [&](uint32_t count, undo::ChangeKind kind) {
    if (count != 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, undo::ChangeName(kind));
  };
  add(counts.created, undo::ChangeKind::kCreated);
  add(counts.modified, undo::ChangeKind::kModified);
  add(counts.deleted, undo::ChangeKind::kDeleted);
  add(counts.renamed, undo::ChangeKind::kRenamed);
  return out.empty() ? "no changes" : out;
}

std::string ChangeText(const undo::Change& change) {
  const std::string from = change.kind == undo::ChangeKind::kRenamed
                               ? fmt::format("{} -> ", PrintableName(change.old_path))
                               : "";
  const std::string path =
      change.path.empty() ? "(the project folder)" : PrintableName(change.path);
  return fmt::format("{:<9} {}{} ({})", undo::ChangeName(change.kind), from, path,
                     SizesText(change));
}

std::optional<std::string_view> FlagOf(const undo::Change& change) {
  if (change.kind == undo::ChangeKind::kDeleted) return std::nullopt;
  return session::WhoObeys(change.path);
}

std::string FlagsText(const std::vector<undo::Change>& changes) {
  std::string first;
  size_t others = 0;
  for (const undo::Change& change : changes) {
    const auto flag = FlagOf(change);
    if (!flag) continue;
    if (first.empty()) {
      first = fmt::format("{} ({})", PrintableName(change.path), *flag);
    } else {
      ++others;
    }
  }
  return others == 0 ? first : fmt::format("{} and {} more", first, others);
}

Json FlagsToJson(const std::vector<undo::Change>& changes) {
  Json list = Json::Array();
  for (const undo::Change& change : changes) {
    if (const auto flag = FlagOf(change))
      list.Append(Json::Object({{"path", BytesToJson(change.path)}, {"flag", *flag}}));
  }
  return list;
}

std::string ConflictText(const undo::Conflict& conflict) {
  undo::Conflict printable = conflict;
  printable.path = PrintableName(conflict.path);
  printable.detail = PrintableText(conflict.detail);
  return undo::ConflictText(printable);
}

std::string RewindText(const undo::RewindReport& report) {
  std::string out = ListText(report.changes, ChangeText);
  if (!report.conflicts.empty()) out += "conflicts:\n" + ListText(report.conflicts, ConflictText);
  if (!report.kept.empty())
    out += "folders that stay because they hold something that was not recorded:\n" +
           ListText(report.kept, PrintableName);
  if (!report.warnings.empty()) out += "warnings:\n" + ListText(report.warnings, PrintableText);
  return out;
}

std::string StepsText(const std::vector<StepId>& steps) {
  std::string out;
  for (const StepId step : steps) out += fmt::format("{}{}", out.empty() ? "" : ", ", step.value);
  return out;
}

std::string RecoveryText(const undo::RecoveryReport& recovery) {
  if (!recovery.recovered && !recovery.interrupted_rewind && recovery.rewind.conflicts.empty())
    return "";
  std::string out;
  if (recovery.interrupted_rewind)
    out += "an undo, redo or restore that was interrupted has been put right\n";
  if (recovery.recovered) {
    const std::string step = recovery.step ? fmt::format(" {}", recovery.step->value) : "";
    const bool ambient = recovery.step && recovery.step->value < 0;
    out += ambient ? fmt::format("the interrupted ambient step{} has been closed\n", step)
                   : fmt::format("the interrupted step{} has been taken back\n", step);
  }
  return out + RewindText(recovery.rewind);
}

}  // namespace sandglass::cli

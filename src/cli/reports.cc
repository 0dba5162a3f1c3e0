#include "cli/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "session/obeyed_files.h"

namespace sandglass::cli {
namespace {

constexpr size_t kListedLines = 20;

// The first items, each as an indented line, and how many there are besides.
template <class T, class ToLine>
std::string ListText(const std::vector<T>& items, ToLine to_line, std::string_view all) {
  std::string out;
  const size_t listed = std::min(items.size(), kListedLines);
  for (size_t i = 0; i < listed; ++i) out += fmt::format("  {}\n", to_line(items[i]));
  if (items.size() > listed)
    out += fmt::format("  and {} more{}{}\n", items.size() - listed, all.empty() ? "" : "; ", all);
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

namespace {

std::string StepLine(const undo::StepInfo& step) {
  if (step.damaged) {
    return fmt::format("{:>6}  {:<19}  {:<7}  {:<30}  {}\n", step.id.value, "damaged", "-",
                       "cannot be read", PrintableName(step.label));
  }
  const std::string unprotected = step.protection == undo::Protection::kFull ? "" : "  UNPROTECTED";
  return fmt::format("{:>6}  {}  {:<7}  {:<30}  {}{}\n", step.id.value, PrintableTime(step.closed),
                     undo::KindName(step.kind), CountsText(step.counts), PrintableName(step.label),
                     unprotected);
}

std::string BarrierLine(const undo::Barrier& barrier) {
  std::string what = "anything may have changed";
  if (!barrier.paths.empty()) {
    const std::string& first = barrier.paths.front();
    what = first.empty() ? "(the project folder)" : PrintableName(first);
  }
  if (barrier.paths.size() > 1) what += fmt::format(" and {} more", barrier.paths.size() - 1);
  return fmt::format("{:>6}  {}  edited by someone else: {}\n", "-", PrintableTime(barrier.at),
                     what);
}

}  // namespace

std::string HistoryText(const std::vector<undo::HistoryEntry>& history) {
  std::string text;
  for (const undo::HistoryEntry& entry : history)
    text += entry.step ? StepLine(*entry.step) : BarrierLine(*entry.barrier);
  return text;
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

std::string RewindText(const undo::RewindReport& report, std::string_view all) {
  std::string out = ListText(report.changes, ChangeText, all);
  if (!report.conflicts.empty())
    out += "conflicts:\n" + ListText(report.conflicts, ConflictText, all);
  if (!report.kept.empty())
    out += "stays, because it is somebody else's or holds something that was not recorded:\n" +
           ListText(report.kept, PrintableName, all);
  if (!report.warnings.empty())
    out += "warnings:\n" + ListText(report.warnings, PrintableText, all);
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
  return out + RewindText(recovery.rewind, "");
}

}  // namespace sandglass::cli

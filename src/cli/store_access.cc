#include "cli/store_access.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/reports.h"

namespace sandglass::cli {
namespace {

Result<undo::UndoPaths> FindExistingStore(const Arguments& arguments) {
  TRY_ASSIGN(auto paths, FindPaths(arguments));
  if (StoreExists(paths)) return paths;
  return Error(Code::kNotFound,
               fmt::format("nothing has been recorded for {} (its undo store would be {})",
                           paths.project, paths.store));
}

}  // namespace

Result<undo::UndoPaths> FindPaths(const Arguments& arguments) {
  const std::string given =
      arguments.Has(kProjectOption.name) ? arguments.Value(kProjectOption.name) : ".";
  std::error_code error;
  const std::filesystem::path project = std::filesystem::canonical(given, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("open the project {}", given));
  if (arguments.Has(kStoreOption.name))
    return undo::UndoPaths{.project = project.native(),
                           .store = arguments.Value(kStoreOption.name)};
  TRY_ASSIGN(std::string store, undo::StoreLocationFor(project.native()));
  return undo::UndoPaths{
      .project = project.native(), .store = std::move(store), .registry = undo::RegistryLocation()};
}

bool StoreExists(const undo::UndoPaths& paths) {
  std::error_code error;
  if (!std::filesystem::exists(paths.store, error)) return static_cast<bool>(error);
  const bool empty = std::filesystem::is_empty(paths.store, error);
  return error || !empty;
}

Result<undo::StoreReader> OpenReader(const Arguments& arguments) {
  TRY_ASSIGN(auto paths, FindExistingStore(arguments));
  return undo::StoreReader::Open(paths);
}

Result<std::unique_ptr<undo::UndoLog>> OpenLog(const Arguments& arguments, const Console& console) {
  TRY_ASSIGN(auto paths, FindExistingStore(arguments));
  TRY_ASSIGN(auto log, undo::UndoLog::Open(paths));
  const std::string recovered = RecoveryText(log->recovery());
  if (!recovered.empty()) console.Note(recovered.substr(0, recovered.size() - 1));
  return log;
}

Result<undo::StepInfo> FindStep(const undo::StoreReader& reader, StepId step) {
  TRY_ASSIGN(auto history, reader.History());
  for (const undo::HistoryEntry& entry : history) {
    if (entry.step && entry.step->id == step) return *entry.step;
  }
  return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
}

}  // namespace sandglass::cli

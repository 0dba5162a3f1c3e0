#include "cli/store_access.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "cli/reports.h"
#include "session/open_log.h"

namespace sandglass::cli {
namespace {

// The real path of a folder that can be looked into.
Result<std::string> FindProject(const std::string& given) {
  std::error_code error;
  const std::filesystem::path project = std::filesystem::canonical(given, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("open the project {}", given));
  const Fd folder(::open(project.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) return project.native();
  if (errno == ENOTDIR)
    return Error(Code::kInvalid, fmt::format("the project {} is not a folder", given));
  return Error::FromErrno(errno, fmt::format("open the project folder {}", given));
}

}  // namespace

Result<undo::UndoPaths> FindPaths(const Arguments& arguments) {
  const std::string given =
      arguments.Has(kProjectOption.name) ? arguments.Value(kProjectOption.name) : ".";
  TRY_ASSIGN(std::string project, FindProject(given));
  if (arguments.Has(kStoreOption.name))
    return undo::UndoPaths{.project = std::move(project),
                           .store = arguments.Value(kStoreOption.name)};
  TRY_ASSIGN(std::string store, undo::StoreLocationFor(project));
  TRY_ASSIGN(std::string registry, undo::RegistryLocation());
  return undo::UndoPaths{
      .project = std::move(project), .store = std::move(store), .registry = std::move(registry)};
}

std::string WhereElse(const undo::UndoPaths& paths) {
  if (paths.registry.empty()) return "";  // --store said where to look
  if (const auto former = undo::FindFormerPlace(paths.registry, paths.project)) {
    return fmt::format(
        "this folder was {} when its steps were recorded; to go on with them, give "
        "--store {}",
        former->project, former->store);
  }
  if (const auto around = undo::FindProjectAround(paths.registry, paths.project))
    return fmt::format("it lies in the project {0}; did you mean -p {0}?", around->project);
  return "";
}

bool StoreExists(const undo::UndoPaths& paths) {
  std::error_code error;
  if (!std::filesystem::exists(paths.store, error)) return static_cast<bool>(error);
  const bool empty = std::filesystem::is_empty(paths.store, error);
  return error || !empty;
}

Result<undo::UndoPaths> FindExistingStore(const Arguments& arguments) {
  TRY_ASSIGN(auto paths, FindPaths(arguments));
  if (StoreExists(paths)) return paths;
  const std::string hint = WhereElse(paths);
  return Error(Code::kNotFound,
               fmt::format("nothing has been recorded for {} (its undo store would be {}){}{}",
                           paths.project, paths.store, hint.empty() ? "" : "\n", hint));
}

Result<undo::StoreReader> OpenReader(const Arguments& arguments) {
  TRY_ASSIGN(auto paths, FindExistingStore(arguments));
  return undo::StoreReader::Open(paths);
}

Result<std::unique_ptr<undo::UndoLog>> OpenLog(const undo::UndoPaths& paths,
                                               const Console& console) {
  TRY_ASSIGN(auto log, session::OpenLogSoon(paths, {}));
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

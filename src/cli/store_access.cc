#include "cli/store_access.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "cli/reports.h"
#include "session/former_world.h"
#include "session/open_log.h"

namespace sandglass::cli {

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

namespace {

// Its own, or that of the nearest folder above it that has one; else its own.
Result<undo::UndoPaths> SearchUpwards(const Arguments& arguments, const std::string& folder) {
  TRY_ASSIGN(undo::UndoPaths own, PathsOf(arguments, folder));
  if (StoreExists(own)) return own;
  for (std::filesystem::path up = folder; up != up.parent_path();) {
    up = up.parent_path();
    auto above = PathsOf(arguments, up.native());
    if (above.ok() && StoreExists(*above)) return std::move(*above);
  }
  return own;
}

}  // namespace

std::string FolderNameFor(const std::string& project) {
  const Hash128 hash = HashBytes128(AsBytes(project));
  return fmt::format("{:016x}{:016x}", hash.hi, hash.lo);
}

Result<undo::UndoPaths> PathsOf(const Arguments& arguments, const std::string& project) {
  if (arguments.Has(kStoreOption.name))
    return undo::UndoPaths{.project = project, .store = arguments.Value(kStoreOption.name)};
  if (arguments.Has(kUndoDirOption.name)) {
    std::error_code error;
    const auto folder = std::filesystem::absolute(arguments.Value(kUndoDirOption.name), error);
    if (error) return Error::FromErrno(error.value(), "find the folder of --undo-dir");
    return undo::UndoPaths{.project = project, .store = folder / FolderNameFor(project)};
  }
  TRY_ASSIGN(std::string store, undo::StoreLocationFor(project));
  TRY_ASSIGN(std::string registry, undo::RegistryLocation());
  return undo::UndoPaths{
      .project = project, .store = std::move(store), .registry = std::move(registry)};
}

Result<undo::UndoPaths> FindPaths(const Arguments& arguments) {
  const bool named = arguments.Has(kProjectOption.name);
  TRY_ASSIGN(const std::string folder,
             FindProject(named ? arguments.Value(kProjectOption.name) : "."));
  // A store that is named belongs to one project, which is then named too, or here.
  if (named || arguments.Has(kStoreOption.name)) return PathsOf(arguments, folder);
  return SearchUpwards(arguments, folder);
}

Result<std::string> PathInProject(const std::string& project, const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root = project, here = fs::current_path(error);
  const bool inside = !error && LiesIn(here.native(), root.native());
  const fs::path path = ((inside ? here : root) / given).lexically_normal();
  // The last name may be a symlink, which is meant itself; what leads to it may be one as well.
  const bool has_name = path.has_filename() && path != root;
  fs::path real = fs::weakly_canonical(has_name ? path.parent_path() : path, error);
  if (error) real = path.parent_path();
  if (has_name) real /= path.filename();
  for (const fs::path& candidate : {path, real}) {
    if (LiesIn(candidate.native(), root.native()))
      return candidate.lexically_relative(root).native();
  }
  return Error(Code::kOutsideRoot,
               fmt::format("{} does not lie in the project {}", given, project));
}

std::string WhereElse(const undo::UndoPaths& paths) {
  if (paths.registry.empty()) return "";  // --store or --undo-dir said where to look
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

Result<std::unique_ptr<undo::UndoLog>> OpenLogSilently(const undo::UndoPaths& paths,
                                                       const Console& console,
                                                       const session::TellProgress& tell) {
  TRY(session::EndFormerWorld(paths.store));
  undo::UndoOptions options;
  options.progress = tell;
  options.log = console.log().With("undo");
  auto log = session::OpenLogSoon(paths, options);
  if (!log.ok()) return NamingTheSession(log.error(), paths.store);
  return log;
}

Error NamingTheSession(const Error& error, const std::string& store) {
  const auto session = session::LivingSession(store);
  // The error may be about the store of another project.
  const bool of_it =
      error.code() == Code::kLocked && error.message().find(store) != std::string::npos;
  if (!of_it || !session) return error;
  return Error(Code::kLocked,
               fmt::format("a session (process {}) is using the undo store {}; end it or try again "
                           "later",
                           *session, store));
}

Result<std::unique_ptr<undo::UndoLog>> OpenLog(const undo::UndoPaths& paths, const Console& console,
                                               const session::TellProgress& tell) {
  TRY_ASSIGN(auto log, OpenLogSilently(paths, console, tell));
  TellRecovery(log->recovery(), console);
  return log;
}

void TellRecovery(const undo::RecoveryReport& recovery, const Console& console) {
  const std::string text = RecoveryText(recovery);
  if (!text.empty()) console.Note(text.substr(0, text.size() - 1));
}

Result<undo::StepInfo> FindStep(const undo::StoreReader& reader, StepId step) {
  TRY_ASSIGN(auto history, reader.History());
  for (const undo::HistoryEntry& entry : history) {
    if (entry.step && entry.step->id == step) return *entry.step;
  }
  return Error(Code::kNotFound, fmt::format("there is no step {} in the history", step.value));
}

}  // namespace sandglass::cli

#include "cli/project_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/rel_path.h"
#include "cli/run_options.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReadOnlySuffix = ":ro";

Result<session::SessionProject> ProjectNamed(const Arguments& arguments, std::string_view given) {
  session::SessionProject project;
  if (given.ends_with(kReadOnlySuffix)) {
    given.remove_suffix(kReadOnlySuffix.size());
    project.access = world::Access::kReadOnly;
  }
  TRY_ASSIGN(const std::string folder, FindProject(std::string(given)));
  TRY_ASSIGN(project.paths, PathsOf(arguments, folder));
  return project;
}

Status CheckOneStore(const Arguments& arguments,
                     const std::vector<session::SessionProject>& projects) {
  const auto writable =
      std::ranges::count(projects, world::Access::kReadWrite, &session::SessionProject::access);
  if (writable <= 1 || !arguments.Has(kStoreOption.name)) return Ok();
  return Error(Code::kInvalid,
               "--store names the store of one project; for several say --undo-dir");
}

}  // namespace

Result<std::vector<session::SessionProject>> ChooseProjects(const Arguments& arguments) {
  std::vector<session::SessionProject> projects;
  if (!arguments.Has(kProjectsOption.name)) {
    TRY_ASSIGN(undo::UndoPaths paths, FindPaths(arguments));
    projects.push_back({.paths = std::move(paths)});
  }
  for (const std::string& given : arguments.Values(kProjectsOption.name)) {
    TRY_ASSIGN(session::SessionProject project, ProjectNamed(arguments, given));
    projects.push_back(std::move(project));
  }
  TRY(CheckOneStore(arguments, projects));
  return projects;
}

Result<session::SessionProject> ChooseProject(const Arguments& arguments, const std::string& given,
                                              world::Access access) {
  TRY_ASSIGN(const std::string folder, FindProject(given));
  session::SessionProject project{.access = access};
  TRY_ASSIGN(project.paths, PathsOf(arguments, folder));
  return project;
}

std::string UndoCommandFor(const Arguments& arguments, const undo::UndoPaths& paths) {
  return WordsFor("undo", arguments, paths);
}

std::string WordsFor(std::string_view command, const Arguments& arguments,
                     const undo::UndoPaths& paths) {
  std::vector<std::string> words = {"sandglass", std::string(command)};
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const bool found = !error && (here == paths.project || (LiesIn(here.native(), paths.project) &&
                                                          !arguments.Has(kStoreOption.name)));
  if (!found) words.insert(words.end(), {"-p", paths.project});
  if (arguments.Has(kStoreOption.name)) words.insert(words.end(), {"--store", paths.store});
  if (arguments.Has(kUndoDirOption.name))
    words.insert(words.end(), {"--undo-dir", arguments.Value(kUndoDirOption.name)});
  return QuotedForShell(words);
}

}  // namespace sandglass::cli

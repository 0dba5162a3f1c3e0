#include "session/project_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

namespace sandglass::session {
namespace {

constexpr size_t kMaxProjects = 8;

// The folder itself, or below it; real paths.
bool LiesIn(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + '/');
}

Status CheckApart(const std::string& one, const std::string& other) {
  if (one == other) return Error(Code::kInvalid, fmt::format("{} is named twice as project", one));
  const bool inside = LiesIn(one, other);
  if (!inside && !LiesIn(other, one)) return Ok();
  return Error(Code::kInvalid,
               fmt::format("the project {} lies inside the project {}: name only one of them",
                           inside ? one : other, inside ? other : one));
}

Status CheckStore(const SessionProject& owner, const SessionProject& other) {
  if (owner.access == world::Access::kReadOnly) return Ok();
  std::error_code error;
  const auto store = std::filesystem::weakly_canonical(owner.paths.store, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("find {}", owner.paths.store));
  if (!LiesIn(store.native(), other.paths.project)) return Ok();
  return Error(Code::kInvalid, fmt::format("the undo store {} lies in the project {}",
                                           store.native(), other.paths.project));
}

}  // namespace

Status CheckProjects(const SessionOptions& options) {
  const std::vector<SessionProject>& projects = options.projects;
  if (projects.empty() || projects.size() > kMaxProjects)
    return Error(Code::kInvalid, fmt::format("there may be 1 to {} projects, not {}", kMaxProjects,
                                             projects.size()));
  for (size_t i = 0; i < projects.size(); ++i) {
    for (size_t j = 0; j < projects.size(); ++j) {
      if (i < j) TRY(CheckApart(projects[i].paths.project, projects[j].paths.project));
      TRY(CheckStore(projects[i], projects[j]));
    }
  }
  return Ok();
}

}  // namespace sandglass::session

// SampleProject: a small project in a temporary folder, with an undo store beside it; both are gone
// when it is. It has what makes bringing a tree back hard: modes, old time stamps, a symlink, hard
// links, an extended attribute, files that git does not know.
#pragma once

#include <string>

#include "base/result.h"

namespace sandglass::demo {

class SampleProject {
 public:
  static Result<SampleProject> Make();
  SampleProject(SampleProject&& other) noexcept;
  SampleProject& operator=(SampleProject&&) = delete;
  ~SampleProject();

  std::string root() const { return folder_ + "/project"; }
  std::string store() const { return folder_ + "/undo-store"; }

 private:
  explicit SampleProject(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace sandglass::demo

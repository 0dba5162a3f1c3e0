#include "session/stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "session/upper_folders.h"
#include "undo/metadata.h"
#include "undo/object.h"

namespace sandglass::session {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInUse = "stage-";
constexpr std::string_view kKept = "kept-";
constexpr mode_t kOwnerOnly = 0700;

int64_t NowNs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// The world sees the project's root folder with the attributes of the upper one.
Status MakeAlike(const std::string& upper, const std::string& project) {
  const Fd from(::open(project.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd to(::open(upper.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!from || !to) return Error::FromErrno(errno, "open the folders of the stage");
  TRY_ASSIGN(const undo::OpenObject original, undo::OpenObjectFd({}, from.get()));
  TRY_ASSIGN(const undo::OpenObject copy, undo::OpenObjectFd({}, to.get()));
  TRY_ASSIGN(undo::Metadata wanted, undo::CaptureMetadata(original));
  TRY_ASSIGN(const undo::Metadata present, undo::CaptureMetadata(copy));
  wanted.flags = present.flags;
  return undo::ApplyMetadata(copy, wanted);
}

}  // namespace

Result<Stage> Stage::Make(const std::string& project, const std::vector<std::string>& places) {
  std::string refusals;
  for (const std::string& place : places) {
    auto stage = MakeIn(project, place);
    if (stage.ok()) return stage;
    refusals += fmt::format("\n  {}", stage.error().message());
  }
  return Error(Code::kUnsupported,
               fmt::format("there is no place where changes could be staged:{}\nset SANDGLASS_HOME "
                           "to a folder on ext4, xfs, btrfs or tmpfs",
                           refusals));
}

Result<Stage> Stage::MakeIn(const std::string& project, const std::string& place) {
  std::error_code error;
  fs::create_directories(place, error);
  if (error) return Error::FromErrno(error.value(), fmt::format("make {}", place));
  RemoveUnused(place, kInUse);
  TRY_ASSIGN(LockedFolder made, MakeLockedFolder(place, kInUse));
  Stage stage;
  stage.project_ = project;
  stage.folder_ = std::move(made.path);
  stage.lock_ = std::move(made.lock);
  TRY(stage.Prepare());
  return stage;
}

Status Stage::Prepare() {
  TRY(CheckCanBeUpper(folder_));
  for (const std::string& part : {upper(), work()}) {
    if (::mkdir(part.c_str(), kOwnerOnly) != 0)
      return Error::FromErrno(errno, fmt::format("make {}", part));
  }
  TRY(MakeAlike(upper(), project_));
  started_ns_ = NowNs();
  // Files are stamped by a clock that lags behind: from here on, whatever somebody else edits is stamped later than that.
  constexpr int kTries = 100;  // a clock that is set back meanwhile is not waited for
  for (int i = 0; i < kTries && StampingNow() <= started_ns_; ++i) ::usleep(500);
  return Ok();
}

Stage::~Stage() {
  if (lock_) RemoveFolder(folder_);
}

Result<std::string> Stage::Keep() {
  const fs::path old = folder_;
  const std::string unique = old.filename().native().substr(kInUse.size());
  const fs::path kept = old.parent_path() / fmt::format("{}{}", kKept, unique);
  if (::rename(old.c_str(), kept.c_str()) != 0) return Error::FromErrno(errno, "keep the stage");
  lock_.Reset();
  folder_ = kept.native();
  return upper();
}

}  // namespace sandglass::session

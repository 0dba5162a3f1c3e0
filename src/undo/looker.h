// Looker: what has a path now. Meant for paths in order: neighbours share the open folder. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "undo/object.h"
#include "undo/place.h"

namespace sandglass::undo {

struct Found {
  ObjectId id;
  FileStat stat;
};

// Does the kernel say of a path that it leads to nothing of the project, or to something closed? Any other error tells nothing about it.
bool SaysAbsent(int sys_errno);

class Looker {
 public:
  explicit Looker(const Place& place) : place_(place) {}
  // nullopt: nothing has that name. Never leaves the project.
  std::optional<Found> At(const std::string& path);
  // The same without asking who it is, which halves its price.
  std::optional<FileStat> Stat(const std::string& path);
  // Of an object that the caller just saw there.
  std::optional<Found> Known(const std::string& path, ObjectId id) {
    const auto stat = Stat(path);
    return stat ? std::optional(Found{id, *stat}) : std::nullopt;
  }
  // The last look failed for lack of permission, not of an object.
  bool denied() const { return denied_; }
  // The first look so far that failed for any other reason than that nothing is there: "absent" was no answer then.
  const Status& failure() const { return failure_; }

 private:
  // The folder and the name to look at; nullopt: there is no such folder.
  struct Spot {
    int dir;
    std::string name;
  };
  std::optional<Spot> Approach(const std::string& path);
  std::optional<FileStat> StatSpot(const std::optional<Spot>& spot);
  void NoteFailure(const Error& error);

  const Place& place_;
  std::string folder_path_;
  Fd folder_;
  bool folder_denied_ = false;
  bool denied_ = false;
  Status failure_;
};

}  // namespace sandglass::undo

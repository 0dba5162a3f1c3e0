// LiveWriters: the objects to which a writable descriptor was handed out, and which some process may therefore still write to unseen.
//
// At the end of a step the session asks for the survivors and gives them to UndoLog::CloseStep. An object stays in the set until a
// lease proves that nobody has it open for writing. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "bridge/supervise/own_fds.h"
#include "undo/interceptor.h"

namespace sandglass::bridge {

struct Project;

class LiveWriters {
 public:
  // To be asked before a file is opened for writing, because afterwards it is too late to refuse. ENFILE: so many are open that none
  // can be added. EMFILE: all descriptors are in use otherwise.
  Status MakeRoom() EXCLUDES(mutex_);
  // `fd` is about to be handed out and allows writing. False: others were faster to take the last descriptors; then it must not
  // be handed out, for a writer that nobody knows of would be taken for a person.
  [[nodiscard]] bool Add(const Project& project, int fd) EXCLUDES(mutex_);
  // Of an object that was added and may still be written to; null: of none such.
  const Project* ProjectOf(uint64_t device, uint64_t inode) const EXCLUDES(mutex_);
  // Objects of the project that may still be written to; the descriptors live until the next call of any method.
  std::vector<undo::ObjectRef> Survivors(const Project& project) EXCLUDES(mutex_);
  // No process is left that could write: the usual end of a step.
  void Clear() EXCLUDES(mutex_);
  size_t size() const EXCLUDES(mutex_);

 private:
  struct Writer {
    const Project* project;
    Fd object;  // O_PATH: must not itself count as an open file
  };
  static size_t MostRemembered();
  size_t PruneAfter(size_t survivors) const;
  bool MayHaveWriter(const Fd& object) const;
  void Prune() REQUIRES(mutex_);
  // Gives up spare descriptors if there are no others.
  Fd OpenPathOf(int fd) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, Writer> writers_
      GUARDED_BY(mutex_);  // by device and inode
  const size_t most_ = MostRemembered();
  const OwnFds own_fds_;
  std::vector<Fd> reserve_ GUARDED_BY(mutex_);  // kept free to remember writers by
  size_t prune_at_ GUARDED_BY(mutex_) = PruneAfter(0);
};

}  // namespace sandglass::bridge

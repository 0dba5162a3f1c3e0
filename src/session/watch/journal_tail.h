// JournalTail: which paths and objects a step or a rewind that is under way has touched so far, read from its journal as that grows.
//
// The intent of an operation is in the journal before the operation is done, so whatever a watcher hears of an operation of ours finds
// it here. The descriptor outlives the name: of a step that was aborted the rest can still be read. One thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "base/fd.h"
#include "base/result.h"
#include "undo/object.h"
#include "undo/record.h"

namespace sandglass::session {

class JournalTail {
 public:
  // Of the step in `folder` of wal/. kNotFound: there is none. kCorrupt, kVersion.
  static Result<JournalTail> Open(int wal_fd, const char* folder);

  // Unique for every journal ever written.
  uint64_t uid() const { return uid_; }
  // Reads what was added. What is not whole yet is left for the next time.
  Status CatchUp();

  bool HasTouched(std::string_view path) const;
  bool HasTouched(undo::ObjectId object) const { return objects_.contains(object); }
  // It has made, removed or renamed a folder above the path: what is missing below it now may have been in another one.
  bool HasReplacedAbove(std::string_view path) const;

 private:
  JournalTail(Fd file, uint64_t uid) : file_(std::move(file)), uid_(uid) {}
  size_t TakeFrames(ByteView bytes);
  void Take(const undo::Record& record);
  void Touch(std::string_view path);
  void Touch(const undo::NameAt& at);
  void Touch(undo::ObjectId object) {
    if (object != undo::kNoObject) objects_.insert(object);
  }

  Fd file_;
  uint64_t uid_;
  uint64_t end_ = 0;                    // of what was read
  std::unordered_set<uint64_t> paths_;  // hashes: a journal may name millions
  std::unordered_set<uint64_t> names_;  // those of them that came or went
  std::unordered_set<undo::ObjectId> objects_;
};

}  // namespace sandglass::session

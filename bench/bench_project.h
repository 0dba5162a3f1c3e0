// What the benchmarks work on: a project with its log, sets of small files, and the operations on
// them, once as a bridge does them and once plainly.
//
// A bridge has the parent folder open and calls the interceptor itself; the plain twin uses the
// same descriptor and name, so that the difference is the price of undo alone. A failure ends the
// program: a benchmark of work that was not done measures nothing. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "tests/support/temp_workspace.h"
#include "undo/undo_log.h"

namespace sandglass::bench {

// Everything written so far is on disk when this returns.
void SyncDisk();

// The bytes of a pseudo-random text: compressible, but not trivially, and the same in every run.
std::string SampleContent(size_t bytes);

// What the files below `folder` take: the larger of length and allocated blocks of each.
uint64_t BytesBelow(const std::string& folder);

// As shipped, except that `max_steps` are kept.
undo::UndoOptions Keeping(uint32_t max_steps);
// Evicts and cleans up on the caller's thread, so that nothing else happens meanwhile.
undo::UndoOptions InlineOptions(uint32_t max_steps);

class BenchProject {
 public:
  explicit BenchProject(const undo::UndoOptions& options);

  undo::UndoLog& log() { return *log_; }
  undo::Interceptor& interceptor() { return log_->interceptor(); }
  const std::string& root() const { return workspace_.project(); }
  const std::string& store() const { return workspace_.store(); }
  // A folder beside the project and on its file system, for the plain twin.
  const std::string& plain_root() const { return plain_root_; }
  undo::UndoPaths paths() const { return {root(), store()}; }

  void Reopen(const undo::UndoOptions& options);
  void CloseLog() { log_.reset(); }
  // Runs `work` as one step.
  template <class Work>
  void Step(const Work& work) {
    OpenStep();
    work();
    CloseStep();
  }
  void OpenStep();
  void CloseStep();
  uint64_t CopiedByNewestStep() const;

 private:
  test::TempWorkspace workspace_;
  std::string plain_root_;
  std::unique_ptr<undo::UndoLog> log_;
};

// A file by its open folder and its name.
struct FileAt {
  int dir;
  std::string_view dir_path;  // from the root of the set
  const std::string& name;
  const std::string& path;  // from the root of the set
};

// `count` names, a hundred to a folder; the folders exist, the files not necessarily.
class FileSet {
 public:
  FileSet(const std::string& root, std::string_view prefix, size_t count);

  template <class Work>
  void ForEach(const Work& work) const {
    ForEachOfPart(0, 1, work);
  }
  // The files of one of `parts` equal parts.
  template <class Work>
  void ForEachOfPart(size_t part, size_t parts, const Work& work) const {
    const size_t end = folders_.size() * (part + 1) / parts;
    for (size_t i = folders_.size() * part / parts; i < end; ++i) {
      for (size_t j = 0; j < folders_[i].paths.size(); ++j) work(At(i, j));
    }
  }
  // Both sets must have the same number of files.
  template <class Work>
  static void ForEachPair(const FileSet& from, const FileSet& to, const Work& work) {
    for (size_t i = 0; i < from.folders_.size(); ++i) {
      for (size_t j = 0; j < from.folders_[i].paths.size(); ++j) work(from.At(i, j), to.At(i, j));
    }
  }

 private:
  struct Folder {
    Fd fd;
    std::string path;
    std::vector<std::string> paths;
  };
  FileAt At(size_t folder, size_t file) const {
    const Folder& in = folders_[folder];
    return {in.fd.get(), in.path, names_[file], in.paths[file]};
  }

  std::vector<std::string> names_;
  std::vector<Folder> folders_;
};

void PlainCreate(const FileAt& at, std::string_view content);
void PlainRemove(const FileAt& at);
void PlainOverwrite(const FileAt& at, std::string_view content);  // O_TRUNC
void PlainPatch(const FileAt& at, std::string_view content);      // in place, from the start
void PlainRename(const FileAt& from, const FileAt& to);

void BridgeCreate(undo::Interceptor& interceptor, const FileAt& at, std::string_view content);
void BridgeRemove(undo::Interceptor& interceptor, const FileAt& at);
void BridgeOverwrite(undo::Interceptor& interceptor, const FileAt& at, std::string_view content);
void BridgePatch(undo::Interceptor& interceptor, const FileAt& at, std::string_view content);

}  // namespace sandglass::bench

#include "bench/bench_project.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/bytes.h"
#include "base/io.h"
#include "tests/support/must.h"

namespace sandglass::bench {

using test::Must;
using test::MustCall;
using undo::Interceptor;
using undo::ObjectRef;
using undo::Outcome;
using undo::Ticket;
using undo::Truncate;
using undo::WriteVisibility;

namespace {

constexpr size_t kFilesPerFolder = 100;

Fd Open(const FileAt& at, int flags) {
  const int fd = openat(at.dir, at.name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0644);
  return Fd(MustCall(fd, at.path));
}

void Write(const Fd& file, std::string_view content) {
  Must(WriteFully(file.get(), AsBytes(content)));
}

void BridgeWrite(Interceptor& interceptor, const FileAt& at, Truncate truncate,
                 std::string_view content) {
  const Fd object = Open(at, O_PATH);
  Ticket ticket = Must(
      interceptor.BeginOpenForWrite({object.get(), at.path}, truncate, WriteVisibility::kUnseen));
  const Fd file = Open(at, O_WRONLY | (truncate == Truncate::kYes ? O_TRUNC : 0));
  Must(ticket.Commit(Outcome::Done()));
  Write(file, content);
}

}  // namespace

void SyncDisk() {
  const Fd dir(MustCall(open(test::TestDirectory().c_str(), O_RDONLY | O_CLOEXEC), "open"));
  MustCall(syncfs(dir.get()), "syncfs");
}

std::string SampleContent(size_t bytes) {
  std::string content(bytes, '\0');
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (char& letter : content) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    letter = "etaoin shrdlu\n{}"[state >> 60];
  }
  return content;
}

uint64_t BytesBelow(const std::string& folder) {
  uint64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat st;
    MustCall(lstat(entry.path().c_str(), &st), "lstat");
    total += std::max(static_cast<uint64_t>(st.st_size), static_cast<uint64_t>(st.st_blocks) * 512);
  }
  return total;
}

undo::UndoOptions Keeping(uint32_t max_steps) {
  undo::UndoOptions options;
  options.limits.max_steps = max_steps;
  return options;
}

undo::UndoOptions InlineOptions(uint32_t max_steps) {
  undo::UndoOptions options = Keeping(max_steps);
  options.compression = undo::Compression::kOff;
  return options;
}

// The project.

BenchProject::BenchProject(const undo::UndoOptions& options)
    : plain_root_(workspace_.root() + "/plain") {
  MustCall(mkdir(plain_root_.c_str(), 0755), plain_root_);
  Reopen(options);
}

void BenchProject::Reopen(const undo::UndoOptions& options) {
  log_.reset();  // it holds the lock
  log_ = Must(undo::UndoLog::Open(paths(), options));
}

void BenchProject::OpenStep() { Must(log_->OpenStep({.label = "bench"})); }
void BenchProject::CloseStep() { Must(log_->CloseStep()); }

uint64_t BenchProject::CopiedByNewestStep() const {
  uint64_t copied = 0;
  for (const undo::HistoryEntry& entry : Must(log_->History())) {
    if (entry.step) copied = entry.step->copied_bytes;
  }
  return copied;
}

// The files.

FileSet::FileSet(const std::string& root, std::string_view prefix, size_t count) {
  for (size_t i = 0; i < std::min(count, kFilesPerFolder); ++i) {
    names_.push_back(fmt::format("file_{:02}.txt", i));
  }
  for (size_t made = 0; made < count; made += names_.size()) {
    Folder folder;
    folder.path = fmt::format("{}{:03}", prefix, folders_.size());
    const std::string absolute = root + '/' + folder.path;
    if (mkdir(absolute.c_str(), 0755) != 0) MustCall(errno == EEXIST ? 0 : -1, absolute);
    folder.fd = Fd(MustCall(open(absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), absolute));
    for (size_t i = 0; i < std::min(names_.size(), count - made); ++i) {
      folder.paths.push_back(folder.path + '/' + names_[i]);
    }
    folders_.push_back(std::move(folder));
  }
}

// The plain twins.

void PlainCreate(const FileAt& at, std::string_view content) {
  Write(Open(at, O_WRONLY | O_CREAT | O_EXCL), content);
}

void PlainRemove(const FileAt& at) { MustCall(unlinkat(at.dir, at.name.c_str(), 0), at.path); }

void PlainOverwrite(const FileAt& at, std::string_view content) {
  Write(Open(at, O_WRONLY | O_TRUNC), content);
}

void PlainPatch(const FileAt& at, std::string_view content) { Write(Open(at, O_WRONLY), content); }

void PlainRename(const FileAt& from, const FileAt& to) {
  MustCall(renameat(from.dir, from.name.c_str(), to.dir, to.name.c_str()), from.path);
}

// As a bridge.

void BridgeCreate(Interceptor& interceptor, const FileAt& at, std::string_view content) {
  Ticket ticket =
      Must(interceptor.BeginCreate({{at.dir, at.dir_path}, at.name}, undo::NodeType::kFile));
  const Fd file = Open(at, O_WRONLY | O_CREAT | O_EXCL);
  Must(ticket.Commit(Outcome::Done()));
  Write(file, content);
}

void BridgeRemove(Interceptor& interceptor, const FileAt& at) {
  Ticket ticket = Must(interceptor.BeginRemove({{at.dir, at.dir_path}, at.name}));
  if (!ticket.performed()) PlainRemove(at);
  Must(ticket.Commit(Outcome::Done()));
}

void BridgeOverwrite(Interceptor& interceptor, const FileAt& at, std::string_view content) {
  BridgeWrite(interceptor, at, Truncate::kYes, content);
}

void BridgePatch(Interceptor& interceptor, const FileAt& at, std::string_view content) {
  BridgeWrite(interceptor, at, Truncate::kNo, content);
}

}  // namespace sandglass::bench

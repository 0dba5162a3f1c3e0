// sandglass_demo: deletes a whole project through the undo library and brings it back.
//
// It plays the part that a world's bridge will have: before each change it asks the interceptor,
// then it makes the change, then it says how that went. Exit code 1: something did not come back as
// it was.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "base/result.h"
#include "examples/sample_project.h"
#include "examples/tree_state.h"
#include "undo/interceptor.h"
#include "undo/undo_log.h"

namespace sandglass::demo {
namespace {

// --- What a bridge does.

std::vector<std::string> NamesIn(int dir_fd) {
  std::vector<std::string> names;
  Fd fd(::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return names;
  fd.Release();  // the stream closes it
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

Status RemoveName(undo::Interceptor& interceptor, const undo::NameRef& at, int flags) {
  TRY_ASSIGN(auto ticket, interceptor.BeginRemove(at));
  const std::string name(at.name);
  const int err = ticket.performed() || ::unlinkat(at.dir.fd, name.c_str(), flags) == 0 ? 0 : errno;
  TRY(ticket.Commit(err == 0 ? undo::Outcome::Done() : undo::Outcome::Failed(err)));
  if (err != 0) return Error::FromErrno(err, fmt::format("remove {}", name));
  return Ok();
}

// rm -rf *: what is in the folder, not the folder itself.
Status RemoveAllIn(undo::Interceptor& interceptor, int dir_fd, const std::string& dir) {
  for (const std::string& name : NamesIn(dir_fd)) {
    struct stat info{};
    if (::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::FromErrno(errno, name);
    if (S_ISDIR(info.st_mode)) {
      Fd below(::openat(dir_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!below.valid()) return Error::FromErrno(errno, name);
      TRY(RemoveAllIn(interceptor, below.get(), JoinPath(dir, name)));
    }
    TRY(RemoveName(interceptor, {{dir_fd, dir}, name}, S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0));
  }
  return Ok();
}

// echo text > name
Status Overwrite(undo::Interceptor& interceptor, int root, const std::string& name,
                 std::string_view text) {
  Fd object(::openat(root, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!object.valid()) return Error::FromErrno(errno, name);
  TRY_ASSIGN(auto ticket, interceptor.BeginOpenForWrite({object.get(), name}, undo::Truncate::kYes,
                                                        undo::WriteVisibility::kUnseen));
  Fd file(::openat(root, name.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
  const int err = file.valid() ? 0 : errno;
  TRY(ticket.Commit(err == 0 ? undo::Outcome::Done() : undo::Outcome::Failed(err)));
  if (err != 0) return Error::FromErrno(err, name);
  return WriteFully(file.get(), AsBytes(text));
}

// --- What the demo says.

class Stage {
 public:
  Stage() : colour_(::isatty(STDOUT_FILENO) == 1) {}

  void Say(std::string_view text) const { std::fputs(std::string(text).c_str(), stdout); }
  void Heading(std::string_view text) const { Say(fmt::format("\n{}\n", Styled("1", text))); }
  std::string Good(std::string_view text) const { return Styled("32", text); }
  std::string Bad(std::string_view text) const { return Styled("31", text); }

 private:
  std::string Styled(std::string_view style, std::string_view text) const {
    return colour_ ? fmt::format("\033[{}m{}\033[0m", style, text) : std::string(text);
  }

  bool colour_;
};

std::string Amount(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}
// Each line of `text` indented.
std::string Quoted(std::string_view text) {
  std::string out = "     ";
  for (const char c : text) out += c == '\n' ? std::string("\n     ") : std::string(1, c);
  return out;
}
std::string Entries(size_t count) { return Amount(count, "entry", "entries"); }
std::string ByteCount(uint64_t count) { return Amount(count, "byte", "bytes"); }

class Demo {
 public:
  Demo(const SampleProject& project, std::unique_ptr<undo::UndoLog> log, TreeState original)
      : project_(project),
        log_(std::move(log)),
        original_(std::move(original)),
        root_(::open(project.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  // True: all came back.
  Result<bool> Run() {
    ShowProject();
    TRY(DeleteAll());
    TRY(Undo());
    TRY(RedoAndUndo());
    TRY(MeetAnEdit());
    stage_.Say(all_good_ ? stage_.Good("\nAll of it came back.\n")
                         : stage_.Bad("\nNot everything came back.\n"));
    return all_good_;
  }

 private:
  void ShowProject() const {
    stage_.Heading(fmt::format("1. A project in {}", project_.root()));
    stage_.Say(original_.Drawing());
    stage_.Say(fmt::format(
        "   {}, hash {:016x}. git would bring back neither notes.txt nor config/.env.\n",
        Entries(original_.size()), original_.Hash()));
  }

  Status DeleteAll() {
    stage_.Heading("2. rm -rf *");
    TRY_ASSIGN(StepId id, log_->OpenStep({.label = "rm -rf *"}));
    TRY(RemoveAllIn(log_->interceptor(), root_.get(), ""));
    TRY(log_->CloseStep());
    TRY_ASSIGN(TreeState now, TreeState::Read(project_.root()));
    TRY_ASSIGN(auto history, log_->History());
    const undo::StepInfo& step = *history.back().step;
    stage_.Say(fmt::format(
        "   {} left. Step {} recorded {}: {} deleted; {} copied, {} kept from being freed.\n",
        Entries(now.size()), id.value, step.label, step.counts.deleted,
        ByteCount(step.copied_bytes), ByteCount(step.retained_bytes)));
    return Ok();
  }

  Status Undo() {
    stage_.Heading("3. Undo");
    TRY_ASSIGN(auto report, log_->Rollback(1));
    stage_.Say(fmt::format("   {} taken back, {} made.\n",
                           Amount(report.steps.size(), "step", "steps"),
                           Amount(report.changes.size(), "change", "changes")));
    return CompareWithOriginal();
  }

  Status RedoAndUndo() {
    stage_.Heading("4. Redo, and undo again");
    TRY(log_->Redo(1));
    TRY_ASSIGN(TreeState now, TreeState::Read(project_.root()));
    stage_.Say(fmt::format("   Redone: {} left. Undone again:\n", Entries(now.size())));
    TRY(log_->Rollback(1));
    return CompareWithOriginal();
  }

  // An edit that no step recorded is never lost without being asked for.
  Status MeetAnEdit() {
    stage_.Heading("5. A step changes notes.txt, then a person does");
    TRY(log_->OpenStep({.label = "echo oops > notes.txt"}));
    TRY(Overwrite(log_->interceptor(), root_.get(), "notes.txt", "oops\n"));
    TRY(log_->CloseStep());
    TRY(EditAsAPerson());
    const auto refused = log_->Rollback(1);
    all_good_ = all_good_ && !refused.ok() && refused.error().code() == Code::kConflict;
    stage_.Say(refused.ok() ? stage_.Bad("   Undo went over the person's edit.\n")
                            : fmt::format("   Undo refuses and touches nothing:\n{}\n",
                                          Quoted(refused.error().message())));
    TRY(log_->Rollback(1, undo::Force::kYes));
    stage_.Say("   With force it goes on (redo would bring the edit back):\n");
    return CompareWithOriginal();
  }

  Status EditAsAPerson() const {
    Fd file(::openat(root_.get(), "notes.txt", O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file.valid()) return Error::FromErrno(errno, "edit notes.txt");
    return WriteFully(file.get(), AsBytes("and my own line\n"));
  }

  Status CompareWithOriginal() {
    TRY_ASSIGN(TreeState now, TreeState::Read(project_.root()));
    const auto differences = Differences(original_, now);
    for (const std::string& line : differences)
      stage_.Say(fmt::format("   {}\n", stage_.Bad(line)));
    all_good_ = all_good_ && differences.empty();
    if (!differences.empty()) return Ok();
    stage_.Say(fmt::format(
        "   {} {} bit for bit: contents, modes, owners, times, links, xattrs; hash {:016x}.\n",
        stage_.Good("Identical:"), Entries(now.size()), now.Hash()));
    return Ok();
  }

  Stage stage_;
  const SampleProject& project_;
  std::unique_ptr<undo::UndoLog> log_;
  TreeState original_;
  Fd root_;
  bool all_good_ = true;
};

Result<bool> RunDemo() {
  Stage().Say(
      "First the undo library alone: this program makes the changes itself and tells the library "
      "about\n"
      "each one, as the bridge of a world does.\n");
  TRY_ASSIGN(SampleProject project, SampleProject::Make());
  TRY_ASSIGN(TreeState original, TreeState::Read(project.root()));
  TRY_ASSIGN(auto log, undo::UndoLog::Open({.project = project.root(), .store = project.store()}));
  return Demo(project, std::move(log), std::move(original)).Run();
}

}  // namespace
}  // namespace sandglass::demo

int main() {
  const auto good = sandglass::demo::RunDemo();
  if (!good.ok()) std::fprintf(stderr, "sandglass_demo: %s\n", good.error().ToString().c_str());
  return good.ok() && *good ? 0 : 1;
}

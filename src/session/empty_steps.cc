#include "session/empty_steps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/io.h"
#include "base/json.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;
constexpr size_t kMaxLine = size_t{1} << 20;

Result<EmptyStep> DecodeLine(std::string_view line) {
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxLine));
  EmptyStep step;
  TRY_ASSIGN(step.id.value, json.GetInt("step"));
  TRY_ASSIGN(step.ended.ns, json.GetInt("ended_ns"));
  const Json* label = json.Find("label");
  if (label == nullptr) return Error(Code::kInvalid, "no label");
  TRY_ASSIGN(step.label, BytesFromJson(*label));
  return step;
}

Status Close(undo::UndoLog& log) {
  auto closed = log.CloseStep();
  if (closed.ok()) return Ok();
  (void)log.AbortStep();  // it stands in the way of the next one
  return closed.error();
}

Status EnterOne(undo::UndoLog& log, const EmptyStep& step) {
  const auto announced =
      log.AnnounceStep({.label = step.label, .id = step.id}, undo::IfUnchanged::kRecorded);
  return announced.ok() ? Close(log) : Status(announced.error());
}

// Whoever was killed had begun it, so the log took it back and offers to do it again. Of an empty step that is nothing, and would keep
// the others out of the history.
Status EnterInPlaceOf(undo::UndoLog& log, const EmptyStep& interrupted) {
  const auto opened = log.OpenStep({.label = interrupted.label, .id = interrupted.id});
  return opened.ok() ? Close(log) : Status(opened.error());
}

Error NotInHistory(const EmptyStep& step, const Error& why) {
  return Error(why.code(), fmt::format("step {}, which changed nothing, is not in the history: {}",
                                       step.id.value, why.message()));
}

}  // namespace

Instant PastClock::Now() const {
  const int64_t past = past_ns_;
  return past == kNow ? system_.Now() : Instant{past};
}

std::string EncodeEmptyStep(const EmptyStep& step) {
  return WriteJson(Json::Object({{"step", step.id.value},
                                 {"ended_ns", step.ended.ns},
                                 {"label", BytesToJson(step.label)}})) +
         "\n";
}

std::vector<EmptyStep> DecodeEmptySteps(std::string_view text) {
  std::vector<EmptyStep> steps;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    if (auto step = DecodeLine(text.substr(0, end)); step.ok()) steps.push_back(std::move(*step));
  }
  return steps;
}

EmptySteps::~EmptySteps() {
  if (file_ && steps_.empty()) ::unlink(path().c_str());
}

std::string EmptySteps::path() const { return fmt::format("{}/{}", store_, kEmptyStepsName); }

void EmptySteps::PutOff(EmptyStep step) {
  (void)Append(step);  // what does not get there now may get into the history later
  steps_.push_back(std::move(step));
}

Status EmptySteps::Append(const EmptyStep& step) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  if (!file_) file_ = Fd(::open(path().c_str(), kFlags, 0600));
  if (!file_) return Error::FromErrno(errno, "open " + path());
  return WriteFully(file_.get(), AsBytes(EncodeEmptyStep(step)));
}

Status EmptySteps::Enter() {
  Status all;
  for (const EmptyStep& step : std::exchange(steps_, {})) {
    clock_.StandAt(step.ended);
    if (const Status entered = EnterOne(log_, step); !entered.ok() && all.ok())
      all = NotInHistory(step, entered.error());
  }
  clock_.GoOn();
  // Left there, they would be found in the history already.
  if (file_) (void)::ftruncate(file_.get(), 0);
  return all;
}

Status EnterLeftSteps(const std::string& store, undo::UndoLog& log) {
  const Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto text = ReadFileAt(folder.get(), kEmptyStepsName, kMaxFile);
  if (!text.ok()) return text.error().code() == Code::kNotFound ? Ok() : Status(text.error());
  const std::optional<StepId> interrupted = log.recovery().step;
  Status all;
  for (const EmptyStep& step : DecodeEmptySteps(*text)) {
    // Whoever was killed had made it already; it may even have gone again to make room.
    if (step.id != interrupted && step.id < log.next_step_id()) continue;
    const Status entered = step.id == interrupted ? EnterInPlaceOf(log, step) : EnterOne(log, step);
    if (!entered.ok() && all.ok()) all = NotInHistory(step, entered.error());
  }
  ForgetLeftSteps(folder.get());
  return all;
}

void ForgetLeftSteps(int store_dir) {
  struct stat file{};
  if (::fstatat(store_dir, kEmptyStepsName, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(file.st_mode))
    ::unlinkat(store_dir, kEmptyStepsName, 0);
}

}  // namespace sandglass::session

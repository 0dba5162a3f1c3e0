#include "session/bridge_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/open_log.h"

namespace sandglass::session {
namespace {

constexpr std::chrono::milliseconds kTellEvery{50};

std::string AnswerWith(const RewindAnswer& answer) { return Encode(answer); }

template <class Answer>
std::string AnswerWith(const Result<Answer>& answer) {
  return answer.ok() ? Encode(*answer) : Encode(Refused(answer.error()));
}

}  // namespace

Result<std::unique_ptr<BridgeServer>> BridgeServer::Open(
    const std::vector<undo::UndoPaths>& projects, undo::UndoOptions options) {
  std::unique_ptr<BridgeServer> server(new BridgeServer());
  options.observer = &server->notices_;
  options.progress = [raw = server.get()](const undo::RewindProgress& at) { raw->Tell(at); };
  std::vector<bridge::ProjectSpec> specs;
  for (const undo::UndoPaths& paths : projects) {
    TRY_ASSIGN(auto log, OpenLogSoon(paths, options));
    specs.push_back({paths.project, &log->interceptor()});
    server->projects_.push_back({.path = paths.project, .log = std::move(log)});
  }
  TRY_ASSIGN(server->supervisor_, bridge::Supervisor::Create(specs));
  for (size_t i = 0; i < server->projects_.size(); ++i) {
    // What processes of the world still have open for writing when a step closes, and write unseen.
    server->projects_[i].log->SetLiveWriterSource(
        [supervisor = server->supervisor_.get(), i] { return supervisor->LiveWriters(i); });
  }
  return server;
}

BridgeServer::~BridgeServer() {
  Settle();
  commands_.clear();
  // Left open, the next open of the log closes it.
  for (Project& project : projects_) (void)project.log->CloseAmbientStep();
}

Opened BridgeServer::opened() const {
  Opened opened;
  for (const Project& project : projects_) opened.recoveries.push_back(project.log->recovery());
  opened.next = NextId();
  return opened;
}

std::string BridgeServer::Answer(const BridgeRequest& request, Fd passed, const SendBefore& send) {
  Settle();
  const auto* rewind = std::get_if<RewindRequest>(&request);
  if (rewind != nullptr && rewind->progress == ProgressWanted::kYes) send_ = &send;
  std::string answer =
      std::visit([&](const auto& ask) { return AnswerWith(Do(ask, std::move(passed))); }, request);
  send_ = nullptr;
  return answer;
}

void BridgeServer::Tell(const undo::RewindProgress& progress) {
  const Instant now = clock_.Now();
  if (send_ == nullptr || now < told_ + kTellEvery) return;
  told_ = now;
  (*send_)(Encode(progress));
}

Result<Done> BridgeServer::Do(const Supervise& ask, Fd listener) {
  if (!listener) return Error(Code::kInvalid, "a command without its listener");
  if (commands_.contains(ask.command))
    return Error(Code::kExists, fmt::format("command {} has a listener", ask.command.value));
  TRY_ASSIGN(auto command, supervisor_->Supervise(std::move(listener), ask.world));
  commands_.emplace(ask.command, std::move(command));
  return Done{};
}

Result<Done> BridgeServer::Do(const Forget& ask, Fd) {
  commands_.erase(ask.command);
  return Done{};
}

Result<Done> BridgeServer::Do(const Announce& ask, Fd) {
  for (Project& project : projects_) {
    auto announced =
        project.log->AnnounceStep({.label = ask.label, .id = ask.step}, ask.if_unchanged);
    if (!announced.ok()) return announced.error();
    project.has_step = true;
  }
  announced_ = ask;
  return Done{};
}

Result<Closed> BridgeServer::Do(const CloseStep& ask, Fd) {
  if (commands_.empty()) supervisor_->ForgetWriters();
  Closed closed{.changed = MayHaveChanged()};
  closes_later_ = ask.empty_entry == EmptyEntry::kLater && IsEmptyForSure();
  if (!closes_later_) TRY(CloseAll());
  closed.next = NextId();
  if (closes_later_) closed.next = std::max(closed.next, StepId{announced_.step.value + 1});
  closed.notices = notices_.Take();
  if (std::string refused = supervisor_->TakeRefusals(); !refused.empty())
    closed.notices.push_back("a change was refused: " + refused);
  return closed;
}

// What processes wrote to files that they had open before is seen when it closes.
bool BridgeServer::MayHaveChanged() const {
  return HasBegun() || std::ranges::any_of(projects_, [](const Project& project) {
           return project.has_step && project.log->has_shadows();
         });
}

// It has not begun, nobody is left who could begin it, and it will have its entry, so that its id is used.
bool BridgeServer::IsEmptyForSure() const {
  const bool recorded = announced_.if_unchanged == undo::IfUnchanged::kRecorded;
  return recorded && commands_.empty() && !MayHaveChanged() &&
         std::ranges::all_of(projects_, [](const Project& project) {
           return project.has_step && !project.log->open_step() && project.log->redo_depth() == 0;
         });
}

void BridgeServer::Settle() {
  if (!std::exchange(closes_later_, false)) return;
  const Status closed = CloseAll();
  if (!closed.ok())
    notices_.Add(fmt::format("step {}, which changed nothing, is not in the history: {}",
                             announced_.step.value, closed.error().message()));
}

// In all projects, whatever fails in one of them; the first failure is told.
Status BridgeServer::CloseAll() {
  Status all;
  for (Project& project : projects_) {
    if (!std::exchange(project.has_step, false)) continue;
    auto closed = project.log->CloseStep();
    if (!closed.ok() && all.ok()) all = closed.error();
  }
  return all;
}

bool BridgeServer::HasBegun() const {
  return std::ranges::any_of(projects_, [](const Project& project) {
    return project.has_step && project.log->open_step().has_value();
  });
}

StepId BridgeServer::NextId() const {
  StepId next{1};
  for (const Project& project : projects_) next = std::max(next, project.log->next_step_id());
  return next;
}

Result<Position> BridgeServer::Do(const AskPosition&, Fd) {
  return Position{.next = NextId(), .begun = HasBegun()};
}

Result<Ended> BridgeServer::Do(const End&, Fd) { return Ended{.notices = notices_.Take()}; }

RewindAnswer BridgeServer::Do(const RewindRequest& request, Fd) {
  const auto project = std::ranges::find(projects_, request.project, &Project::path);
  if (project == projects_.end())
    return Refused(
        Error(Code::kNotFound, fmt::format("this session may not change {}", request.project)));
  return Perform(*project->log, request);
}

}  // namespace sandglass::session

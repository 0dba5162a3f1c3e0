#include "session/bridge_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/file_write.h"
#include "session/open_log.h"

namespace sandglass::session {
namespace {

constexpr std::chrono::milliseconds kTellEvery{50};
// Whoever runs one command after the other has asked for the next one by then.
constexpr std::chrono::milliseconds kQuiet{10};

// An ambient step may have closed since: other steps begin whether or not it was held.
std::string DenialNotice(const undo::SafeguardQuestion& question) {
  if (question.step.value < 0)
    return fmt::format(
        "safeguard {} stopped a process that an earlier command left behind: it was "
        "not confirmed",
        undo::SafeguardName(question.kind));
  return fmt::format(
      "safeguard {} stopped step {}: it was not confirmed, and all that it did was taken back",
      undo::SafeguardName(question.kind), question.step.value);
}

// The library does not know by which words a person sets its limits.
std::string RefusalNotice(const Error& refused) {
  std::string text = "a change was refused: " + refused.message();
  if (refused.code() == Code::kLimit)
    text +=
        "; undo.max_single_step_size_bytes in sandglass.toml raises the limit, undo.on_oversize = "
        "\"unprotected\" goes on without undo, --no-undo-for leaves paths out";
  return text;
}

std::optional<std::string> AnswerWith(const RewindAnswer& answer) { return Encode(answer); }

// Nobody waits for it.
std::optional<std::string> AnswerWith(const Status& done) {
  if (done.ok()) return std::nullopt;
  return Encode(Failed{done.error()});
}

template <class Answer>
std::optional<std::string> AnswerWith(const Result<Answer>& answer) {
  return answer.ok() ? Encode(*answer) : Encode(Refused(answer.error()));
}

}  // namespace

Result<std::unique_ptr<BridgeServer>> BridgeServer::Open(
    const std::vector<undo::UndoPaths>& projects, undo::UndoOptions options,
    const WatchOptions& watch, TellExternal tell, int questions) {
  std::unique_ptr<BridgeServer> server(new BridgeServer());
  server->watching_ = watch.watching;
  options.clock = &server->past_clock_;
  options.steady_clock = &server->clock_;
  options.progress = [raw = server.get()](const undo::RewindProgress& at) { raw->Tell(at); };
  if (questions >= 0) {
    server->asking_ = std::make_unique<AskingSafeguards>(
        questions, projects.size(), options.safeguards.timeout,
        AskingSafeguards::Hooks{
            .who = [raw = server.get()] { return raw->CommandServedHere(); },
            .denied =
                [raw = server.get()](const undo::SafeguardQuestion& question) {
                  raw->notices_.Add(DenialNotice(question));
                },
            .begin_hold = [raw = server.get()] { raw->supervisor_->BeginHold(); },
            .end_hold = [raw = server.get()] { raw->supervisor_->EndHold(); }});
  }
  std::vector<bridge::ProjectSpec> specs;
  for (const undo::UndoPaths& paths : projects) {
    auto observer = std::make_unique<ProjectWatch>(paths, watch, server->notices_, tell);
    options.observer = observer.get();
    if (server->asking_)
      options.safeguard_handler = &server->asking_->handler(server->projects_.size());
    TRY_ASSIGN(auto log, OpenLogSoon(paths, options));
    specs.push_back({paths.project, &log->interceptor()});
    server->book_.Add(*log, paths.store);
    server->projects_.push_back(
        {.path = paths.project, .watch = std::move(observer), .log = std::move(log)});
  }
  server->options_ = std::move(options);
  TRY_ASSIGN(server->supervisor_, bridge::Supervisor::Create(specs));
  for (size_t i = 0; i < server->projects_.size(); ++i) {
    // What processes of the world still have open for writing when a step closes, and write unseen.
    server->projects_[i].log->SetLiveWriterSource(
        [supervisor = server->supervisor_.get(), i] { return supervisor->LiveWriters(i); });
  }
  server->supervisor_->SetBeforeCall([book = &server->book_] { return book->BeforeCall(); });
  return server;
}

BridgeServer::~BridgeServer() {
  if (asking_) asking_->DenyAll();  // nobody answers any more, and below their end is waited for
  watching_ = Watching::kOff;
  for (Project& project : projects_) project.watch->End();
  while (!commands_.empty()) (void)Do(Forget{commands_.begin()->first}, Fd());
  book_.EnterAll();
  // Left open, the next open of the log closes it.
  for (Project& project : projects_) (void)project.log->CloseAmbientStep();
}

Opened BridgeServer::opened() const {
  Opened opened;
  for (const Project& project : projects_) opened.recoveries.push_back(project.log->recovery());
  opened.next = book_.NextId();
  return opened;
}

std::optional<std::string> BridgeServer::Answer(const BridgeRequest& request, Fd passed,
                                                const SendBefore& send) {
  const auto* rewind = std::get_if<RewindRequest>(&request);
  if (rewind != nullptr && rewind->progress == ProgressWanted::kYes) send_ = &send;
  auto answer =
      std::visit([&](const auto& ask) { return AnswerWith(Do(ask, std::move(passed))); }, request);
  send_ = nullptr;
  return answer;
}

Status BridgeServer::AwaitRequest(int channel) {
  StartWatching();
  while (true) {
    std::vector<bridge::SupervisedCommand*> unserved;
    std::vector<pollfd> fds = {{channel, POLLIN, 0}};
    for (const auto& [id, command] : commands_) {
      if (command->unserved() < 0) continue;
      unserved.push_back(command.get());
      fds.push_back({command->unserved(), POLLIN, 0});
    }
    const int ready = ::poll(fds.data(), fds.size(), Patience());
    for (size_t i = 0; i < unserved.size(); ++i) {
      if (ready > 0 && fds[i + 1].revents != 0) TRY(unserved[i]->Serve());
    }
    if (ready == 0) book_.EnterAll();
    if (ready > 0 && fds[0].revents != 0) return Ok();
  }
}

// Milliseconds; -1 for ever.
int BridgeServer::Patience() const {
  const auto enter_by = book_.EnterBy();
  if (!enter_by) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*enter_by - clock_.Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kQuiet.count()));
}

void BridgeServer::Tell(const undo::RewindProgress& progress) {
  const Instant now = clock_.Now();
  if (send_ == nullptr || now < told_ + kTellEvery) return;
  told_ = now;
  (*send_)(Encode(progress));
}

Status BridgeServer::Do(const Supervise& ask, Fd listener) {
  if (!listener) return Error(Code::kInvalid, "a command without its listener");
  if (commands_.contains(ask.command))
    return Error(Code::kExists, fmt::format("command {} has a listener", ask.command.value));
  TRY_ASSIGN(auto command,
             supervisor_->Supervise(std::move(listener), ask.world, bridge::Serving::kOnceCalled));
  MutexLock lock(commands_mutex_);
  commands_.emplace(ask.command, std::move(command));
  return Ok();
}

Status BridgeServer::Do(const Forget& ask, Fd) {
  std::unique_ptr<bridge::SupervisedCommand> command;
  {
    MutexLock lock(commands_mutex_);
    const auto found = commands_.find(ask.command);
    if (found == commands_.end()) return Ok();
    command = std::move(found->second);
    commands_.erase(found);
  }
  // What it asked and the session has not seen yet would keep its worker, and the session waits for us.
  if (asking_) asking_->DenyCommand(ask.command);
  return Ok();
}

StepId BridgeServer::CommandServedHere() const {
  MutexLock lock(commands_mutex_);
  for (const auto& [id, command] : commands_) {
    if (command->IsServedHere()) return id;
  }
  return {0};
}

Status BridgeServer::Do(const Announce& ask, Fd) {
  if (asking_) asking_->BeginStep(ask.step);
  return book_.Announce(ask);
}

Result<Closed> BridgeServer::Do(const CloseStep& ask, Fd) {
  const StepId step = book_.announced();
  if (asking_ && !asking_->BeginClose(step))
    return Error(Code::kBusy, fmt::format("an operation of step {} is held", step.value));
  if (commands_.empty()) supervisor_->ForgetWriters();
  Closed closed;
  TRY_ASSIGN(
      closed.changed,
      book_.Close(ask.empty_entry, commands_.empty() ? Left::kNone : Left::kSome,
                  asking_ && asking_->TakeDenied(step) ? Ending::kTakenBack : Ending::kKept));
  closed.next = book_.NextId();
  closed.notices = notices_.Take();
  if (const auto refused = supervisor_->TakeRefusals())
    closed.notices.push_back(RefusalNotice(*refused));
  closed.unprotected = notices_.TakeUnprotected(step);
  return closed;
}

// Nothing is watched before a command runs: until then nobody waits for anything that could be told.
void BridgeServer::StartWatching() {
  if (watching_ == Watching::kOff || commands_.empty()) return;
  for (size_t i = 0; i < projects_.size(); ++i) {
    Project& project = projects_[i];
    if (project.watch->has_begun()) continue;
    project.watch->Begin(*project.log, options_, activity_,
                         [supervisor = supervisor_.get(), i](dev_t device, ino_t inode) {
                           return supervisor->IsLiveWriter(i, device, inode);
                         });
  }
}

Result<Position> BridgeServer::Do(const AskPosition&, Fd) {
  return Position{.next = book_.NextId(), .begun = book_.HasBegun()};
}

Result<Position> BridgeServer::Do(const EnterSteps&, Fd) {
  book_.EnterAll();
  return Do(AskPosition{}, Fd());
}

Result<Written> BridgeServer::Do(const WriteRequest& ask, Fd content) {
  book_.EnterAll();
  const LogActivity::Busy busy(activity_);
  const auto project = std::ranges::find(projects_, ask.project, &Project::path);
  if (project == projects_.end())
    return Error(Code::kNotFound, fmt::format("this session may not change {}", ask.project));
  TRY(WriteFileAsStep(*project->log, ask, content));
  return Written{.notices = notices_.Take(), .next = book_.NextId()};
}

Result<Ended> BridgeServer::Do(const End&, Fd) {
  book_.EnterAll();
  return Ended{.notices = notices_.Take()};
}

RewindAnswer BridgeServer::Do(const RewindRequest& request, Fd) {
  book_.EnterAll();
  const LogActivity::Busy busy(activity_);
  const auto project = std::ranges::find(projects_, request.project, &Project::path);
  if (project == projects_.end())
    return Refused(
        Error(Code::kNotFound, fmt::format("this session may not change {}", request.project)));
  return Perform(*project->log, request);
}

}  // namespace sandglass::session

#include "api/mcp/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/mcp/envelope.h"
#include "api/mcp/random_name.h"

namespace sandglass::api::mcp {
namespace {

constexpr size_t kMaxSuspended = 64;
// Results that say how long they hold, where the version has that.
constexpr std::string_view kCacheable[] = {"server/discover", "tools/list",
                                           "prompts/list",    "resources/list",
                                           "resources/read",  "resources/templates/list"};

}  // namespace

Request::Request(Message message, Links links)
    : message_(std::move(message)), links_(std::move(links)) {}

// --- The answer

void Request::Succeed(Json result) { Answer(std::move(result)); }

void Request::Fail(ApiError error) {
  Json data = error.data;
  data.Set("code", NameOf(error.code));
  Answer(ProtocolError{JsonRpcNumber(error.code), std::move(error.message), std::move(data)});
}

void Request::Fail(const ProtocolError& error) { Answer(error); }

void Request::Answer(Outcome outcome) {
  CHECK(!outcome_);
  outcome_ = std::move(outcome);
  on_cancel_ = nullptr;
  needed_.clear();
  if (state_ == State::kOpen) Deliver();  // else when it is sent again
}

void Request::Deliver() {
  state_ = State::kAnswered;
  WithdrawQuestions();
  if (is_cancelled_) return links_.exchange->Answer(std::nullopt);
  if (const auto* error = std::get_if<ProtocolError>(&*outcome_))
    return links_.exchange->Answer(ErrorMessage(id(), *error));
  links_.exchange->Answer(ResultMessage(id(), Stamped(std::get<Json>(std::move(*outcome_)))));
}

Json Request::Stamped(Json result) const {
  if (version().stateless == Has::kNo) return result;
  if (result.Find("resultType") == nullptr) result.Set("resultType", "complete");
  if (std::ranges::find(kCacheable, method()) != std::end(kCacheable))
    result.Set("ttlMs", 0).Set("cacheScope", "private");
  const Json* given = result.Find("_meta");
  Json meta = given != nullptr ? *given : Json::Object();
  return result.Set("_meta", meta.Set(kServerKey, *links_.server));
}

void Request::Notify(std::string_view method, Json params) {
  if (is_answered() || is_cancelled_ || !links_.exchange->has_room()) return;
  links_.exchange->Send(NotificationMessage(method, std::move(params)));
}

// --- Questions

const Json* Request::CanAsk(std::string_view capability) const {
  const bool has_means = version().stateless == Has::kYes || links_.exchange->can_send();
  return has_means ? links_.client->capabilities.Find(capability) : nullptr;
}

void Request::Ask(std::string_view method, Json params, Questions::Then then) {
  if (outcome_ || is_cancelled_) return then(nullptr);
  if (version().stateless == Has::kYes) {
    needed_.push_back({fmt::format("question-{}-{}", round_, needed_.size()), std::string(method),
                       std::move(params), std::move(then)});
    if (state_ == State::kOpen) Suspend();
    return;
  }
  asked_.push_back(links_.questions->Add(std::move(then)));
  links_.exchange->Send(RequestMessage(asked_.back(), method, std::move(params)));
}

void Request::WithdrawQuestions() {
  for (const std::string& id : std::exchange(asked_, {})) {
    if (links_.questions->Withdraw(id))
      links_.exchange->Send(
          NotificationMessage("notifications/cancelled", Json::Object({{"requestId", id}})));
  }
}

void Request::Suspend() {
  Json needed = Json::Object();
  for (const Question& question : needed_)
    needed.Set(question.key,
               Json::Object({{"method", question.method}, {"params", question.params}}));
  state_ = State::kSuspended;
  links_.exchange->Answer(ResultMessage(
      id(), Stamped(Json::Object({{"resultType", "input_required"},
                                  {"inputRequests", std::move(needed)},
                                  {"requestState", links_.suspended->Add(shared_from_this())}}))));
}

void Request::Resume(Message message, std::shared_ptr<Exchange> exchange) {
  message_ = std::move(message);
  links_.exchange = std::move(exchange);
  state_ = State::kOpen;
  ++round_;
  if (outcome_) return Deliver();
  const Json* responses = params().Find("inputResponses");
  for (const Question& question : std::exchange(needed_, {}))
    question.then(responses != nullptr ? responses->Find(question.key) : nullptr);
  if (state_ == State::kOpen && !needed_.empty()) Suspend();
}

void Request::Abandon() {
  for (const Question& question : std::exchange(needed_, {})) question.then(nullptr);
}

void Request::Cancel() {
  if (is_answered() || std::exchange(is_cancelled_, true)) return;
  for (const std::string& id : std::exchange(asked_, {}))
    links_.questions->Answer(Json(id), nullptr);
  if (const auto then = std::exchange(on_cancel_, nullptr)) then();
}

// --- Suspended requests

std::string SuspendedRequests::Add(std::shared_ptr<Request> request) {
  if (waiting_.size() >= kMaxSuspended) {
    const auto oldest = std::move(waiting_.front().request);
    waiting_.erase(waiting_.begin());
    oldest->Abandon();
  }
  waiting_.push_back({RandomName(), std::move(request)});
  return waiting_.back().name;
}

std::shared_ptr<Request> SuspendedRequests::Take(const std::string& name) {
  const auto found = std::ranges::find(waiting_, name, &Waiting::name);
  if (found == waiting_.end()) return nullptr;
  auto request = std::move(found->request);
  waiting_.erase(found);
  return request;
}

}  // namespace sandglass::api::mcp

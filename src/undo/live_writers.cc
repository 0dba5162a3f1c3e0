// LogCore's live writers: processes that still have a file open for writing when a step ends. What they do goes unseen, so shadows
// (shadows.h) tell at each boundary what they did.

#include <fmt/format.h>

#include "undo/link_index.h"
#include "undo/log_core.h"

namespace sandglass::undo {

Status LogCore::SettleShadows(StepWriter& writer) {
  TRY_ASSIGN(auto changed, shadows_.Changed());
  for (const ObjectId& id : changed) {
    TRY_ASSIGN(std::string path, shadows_.PathOf(id));
    if (path.empty())
      continue;  // it lost its name: that operation took the shadow along, or nobody can see it
    TRY_ASSIGN(OpenObject object, shadows_.Reopen(id));
    TRY(writer.TouchMeta(object, path, TouchReason::kDirect));
    // The step has adopted the shadow, so whoever writes on needs a new one.
    if (MayHaveWriter(object)) WatchWriter(object);
  }
  return RenewShadows(Renewal::kStale);  // what is still open: the next interval starts from here
}

void LogCore::DropIdleShadows() {
  for (const ObjectId& id : shadows_.All()) {
    auto object = shadows_.Reopen(id);
    if (!object.ok() || !MayHaveWriter(*object)) shadows_.Drop(id);
  }
}

Status LogCore::RenewShadows(Renewal renewal) {
  if (renewal != Renewal::kOurs) DropIdleShadows();
  for (const ObjectId& id : shadows_.All()) {
    TRY_ASSIGN(OpenObject object, shadows_.Reopen(id));
    if (renewal != Renewal::kAll && shadows_.IsCurrent(object)) continue;
    if (renewal == Renewal::kOurs && !IsAsWeLeftIt(object)) continue;
    WatchWriter(object);
  }
  return Ok();
}

bool LogCore::IsAsWeLeftIt(const OpenObject& object) const {
  const auto signature = objects_.Find(object.id);
  return signature && signature->Matches(object.stat);
}

// Too large, or the disk is full: then that object is not protected any more. A step that could not end for it would help nobody.
void LogCore::WatchWriter(const OpenObject& object) {
  const Status taken = shadows_.Take(object);
  if (!taken.ok()) TellUnprotected(object, taken.error());
}

void LogCore::TellUnprotected(const OpenObject& object, const Error& why) {
  StepId step{0};
  if (current() != nullptr)
    step = current()->header().id;
  else if (!steps_.empty())
    step = steps_.back().header.id;
  const auto path = AnyPathOf(*place_, object);
  std::string text = fmt::format("{}: {}", path.ok() && *path ? **path : "a file", why.message());
  QueueEvent([this, step, text = std::move(text)] { observer_->OnUnprotected(step, text); });
}

Status LogCore::SettleBetweenSteps() {
  TRY_ASSIGN(auto changed, shadows_.Changed());
  if (changed.empty()) {
    DropIdleShadows();
    return Ok();
  }
  TRY(OpenLocked({.kind = StepKind::kAmbient, .label = "", .id = std::nullopt}));
  TRY(CloseLocked({}));
  return Ok();
}

Status LogCore::ShadowLiveWriters(std::span<const ObjectRef> live_writers) {
  for (const ObjectRef& ref : live_writers) {
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_->identifier, ref.fd));
    const auto path = AnyPathOf(*place_, object);  // an error: it may have one
    if (!object.stat.IsRegular() || (path.ok() && !*path) || !MayHaveWriter(object)) continue;
    if (shadows_.IsCurrent(object)) continue;
    // The writer has its descriptor already: there is nothing left to refuse or to ask.
    if (Status taken = shadows_.Take(object); !taken.ok()) TellUnprotected(object, taken.error());
  }
  return Ok();
}

}  // namespace sandglass::undo

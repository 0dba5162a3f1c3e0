#include "undo/name_trail.h"

#include <algorithm>

#include "base/rel_path.h"

namespace sandglass::undo {
namespace {

// `path` with the folder `from` above it exchanged for `to`.
std::string Rebase(std::string_view path, std::string_view from, std::string_view to) {
  if (path.size() == from.size()) return std::string(to);
  return JoinPath(to, path.substr(from.empty() ? 0 : from.size() + 1));
}

}  // namespace

NameTrail::NameTrail(const StepView& view) {
  for (size_t i = 0; i < view.journal().size(); ++i) {
    if (auto record = view.journal().At(i); record.ok()) Apply(*record, view);
  }
  for (const auto& [path, origin] : origins_.map()) {
    if (!origin.born) ends_[origin.path] = {.kind = End::Kind::kHere, .path = path, .object = {}};
  }
}

void NameTrail::Apply(const Record& record, const StepView& view) {
  using Kind = End::Kind;
  if (const auto* create = std::get_if<CreateRecord>(&record)) {
    if (!view.Outcome(create->seq).failed()) Create(JoinPath(create->at.dir, create->at.name));
  } else if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
    if (view.Outcome(remove->seq).failed()) return;
    Remove(JoinPath(remove->at.dir, remove->at.name),
           {Kind::kGone, {}, remove->object, remove->kept, remove->anchor});
  } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
    if (!view.Outcome(rename->seq).failed()) Rename(*rename);
  } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
    if (view.Outcome(replace->seq).failed()) return;
    const std::string path = JoinPath(replace->at.dir, replace->at.name);
    Remove(path, {Kind::kGone, {}, replace->old_object, Kept::kAnchor, replace->anchor});
    Create(path);
  }
}

NameTrail::Origin NameTrail::OriginOf(std::string_view path) const {
  for (std::string_view up = path;; up = ParentOf(up)) {
    if (const Origin* origin = origins_.Find(up)) {
      if (origin->born) return *origin;
      return {.born = false, .path = Rebase(path, up, origin->path)};
    }
    if (up.empty()) return {.born = false, .path = std::string(path)};
  }
}

void NameTrail::Place(const std::string& path, const Origin& origin) {
  origins_[path] = origin;
  // Where it is in the end is filled in at the end; until then the entry says that the name was not free.
  if (!origin.born) ends_[origin.path] = {};
}

void NameTrail::NoteFree(const std::string& path) {
  const Origin origin = OriginOf(path);
  if (!origin.born)
    ends_.try_emplace(origin.path, End{.kind = End::Kind::kNever, .path = {}, .object = {}});
}

void NameTrail::Create(const std::string& path) {
  NoteFree(path);
  origins_.TakeBelow(path);
  origins_[path] = {.born = true, .path = {}};
}

void NameTrail::Remove(const std::string& path, const End& end) {
  const Origin origin = OriginOf(path);
  if (!origin.born) ends_[origin.path] = end;
  origins_.TakeBelow(path);
  origins_.Erase(path);
}

void NameTrail::Rename(const RenameRecord& r) {
  const std::string from = JoinPath(r.from.dir, r.from.name), to = JoinPath(r.to.dir, r.to.name);
  if (r.exchange != 0) return Exchange(from, to);
  const Origin origin = OriginOf(from);
  if (r.target != kNoObject)
    Remove(to, {End::Kind::kGone, {}, r.target, r.target_kept, r.anchor});
  else
    NoteFree(to);
  origins_.TakeBelow(to);
  origins_.MoveBelow(from, to);
  origins_.Erase(from);
  Place(to, origin);
}

void NameTrail::Exchange(const std::string& a, const std::string& b) {
  const Origin was_a = OriginOf(a), was_b = OriginOf(b);
  origins_.SwapBelow(a, b);
  Place(a, was_b);
  Place(b, was_a);
}

NameTrail::End NameTrail::Follow(std::string_view path) const {
  for (std::string_view up = path;; up = ParentOf(up)) {
    if (const auto found = ends_.find(up); found != ends_.end()) {
      const End& end = found->second;
      if (up.size() == path.size()) return end;
      // A folder that went was empty by then: what had been in it has ends of its own.
      if (end.kind != End::Kind::kHere)
        return {.kind = End::Kind::kNever, .path = {}, .object = {}};
      return {.kind = End::Kind::kHere, .path = Rebase(path, up, end.path), .object = {}};
    }
    if (up.empty()) return {.kind = End::Kind::kHere, .path = std::string(path), .object = {}};
  }
}

std::optional<std::string> NameTrail::Back(std::string_view path) const {
  Origin origin = OriginOf(path);
  if (origin.born) return std::nullopt;
  return std::move(origin.path);
}

void NameTrail::ForEachOld(const std::function<void(const std::string&)>& each) const {
  for (const auto& [path, end] : ends_) each(path);
}

void NameTrail::ForEachNew(const std::function<void(const std::string&)>& each) const {
  for (const auto& [path, origin] : origins_.map()) each(path);
}

EarlierNames::EarlierNames(const StepView& view) {
  view.journal().ForEachOf<RenameRecord>([&](const RenameRecord& r, size_t index) {
    if (view.Outcome(r.seq).failed()) return;
    renames_.push_back({.index = index,
                        .from = JoinPath(r.from.dir, r.from.name),
                        .to = JoinPath(r.to.dir, r.to.name),
                        .exchange = r.exchange != 0});
  });
}

std::string EarlierNames::Before(size_t index, std::string path) const {
  auto end = std::lower_bound(renames_.begin(), renames_.end(), index,
                              [](const Rename& r, size_t at) { return r.index < at; });
  while (end != renames_.begin()) {
    const Rename& r = *--end;
    if (IsBeneath(path, r.to))
      path = Rebase(path, r.to, r.from);
    else if (r.exchange && IsBeneath(path, r.from))
      path = Rebase(path, r.from, r.to);
  }
  return path;
}

}  // namespace sandglass::undo

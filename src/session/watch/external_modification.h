// ExternalModification: files of a project were changed by something else than the session's world. What a watcher saw, and what undo
// found out when a step closed, is told in this form to whoever listens: the program that started the session, and people.
//
// It travels from the bridge process, which handles what commands hand in, to the session: decoding trusts nothing. Value types and
// pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace sandglass::session {

enum class ExternalKind : uint8_t { kCreated, kContent, kMetadata, kRemoved };
std::string_view ExternalKindName(ExternalKind kind);

// A set of them.
class ExternalKinds {
 public:
  ExternalKinds() = default;
  ExternalKinds(ExternalKind kind)  // NOLINT(google-explicit-constructor): a set of one
      : bits_(static_cast<uint8_t>(1U << static_cast<unsigned>(kind))) {}
  bool Has(ExternalKind kind) const { return (bits_ & ExternalKinds(kind).bits_) != 0; }
  void Add(ExternalKinds others) { bits_ |= others.bits_; }
  bool empty() const { return bits_ == 0; }
  friend bool operator==(ExternalKinds, ExternalKinds) = default;

 private:
  uint8_t bits_ = 0;
};

enum class Extent : uint8_t {
  kPaths,
  kWholeTree,  // the watcher lost track: anything may have changed
};

struct ExternalModification {
  std::string project;  // its real path
  Extent extent = Extent::kPaths;
  std::vector<std::string> affected_paths;  // relative to the project; the first kMaxToldPaths
  uint64_t affected = 0;                    // how many there are in all
  // The history has one barrier at each place between two steps: this one stands behind that step. nullopt: the policy is `warn`, or
  // there is no step that could be undone.
  std::optional<StepId> barrier;
  ExternalKinds kinds;  // empty: undo found it by comparing, and does not tell

  friend bool operator==(const ExternalModification&, const ExternalModification&) = default;
};
using TellExternal = std::function<void(const ExternalModification&)>;

inline constexpr size_t kMaxToldPaths = 100;
inline constexpr size_t kMaxToldPathBytes = size_t{32} << 10;  // all of them together
inline constexpr size_t kMaxEventBytes = size_t{128} << 10;

// As many of the paths as may be told, and how many there are.
void SetPaths(const std::vector<std::string>& paths, ExternalModification& event);

std::string Encode(const ExternalModification& event);
// kLimit, kInvalid.
Result<ExternalModification> DecodeExternalModification(std::string_view text);

// For people, on one line.
std::string NoticeOf(const ExternalModification& event);

}  // namespace sandglass::session

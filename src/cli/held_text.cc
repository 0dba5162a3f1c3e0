#include "cli/held_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/printable.h"

namespace sandglass::cli {
namespace {

using undo::SafeguardKind;

std::string Counted(uint64_t amount, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", amount, amount == 1 ? one : many);
}

// How many it is about in all; of these only some have their paths here.
uint64_t AllOf(const undo::SafeguardQuestion& question) {
  const bool counts =
      question.kind == SafeguardKind::kDeleteCount || question.kind == SafeguardKind::kRenameOver;
  return std::max<uint64_t>(counts ? question.amount : 0, question.sample_paths.size());
}

std::string WhatItDoes(const undo::SafeguardQuestion& question) {
  switch (question.kind) {
    case SafeguardKind::kDeleteCount:
      return "is about to delete " + Counted(question.amount, "file or folder", "files or folders");
    case SafeguardKind::kOverwriteLarge:
      return fmt::format("is about to overwrite a file of {}", PrintableSize(question.amount));
    case SafeguardKind::kTruncateLarge:
      return fmt::format("is about to empty or shorten a file of {}",
                         PrintableSize(question.amount));
    case SafeguardKind::kRenameOver:
      return "is about to rename over " + Counted(question.amount, "file", "existing files");
    case SafeguardKind::kUndoLimit:
      return "needs more room for its undo than one step may have; if it goes on, it cannot be "
             "undone exactly";
  }
  return "";
}

}  // namespace

std::string HeldSentence(const undo::SafeguardQuestion& question) {
  if (question.step.value < 0)
    return fmt::format("a process that an earlier command left behind {}", WhatItDoes(question));
  return fmt::format("step {} {}", question.step.value, WhatItDoes(question));
}

std::string SampleText(const undo::SafeguardQuestion& question, size_t most) {
  const std::vector<std::string>& paths = question.sample_paths;
  const size_t shown = std::min(most, paths.size());
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += fmt::format("  {}\n", PrintableName(paths[i]));
  if (AllOf(question) > shown) text += fmt::format("  and {} more\n", AllOf(question) - shown);
  return text;
}

std::string HeldText(const std::vector<session::HeldOperation>& held) {
  std::string text;
  for (const session::HeldOperation& one : held) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(one.left);
    text += fmt::format("{}  {}; denied in {} s\n", PrintableName(one.id),
                        HeldSentence(one.question), left.count());
    text += SampleText(one.question, one.question.sample_paths.size());
  }
  return text;
}

Json HeldToJson(const std::vector<session::HeldOperation>& held) {
  Json list = Json::Array();
  for (const session::HeldOperation& one : held) list.Append(session::ToJson(one));
  return list;
}

}  // namespace sandglass::cli

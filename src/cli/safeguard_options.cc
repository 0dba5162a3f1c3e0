#include "cli/safeguard_options.h"

#include <chrono>
#include <cstdlib>

#include "cli/run_options.h"

namespace sandglass::cli {
namespace {

using session::config::SafeguardsConfig;

// Words of the command line over files.
Result<SafeguardsConfig> SaidBy(const Arguments& arguments, SafeguardsConfig said) {
  if (arguments.Has(kNoSafeguardsOption.name)) said = {.enabled = false};
  const auto turn_on = [&] { said.enabled = true; };
  if (arguments.Has(kDeleteThresholdOption.name)) {
    said.delete_count = static_cast<uint32_t>(
        std::strtoul(arguments.Value(kDeleteThresholdOption.name).c_str(), nullptr, 10));
    turn_on();
  }
  if (arguments.Has(kOverwriteThresholdOption.name)) {
    TRY_ASSIGN(said.overwrite_bytes, SizeOf(arguments, kOverwriteThresholdOption));
    said.truncate_bytes = said.overwrite_bytes;
    turn_on();
  }
  if (arguments.Has(kRenameOverOption.name)) {
    said.rename_over = true;
    turn_on();
  }
  if (arguments.Has(kAnswerTimeOption.name)) {
    TRY_ASSIGN(const auto time, TimeOf(arguments, kAnswerTimeOption));
    said.timeout = std::chrono::ceil<std::chrono::seconds>(time);
  }
  return said;
}

Status CheckWords(const Arguments& arguments) {
  if (!arguments.Has(kNoSafeguardsOption.name)) return Ok();
  for (const Option& option :
       {kDeleteThresholdOption, kOverwriteThresholdOption, kRenameOverOption, kAnswerTimeOption}) {
    if (arguments.Has(option.name))
      return Error(Code::kInvalid, "--no-safeguards and a safeguard contradict each other");
  }
  return Ok();
}

bool IsSomethingSaid(const SafeguardsConfig& said) {
  return said.delete_count || said.overwrite_bytes || said.truncate_bytes || said.rename_over;
}

}  // namespace

Status TakeSafeguards(const Arguments& arguments, const SafeguardsConfig& config, Answerer answerer,
                      session::SessionOptions& options) {
  TRY(CheckWords(arguments));
  TRY_ASSIGN(const SafeguardsConfig said, SaidBy(arguments, config));
  options.undo.safeguards = {};
  options.questions = session::Questions::kNobody;
  if (!said.enabled || (answerer == Answerer::kSomeone && !IsSomethingSaid(said))) return Ok();
  undo::SafeguardConfig& safeguards = options.undo.safeguards;
  if (answerer == Answerer::kPerson) {
    safeguards.delete_count = session::config::kDefaultDeletions;
    safeguards.truncate_bytes = session::config::kDefaultTruncatedBytes;
  }
  if (said.delete_count) safeguards.delete_count = said.delete_count;
  if (said.overwrite_bytes) safeguards.overwrite_bytes = said.overwrite_bytes;
  if (said.truncate_bytes) safeguards.truncate_bytes = said.truncate_bytes;
  if (said.rename_over) safeguards.rename_over_count = 1;
  safeguards.timeout = said.timeout.value_or(session::config::kDefaultAnswerTime);
  options.questions = session::Questions::kGuest;
  return Ok();
}

}  // namespace sandglass::cli

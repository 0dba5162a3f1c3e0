#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/did_you_mean.h"

namespace sandglass::cli {
namespace {

template <class Int>
std::optional<Int> ParseInt(std::string_view text) {
  Int value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool IsCount(std::string_view text) {
  const auto count = ParseInt<uint32_t>(text);
  return count && *count >= 1 && *count <= kMaxCount;
}

// What a value of this kind has to be, for a message; "" when `text` is one.
std::string Objection(ValueKind kind, std::string_view text) {
  switch (kind) {
    case ValueKind::kNone:
    case ValueKind::kCommand:
    case ValueKind::kText:
    case ValueKind::kWords:
      return "";
    case ValueKind::kFolder:
    case ValueKind::kPath:
      return text.empty() ? "must not be empty" : "";
    case ValueKind::kStep:
      return ParseInt<int64_t>(text) ? "" : "must be the number of a step";
    case ValueKind::kCount:
      return IsCount(text) ? "" : fmt::format("must be a number from 1 to {}", kMaxCount);
    case ValueKind::kShell:
      return std::ranges::find(kShells, text) != std::end(kShells)
                 ? ""
                 : fmt::format("must be one of {}", fmt::join(kShells, ", "));
    case ValueKind::kLogLevel:
      return std::ranges::find(kLogLevels, text) != std::end(kLogLevels)
                 ? ""
                 : fmt::format("must be one of {}", fmt::join(kLogLevels, ", "));
    case ValueKind::kConfigAction:
      return std::ranges::find(kConfigActions, text) != std::end(kConfigActions)
                 ? ""
                 : fmt::format("must be one of {}", fmt::join(kConfigActions, ", "));
    case ValueKind::kMcpAction:
      return std::ranges::find(kMcpActions, text) != std::end(kMcpActions)
                 ? ""
                 : fmt::format("must be one of {}", fmt::join(kMcpActions, ", "));
    case ValueKind::kMcpClient:
      return std::ranges::find(kMcpClients, text) != std::end(kMcpClients)
                 ? ""
                 : fmt::format("must be one of {}", fmt::join(kMcpClients, ", "));
  }
  return "";
}

// "-1" is the id of an ambient step: no option is a digit.
bool LooksLikeOption(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

}  // namespace

class ArgumentParser {
 public:
  ArgumentParser(const Command& command, std::span<const std::string_view> words)
      : words_(words), out_(command) {}

  Result<Arguments> Run() {
    while (!words_.empty()) TRY(Next(TakeWord()));
    if (!out_.Has(kHelpOption.name)) TRY(CheckOperandCount());
    return std::move(out_);
  }

 private:
  const Command& command() const { return out_.command(); }

  std::string_view TakeWord() {
    const std::string_view word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }

  Error Wrong(std::string_view what) const {
    return Error(Code::kInvalid, fmt::format("{}; see `sandglass help {}`", what, command().name));
  }

  Status Next(std::string_view word) {
    if (only_operands_ || !LooksLikeOption(word)) return AddOperand(word);
    if (word == "--") {
      only_operands_ = true;
      return Ok();
    }
    return word.starts_with("--") ? TakeLong(word.substr(2)) : TakeShort(word.substr(1));
  }

  Status TakeLong(std::string_view text) {
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const auto found = std::ranges::find(command().options, name, &Option::name);
    if (found == command().options.end()) return Wrong(UnknownOption(name));
    if (equals == std::string_view::npos) return Take(*found, std::nullopt);
    return Take(*found, text.substr(equals + 1));
  }

  std::string UnknownOption(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const Option& option : command().options) {
      if (option.visibility == Visibility::kShown) names.push_back(option.name);
    }
    const std::string_view meant = NearestWord(name, names);
    const std::string hint = meant.empty() ? "" : fmt::format(" (did you mean --{}?)", meant);
    return fmt::format("unknown option --{}{}", name, hint);
  }

  // -f, -p DIR or -pDIR.
  Status TakeShort(std::string_view text) {
    const auto found = std::ranges::find(command().options, text.front(), &Option::letter);
    if (found == command().options.end())
      return Wrong(fmt::format("unknown option -{}", text.front()));
    if (text.size() == 1) return Take(*found, std::nullopt);
    return Take(*found, text.substr(1));
  }

  Status Take(const Option& option, std::optional<std::string_view> value) {
    if (option.value == ValueKind::kNone) {
      if (value) return Wrong(fmt::format("--{} takes no value", option.name));
      value = "";
    } else if (!value && option.need == ValueNeed::kOptional) {
      out_.options_[std::string(option.name)].emplace_back();
      return Ok();
    } else if (!value) {
      // Behind "--" the command begins, so it is no value, though an option may be given anything behind an equals sign.
      if (words_.empty() || words_.front() == "--")
        return Wrong(fmt::format("--{} needs a value: {}", option.name, option.value_name));
      value = TakeWord();
    }
    if (const std::string objection = Objection(option.value, *value); !objection.empty()) {
      return Wrong(fmt::format("the value of --{} {}", option.name, objection));
    }
    out_.options_[std::string(option.name)].emplace_back(*value);
    return Ok();
  }

  Status AddOperand(std::string_view word) {
    const auto& operands = command().operands;
    const size_t index =
        std::min(out_.operands_.size(), operands.empty() ? 0 : operands.size() - 1);
    const bool fits = index < operands.size() && (index == out_.operands_.size() ||
                                                  operands[index].arity == Arity::kOneOrMore);
    if (!fits) return Wrong(fmt::format("unexpected argument '{}'", word));
    if (const std::string objection = Objection(operands[index].value, word); !objection.empty()) {
      return Wrong(fmt::format("{} {}, not '{}'", operands[index].name, objection, word));
    }
    out_.operands_.emplace_back(word);
    if (operands[index].value == ValueKind::kWords) only_operands_ = true;
    return Ok();
  }

  Status CheckOperandCount() const {
    for (size_t i = out_.operands_.size(); i < command().operands.size(); ++i) {
      const Operand& missing = command().operands[i];
      if (missing.arity != Arity::kOptional)
        return Wrong(fmt::format("{} is missing", missing.name));
    }
    return Ok();
  }

  std::span<const std::string_view> words_;
  bool only_operands_ = false;
  Arguments out_;
};

Result<Arguments> Arguments::Parse(const Command& command,
                                   std::span<const std::string_view> words) {
  return ArgumentParser(command, words).Run();
}

std::string Arguments::Value(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? "" : found->second.back();
}

std::vector<std::string> Arguments::Values(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>() : found->second;
}

StepId Arguments::Step(size_t index) const {
  CHECK(index < operands_.size());
  const auto value = ParseInt<int64_t>(operands_[index]);
  CHECK(value.has_value());
  return {*value};
}

uint32_t Arguments::Count(size_t index, uint32_t fallback) const {
  if (index >= operands_.size()) return fallback;
  const auto value = ParseInt<uint32_t>(operands_[index]);
  CHECK(value.has_value());
  return *value;
}

}  // namespace sandglass::cli

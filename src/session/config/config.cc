#include "session/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/did_you_mean.h"
#include "session/config/sizes.h"

namespace sandglass::session::config {
namespace {

std::string Meant(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view nearest = NearestWord(word, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

std::vector<std::string_view> Sections() {
  std::vector<std::string_view> sections;
  for (const KeySpec& spec : AllKeys()) {
    if (sections.empty() || sections.back() != spec.section) sections.push_back(spec.section);
  }
  return sections;
}

std::vector<std::string_view> KeysOf(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const KeySpec& spec : AllKeys()) {
    if (spec.section == section) keys.push_back(spec.key);
  }
  return keys;
}

// --- One setting

Result<const KeySpec*> FindKey(const TomlSetting& setting) {
  const std::vector<std::string_view> sections = Sections();
  if (setting.section.empty())
    return Error(Code::kInvalid, fmt::format("'{}' stands in no section{}", setting.key,
                                             Meant(setting.key, sections)));
  const std::vector<std::string_view> keys = KeysOf(setting.section);
  if (keys.empty())
    return Error(Code::kInvalid, fmt::format("there is no section [{}]{}", setting.section,
                                             Meant(setting.section, sections)));
  for (const KeySpec& spec : AllKeys()) {
    if (spec.section == setting.section && spec.key == setting.key) return &spec;
  }
  return Error(Code::kInvalid, fmt::format("[{}] has no key '{}'{}", setting.section, setting.key,
                                           Meant(setting.key, keys)));
}

bool IsCount(const KeySpec& spec, const TomlValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number != nullptr && *number > 0 && *number <= spec.most;
}

bool Fits(const KeySpec& spec, const TomlValue& value) {
  switch (spec.type) {
    case ValueType::kSwitch:
      return std::holds_alternative<bool>(value);
    case ValueType::kCount:
      return IsCount(spec, value);
    case ValueType::kSize:
      return SizeOfValue(value).has_value();
    case ValueType::kNumber:
      return NumberOfValue(value).has_value();
    case ValueType::kChoice: {
      const auto* text = std::get_if<std::string>(&value);
      return text != nullptr && std::ranges::find(spec.choices, *text) != spec.choices.end();
    }
    case ValueType::kText:
      return std::holds_alternative<std::string>(value);
    case ValueType::kTexts: {
      const auto* texts = std::get_if<std::vector<std::string>>(&value);
      return texts != nullptr && std::ranges::none_of(*texts, [](const std::string& text) {
               return text.empty() || text.find('\n') != std::string::npos ||
                      text.find('\0') != std::string::npos;
             });
    }
  }
  return false;
}

std::string Wanted(const KeySpec& spec) {
  if (spec.most != INT64_MAX) return fmt::format("a whole number from 1 to {}", spec.most);
  if (spec.type != ValueType::kChoice) return std::string(ValueTypeName(spec.type));
  return fmt::format("one of \"{}\"", fmt::join(spec.choices, "\", \""));
}

Status Check(const KeySpec& spec, const TomlSetting& setting, Origin origin) {
  const std::string name = fmt::format("{}.{}", spec.section, spec.key);
  if (spec.support == Support::kNotYet)
    return Error(Code::kInvalid, fmt::format("{} is not supported yet; remove it", name));
  if (spec.trust == Trust::kUserOnly && origin == Origin::kProjectFile)
    return Error(Code::kInvalid,
                 fmt::format("{} may stand in the user's file only, because what runs in a project "
                             "can write to the project's",
                             name));
  if (!Fits(spec, setting.value))
    return Error(Code::kInvalid, fmt::format("{} must be {}, and is {}", name, Wanted(spec),
                                             TomlText(setting.value)));
  return Ok();
}

// As a number: the smaller one is the stricter.
double Strictness(const KeySpec& spec, const TomlValue& value) {
  if (spec.type == ValueType::kChoice)
    return -static_cast<double>(std::ranges::find(spec.choices, std::get<std::string>(value)) -
                                spec.choices.begin());
  if (spec.type == ValueType::kSize) return static_cast<double>(*SizeOfValue(value));
  return *NumberOfValue(value);
}

bool Counts(const KeySpec& spec, const TomlValue& value, const std::vector<Setting>& settings) {
  if (spec.trust != Trust::kStricterWins) return true;
  const auto said = std::ranges::find(settings, &spec, &Setting::key);
  if (said != settings.end()) return Strictness(spec, value) < Strictness(spec, said->value);
  const auto otherwise = ParseToml(fmt::format("x = {}", spec.fallback));
  const bool is_value = otherwise.ok() && Fits(spec, otherwise->front().value);  // not "no limit"
  return !is_value || Strictness(spec, value) <= Strictness(spec, otherwise->front().value);
}

Status ApplyOne(const TomlSetting& setting, Origin origin, Config& config,
                std::vector<Setting>& settings) {
  TRY_ASSIGN(const KeySpec* spec, FindKey(setting));
  TRY(Check(*spec, setting, origin));
  if (origin == Origin::kProjectFile && !Counts(*spec, setting.value, settings)) return Ok();
  spec->apply(config, setting.value);
  std::erase_if(settings, [&](const Setting& said) { return said.key == spec; });
  settings.push_back({spec, origin, setting.value});
  return Ok();
}

}  // namespace

std::optional<uint64_t> SizeOfValue(const TomlValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    return *number > 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || text->empty()) return std::nullopt;
  constexpr std::string_view kUnits = "KMGT";
  const size_t unit = kUnits.find(text->back());
  const size_t digits = text->size() - (unit == std::string_view::npos ? 0 : 1);
  uint64_t number = 0, bytes = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + digits, number);
  const uint64_t factor = unit == std::string_view::npos ? 1 : uint64_t{1} << (10 * (unit + 1));
  if (error != std::errc() || end != text->data() + digits || number == 0 ||
      __builtin_mul_overflow(number, factor, &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<double> NumberOfValue(const TomlValue& value) {
  double number = 0;
  if (const auto* whole = std::get_if<int64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* fraction = std::get_if<double>(&value)) number = *fraction;
  return std::isfinite(number) && number > 0 ? std::optional(number) : std::nullopt;
}

std::string_view ValueTypeName(ValueType type) {
  switch (type) {
    case ValueType::kSwitch:
      return "true or false";
    case ValueType::kCount:
      return "a whole number from 1 on";
    case ValueType::kSize:
      return "a number of bytes or a text such as \"512M\"";
    case ValueType::kNumber:
      return "a number above 0";
    case ValueType::kChoice:
      return "one of its choices";
    case ValueType::kText:
      return "a text";
    case ValueType::kTexts:
      return "a list of texts that are not empty";
  }
  return "";
}

std::string_view OriginName(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kUserFile:
      return "user";
    case Origin::kProjectFile:
      return "project";
  }
  return "";
}

Status ApplyText(std::string_view text, Origin origin, Config& config,
                 std::vector<Setting>& settings) {
  TRY_ASSIGN(const std::vector<TomlSetting> said, ParseToml(text));
  std::string mistakes;
  for (const TomlSetting& setting : said) {
    const Status applied = ApplyOne(setting, origin, config, settings);
    if (!applied.ok())
      mistakes += fmt::format("{}line {}: {}", mistakes.empty() ? "" : "\n", setting.line,
                              applied.error().message());
  }
  if (!mistakes.empty()) return Error(Code::kInvalid, mistakes);
  return Ok();
}

}  // namespace sandglass::session::config

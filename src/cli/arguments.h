// Arguments: what someone typed behind a command, checked against the command's table. Parsing is
// pure; value type.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/option_table.h"

namespace sandglass::cli {

class Arguments {
 public:
  // kInvalid: the message says what is wrong and where help is.
  static Result<Arguments> Parse(const Command& command, std::span<const std::string_view> words);

  const Command& command() const { return *command_; }
  bool Has(std::string_view option) const { return options_.contains(option); }
  // The last value given; "" when there is none.
  std::string Value(std::string_view option) const;
  // All of them, in order, for options that may be repeated.
  std::vector<std::string> Values(std::string_view option) const;
  const std::vector<std::string>& operands() const { return operands_; }

  // The operand at `index`, which the table declares to be of that kind and parsing has checked.
  StepId Step(size_t index) const;
  uint32_t Count(size_t index, uint32_t fallback) const;

 private:
  friend class ArgumentParser;
  explicit Arguments(const Command& command) : command_(&command) {}

  const Command* command_;
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
  std::vector<std::string> operands_;
};

}  // namespace sandglass::cli

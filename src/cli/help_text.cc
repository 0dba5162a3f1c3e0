#include "cli/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace sandglass::cli {
namespace {

constexpr size_t kColumns = 80;

std::string Indented(std::string_view text, size_t indent) {
  return std::string(indent, ' ') + std::string(text);
}

// Breaks a paragraph at spaces.
std::string Wrapped(std::string_view paragraph, size_t indent) {
  std::string out, line;
  while (!paragraph.empty()) {
    const size_t end = std::min(paragraph.find(' '), paragraph.size());
    const std::string_view word = paragraph.substr(0, end);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) {
      out += Indented(line, indent) + '\n';
      line.clear();
    }
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
    paragraph.remove_prefix(std::min(end + 1, paragraph.size()));
  }
  return out + Indented(line, indent) + '\n';
}

std::string WrappedParagraphs(std::string_view text, size_t indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    out += fmt::format("{}{}", out.empty() ? "" : "\n", Wrapped(text.substr(0, end), indent));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

struct Row {
  std::string left;
  std::string_view right;
};

std::string Table(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.left.size());
  std::string out;
  for (const Row& row : rows) {
    const std::string right = Wrapped(row.right, width + 4);
    out += fmt::format("  {:<{}}  {}", row.left, width, right.substr(width + 4));
  }
  return out;
}

}  // namespace

const std::string_view kIntroduction =
    "Sandglass runs commands in an isolated world that changes the real project folder, records "
    "what they do, step by step, and takes it back exactly.\n\n"
    "`sandglass run -- COMMAND` runs one command, `sandglass shell` many; `sandglass undo` takes "
    "the last step back. Programs that use the undo library (libsandglass_undo) make steps too.";

std::string OptionText(const Option& option) {
  std::string out = option.letter != '\0' ? fmt::format("-{}, ", option.letter) : "";
  out += fmt::format("--{}", option.name);
  if (option.value == ValueKind::kNone) return out;
  const bool optional = option.need == ValueNeed::kOptional;
  out += fmt::format(optional ? fmt::runtime("[={}]") : fmt::runtime(" {}"), option.value_name);
  return out;
}

std::string Synopsis(const Command& command) {
  std::string out(command.name);
  for (const Operand& operand : command.operands) {
    switch (operand.arity) {
      case Arity::kOne:
        out += fmt::format(" {}", operand.name);
        break;
      case Arity::kOptional:
        out += fmt::format(" [{}]", operand.name);
        break;
      case Arity::kOneOrMore:
        out += fmt::format(" {}...", operand.name);
        break;
    }
  }
  return out;
}

std::string GeneralHelp() {
  std::vector<Row> commands, codes;
  for (const Command* command : AllCommands())
    commands.push_back({Synopsis(*command), command->summary});
  for (const ExitCodeRow& row : kExitCodes)
    codes.push_back({fmt::format("{}", static_cast<int>(row.code)), row.meaning});
  std::vector<Row> options;
  for (const Option& option : kGlobalOptions) options.push_back({OptionText(option), option.help});
  return fmt::format(
      "usage: sandglass COMMAND [OPTIONS]\n\n{}\nCommands:\n{}\nBefore the command:\n{}\nExit "
      "codes:\n{}\n{}",
      WrappedParagraphs(kIntroduction, 0), Table(commands), Table(options), Table(codes),
      "`sandglass help COMMAND` or `sandglass COMMAND --help` says more.\n");
}

// Behind the first word of a program its own options begin, so ours come before it.
std::string Usage(const Command& command) {
  for (const Operand& operand : command.operands) {
    if (operand.value == ValueKind::kWords)
      return fmt::format("{} [OPTIONS] [--] {}...", command.name, operand.name);
  }
  return Synopsis(command) + " [OPTIONS]";
}

std::string CommandHelp(const Command& command) {
  std::vector<Row> operands, options;
  for (const Operand& operand : command.operands)
    operands.push_back({std::string(operand.name), operand.help});
  for (const Option& option : command.options) {
    if (option.visibility == Visibility::kShown)
      options.push_back({OptionText(option), option.help});
  }
  std::string out = fmt::format("usage: sandglass {}\n\n", Usage(command));
  out += WrappedParagraphs(command.description, 0);
  if (!operands.empty()) out += fmt::format("\nArguments:\n{}", Table(operands));
  return out + fmt::format("\nOptions:\n{}", Table(options));
}

}  // namespace sandglass::cli

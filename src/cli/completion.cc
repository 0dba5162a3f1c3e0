// sandglass completion: a script for a shell, made from the option tables.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kHelpOption};
constexpr Operand kOperands[] = {{"SHELL", ValueKind::kShell, Arity::kOne, "bash, zsh or fish"}};

// `text` with `escape` in front of each character of `special`.
std::string Escape(std::string_view text, std::string_view special,
                   std::string_view escape = "\\") {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += escape;
    out += c;
  }
  return out;
}

std::string CommandNames() {
  std::string out;
  for (const Command* command : AllCommands())
    out += fmt::format("{}{}", out.empty() ? "" : " ", command->name);
  return out;
}

// Words that a value of this kind can be; "": not from a fixed list.
std::string Choices(ValueKind kind) {
  switch (kind) {
    case ValueKind::kCommand:
      return CommandNames();
    case ValueKind::kShell:
      return fmt::format("{}", fmt::join(kShells, " "));
    case ValueKind::kLogLevel:
      return fmt::format("{}", fmt::join(kLogLevels, " "));
    case ValueKind::kConfigAction:
      return fmt::format("{}", fmt::join(kConfigActions, " "));
    case ValueKind::kMcpAction:
      return fmt::format("{}", fmt::join(kMcpActions, " "));
    case ValueKind::kMcpClient:
      return fmt::format("{}", fmt::join(kMcpClients, " "));
    case ValueKind::kNone:
    case ValueKind::kFolder:
    case ValueKind::kPath:
    case ValueKind::kStep:
    case ValueKind::kCount:
    case ValueKind::kText:
    case ValueKind::kWords:
      return "";
  }
  return "";
}

std::vector<Option> ShownOptions(const Command& command) {
  std::vector<Option> shown;
  for (const Option& option : command.options) {
    if (option.visibility == Visibility::kShown) shown.push_back(option);
  }
  return shown;
}

// --- bash

std::string BashOptionNames(const Command& command) {
  std::string out;
  for (const Option& option : ShownOptions(command))
    out += fmt::format("{}--{}", out.empty() ? "" : " ", option.name);
  return out;
}

// What to offer for a value, as a command of the script.
std::string BashValues(ValueKind kind) {
  if (kind == ValueKind::kFolder) return "_sandglass_files -d";
  if (kind == ValueKind::kPath) return "_sandglass_files -f";
  if (kind == ValueKind::kWords) return "_sandglass_program";
  const std::string choices = Choices(kind);
  return choices.empty() ? ":" : fmt::format("_sandglass_words '{}'", choices);
}

// The word before the value, which begins with an equals sign where that stands between the two.
std::string BashValueCase(const Option& option) {
  std::string words = fmt::format("=--{}", option.name);
  if (option.need == ValueNeed::kRequired) words += fmt::format("|--{}", option.name);
  if (option.letter != '\0') words += fmt::format("|-{}", option.letter);
  return fmt::format("        {}) {}; return ;;\n", words, BashValues(option.value));
}

std::string BashValueCases(std::span<const Option> options) {
  std::string cases;
  for (const Option& option : options) {
    if (option.value != ValueKind::kNone) cases += BashValueCase(option);
  }
  return cases.empty() ? "" : fmt::format("      case $previous in\n{}      esac\n", cases);
}

// Only the last operand may be many, so its kind serves for all that follow. Where all have fixed words, all of these are offered.
std::string BashOperands(const Command& command) {
  if (command.operands.empty()) return ":";
  std::string words;
  for (const Operand& operand : command.operands) {
    const std::string choices = Choices(operand.value);
    if (choices.empty()) return BashValues(command.operands.back().value);
    words += fmt::format("{}{}", words.empty() ? "" : " ", choices);
  }
  return fmt::format("_sandglass_words '{}'", words);
}

std::string BashCase(const Command& command) {
  const std::string operands = BashOperands(command);
  return fmt::format("    {})\n{}      _sandglass_either '{}' {} ;;\n", command.name,
                     BashValueCases(ShownOptions(command)), BashOptionNames(command), operands);
}

std::string GlobalOptionNames() {
  std::string out = "--help --version";
  for (const Option& option : kGlobalOptions) out += fmt::format(" --{}", option.name);
  return out;
}

// Bash makes words of their own of equals signs. The options before the command are those of all commands and have values.
std::string BashScript() {
  std::string cases;
  for (const Command* command : AllCommands()) cases += BashCase(*command);
  return fmt::format(R"(# bash completion for sandglass: source this file.
_sandglass_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }}
_sandglass_files() {{ compopt -o filenames; mapfile -t COMPREPLY < <(compgen "$1" -- "$current"); }}
_sandglass_program() {{
  if [[ $previous == -- ]] || (( COMP_CWORD == at + 1 )); then
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
  else
    _sandglass_files -f
  fi
}}
_sandglass_either() {{
  if [[ $current == -* && -z $ended ]]; then _sandglass_words "$1"; else "${{@:2}}"; fi
}}
_sandglass() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command='' ended='' at=1 i
  COMPREPLY=()
  if [[ $current == = ]]; then current='' previous="=$previous"
  elif [[ $previous == = ]]; then previous="=${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  while (( at < COMP_CWORD )); do
    case ${{COMP_WORDS[at]}} in
      --*=*) (( at++ )) ;;
      -*) if [[ ${{COMP_WORDS[at+1]}} == = ]]; then (( at += 3 )); else (( at += 2 )); fi ;;
      *) command=${{COMP_WORDS[at]}}; break ;;
    esac
  done
  for (( i = at; i < COMP_CWORD; i++ )); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then ended=yes; fi
  done
  case $command in
    '')
{}      _sandglass_either '{}' _sandglass_words '{}' ;;
{}  esac
}}
complete -F _sandglass sandglass
)",
                     BashValueCases(kGlobalOptions), GlobalOptionNames(), CommandNames(), cases);
}

// --- zsh

std::string ZshQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string ZshAction(ValueKind kind) {
  if (kind == ValueKind::kFolder) return "_files -/";
  if (kind == ValueKind::kPath) return "_files";
  if (kind == ValueKind::kWords) return "_normal";
  const std::string choices = Choices(kind);
  return choices.empty() ? " " : fmt::format("({})", choices);
}

std::string ZshOption(const Option& option) {
  std::string spec = fmt::format("[{}]", Escape(option.help, "[]:\\"));
  const bool optional = option.need == ValueNeed::kOptional;
  if (option.value != ValueKind::kNone)
    spec +=
        fmt::format("{}:{}:{}", optional ? ":" : "", option.value_name, ZshAction(option.value));
  if (option.letter == '\0')
    return ZshQuoted(fmt::format("--{}{}{}", option.name, optional ? "=-" : "", spec));
  return fmt::format("'(-{0} --{1})'{{-{0},--{1}}}{2}", option.letter, option.name,
                     ZshQuoted(spec));
}

std::string ZshOperand(const Operand& operand) {
  // Two colons: the words before it are not the program's.
  const std::string_view lead = operand.value == ValueKind::kWords   ? "*:"
                                : operand.arity == Arity::kOneOrMore ? "*"
                                : operand.arity == Arity::kOptional  ? ":"
                                                                     : "";
  return ZshQuoted(fmt::format("{}:{}:{}", lead, operand.name, ZshAction(operand.value)));
}

std::string ZshCase(const Command& command) {
  std::string out = fmt::format("    {})\n      _arguments", command.name);
  for (const Option& option : ShownOptions(command))
    out += fmt::format(" \\\n        {}", ZshOption(option));
  for (const Operand& operand : command.operands)
    out += fmt::format(" \\\n        {}", ZshOperand(operand));
  return out + " ;;\n";
}

std::string ZshGlobalOptions() {
  std::string out = "'--help[show help]' '--version[show the version]'";
  for (const Option& option : kGlobalOptions) out += " " + ZshOption(option);
  return out;
}

// Options before the command are taken away once they are complete, so that the rest does not have to know of them.
std::string ZshScript() {
  std::string commands, cases;
  for (const Command* command : AllCommands()) {
    commands += fmt::format("    {}\n", ZshQuoted(fmt::format("{}:{}", command->name,
                                                              Escape(command->summary, ":\\"))));
    cases += ZshCase(*command);
  }
  return fmt::format(R"(#compdef sandglass
# zsh completion for sandglass: a file _sandglass in $fpath, or source it.
_sandglass() {{
  local -a commands
  commands=(
{}  )
  while [[ ${{words[2]}} == --*=* ]] && (( CURRENT > 2 )); do
    words=("${{words[1]}}" "${{(@)words[3,-1]}}")
    (( CURRENT -= 1 ))
  done
  while [[ ${{words[2]}} == --* ]] && (( CURRENT > 3 )); do
    words=("${{words[1]}}" "${{(@)words[4,-1]}}")
    (( CURRENT -= 2 ))
  done
  if [[ ${{words[2]}} == -* ]]; then
    _arguments {}
    return
  fi
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  shift words
  (( CURRENT-- ))
  case ${{words[1]}} in
{}  esac
}}
if [[ $funcstack[1] == _sandglass ]]; then _sandglass "$@"; else compdef _sandglass sandglass; fi
)",
                     commands, ZshGlobalOptions(), cases);
}

// --- fish

std::string FishQuoted(std::string_view text) { return fmt::format("'{}'", Escape(text, "'\\")); }

// What to offer for a value; -x: no files besides.
std::string FishValues(ValueKind kind) {
  if (kind == ValueKind::kNone) return "";
  if (kind == ValueKind::kPath) return " -r -F";
  if (kind == ValueKind::kFolder) return " -x -a '(__fish_complete_directories)'";
  const std::string choices = Choices(kind);
  return choices.empty() ? " -x" : fmt::format(" -x -a {}", FishQuoted(choices));
}

std::string FishOption(const Option& option, std::string_view condition) {
  std::string out =
      fmt::format("complete -c sandglass -n {} -l {}", FishQuoted(condition), option.name);
  if (option.letter != '\0') out += fmt::format(" -s {}", option.letter);
  if (option.need == ValueNeed::kRequired) out += FishValues(option.value);
  return out + fmt::format(" -d {}\n", FishQuoted(option.help));
}

std::string FishOperand(const Operand& operand, std::string_view condition) {
  const std::string start = fmt::format("complete -c sandglass -n {}", FishQuoted(condition));
  if (operand.value == ValueKind::kPath) return start + " -F\n";
  if (operand.value == ValueKind::kWords) return start + " -a '(__fish_complete_subcommand)'\n";
  const std::string choices = Choices(operand.value);
  return choices.empty() ? "" : fmt::format("{} -a {}\n", start, FishQuoted(choices));
}

std::string FishScript() {
  std::string out =
      "# fish completion for sandglass: a file sandglass.fish in a completions folder, or source "
      "it.\n"
      "complete -c sandglass -f\n";
  for (const Command* command : AllCommands()) {
    out += fmt::format("complete -c sandglass -n __fish_use_subcommand -a {} -d {}\n",
                       command->name, FishQuoted(command->summary));
  }
  for (const Option& option : kGlobalOptions) out += FishOption(option, "__fish_use_subcommand");
  for (const Command* command : AllCommands()) {
    const std::string condition = fmt::format("__fish_seen_subcommand_from {}", command->name);
    for (const Option& option : ShownOptions(*command)) out += FishOption(option, condition);
    for (const Operand& operand : command->operands) out += FishOperand(operand, condition);
  }
  return out;
}

struct ShellRow {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array<ShellRow, std::size(kShells)> kScripts = {
    {{"bash", BashScript}, {"zsh", ZshScript}, {"fish", FishScript}}};

Status Run(const Arguments& arguments, Console& console) {
  for (const ShellRow& row : kScripts) {
    if (row.name == arguments.operands().front()) console.Print(row.script());
  }
  return Ok();
}

}  // namespace

constinit const Command kCompletionCommand{
    .name = "completion",
    .summary = "print a completion script for a shell",
    .description =
        "Prints a script that makes the shell complete commands, options and folders. For bash: "
        "source <(sandglass completion bash)",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli

// The manual pages, made from the same tables as help. roff: a line that starts with a dot is a
// request, and a plain hyphen may be typeset as another character than the one to type.
#include <fmt/format.h>

#include <cctype>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help_text.h"

namespace sandglass::cli {
namespace {

std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += fmt::format("\\&{}", c);
    else
      out += c;
  }
  return out;
}

std::string Paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    out += fmt::format("{}{}\n", out.empty() ? "" : ".PP\n", Roff(text.substr(0, end)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::string Item(std::string_view tag, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", Roff(tag), Roff(text));
}

std::string PageName(const Command& command) { return fmt::format("sandglass-{}", command.name); }

// `how`: the words that make the program print the page. `name`: of the page, "sandglass\-run".
std::string Head(std::string_view how, std::string_view name, std::string_view summary) {
  std::string title(name);
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(
      ".\\\" Made by `{}` from the option tables; do not edit.\n.TH {} 1 \"\" \"sandglass {}\"\n"
      ".SH NAME\n{} \\- {}\n",
      how, Roff(title), SANDGLASS_VERSION, Roff(name), Roff(summary));
}

std::string ExitStatus() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitCodeRow& row : kExitCodes)
    out += Item(fmt::format("{}", static_cast<int>(row.code)), row.meaning);
  return out;
}

struct NamedText {
  std::string_view name;
  std::string_view text;
};

constexpr NamedText kEnvironment[] = {
    {"SANDGLASS_HOME", "folder for everything that Sandglass keeps; must be an absolute path"},
    {"XDG_STATE_HOME",
     "without SANDGLASS_HOME, the folder sandglass below it is used; its default is "
     "~/.local/state"},
    {"HOME", "without the other two; if it is missing too, the user's entry in the system counts"},
};

constexpr std::string_view kFiles =
    "A project's undo store lies in the folder undo of the state folder, if that is on the same "
    "file system and mount as the project. "
    "Otherwise it is a hidden folder beside the project. \"sandglass status\" says which. A "
    "project that was moved keeps its store: the "
    "commands then say which --store to give.";

}  // namespace

std::string ManualPage() {
  std::string out = Head("sandglass help --man", "sandglass",
                         "run commands on a project folder, and take back what they did");
  out += ".SH SYNOPSIS\n.B sandglass\n.I command\n[options]\n";
  out += fmt::format(".SH DESCRIPTION\n{}", Paragraphs(kIntroduction));
  out += ".SH OPTIONS BEFORE THE COMMAND\n";
  for (const Option& option : kGlobalOptions) out += Item(OptionText(option), option.help);
  out += ".SH COMMANDS\n";
  for (const Command* command : AllCommands())
    out += Item(fmt::format("{}(1)", PageName(*command)), command->summary);
  out += ExitStatus();
  out += ".SH ENVIRONMENT\n";
  for (const NamedText& row : kEnvironment) out += Item(row.name, row.text);
  return out + fmt::format(".SH FILES\n{}", Paragraphs(kFiles));
}

std::string ManualPage(const Command& command) {
  const std::string how = fmt::format("sandglass help --man {}", command.name);
  std::string out = Head(how, PageName(command), command.summary);
  out += fmt::format(".SH SYNOPSIS\n.B sandglass\n{}\n", Roff(Usage(command)));
  out += fmt::format(".SH DESCRIPTION\n{}", Paragraphs(command.description));
  if (!command.operands.empty()) out += ".SH ARGUMENTS\n";
  for (const Operand& operand : command.operands) out += Item(operand.name, operand.help);
  out += ".SH OPTIONS\n";
  for (const Option& option : command.options) {
    if (option.visibility == Visibility::kShown) out += Item(OptionText(option), option.help);
  }
  return out + ExitStatus() + ".SH SEE ALSO\n.BR sandglass (1)\n";
}

}  // namespace sandglass::cli

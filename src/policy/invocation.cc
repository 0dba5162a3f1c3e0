#include "policy/invocation.h"

#include <algorithm>
#include <utility>

namespace sandglass::policy {
namespace {

constexpr int kDeepestShell = 8;

// A program that runs another one, which stands behind its own options.
struct Wrapper {
  std::string_view name;
  std::string_view options_with_value;  // letters of those whose value is the next word
  size_t operands = 0;                  // of its own before the program
};
constexpr Wrapper kWrappers[] = {
    {"sudo", "ugCDhpRrtT"}, {"doas", "uC"},          {"env", "uCS"},       {"nohup", ""},
    {"nice", "n"},          {"ionice", "cnp"},       {"timeout", "ks", 1}, {"time", "fo"},
    {"stdbuf", "ioe"},      {"setsid", ""},          {"command", ""},      {"builtin", ""},
    {"exec", "a"},          {"xargs", "aEIiLlnPsd"}, {"chroot", "", 1},    {"unshare", ""},
    {"strace", "eopsSuE"},  {"watch", "n"},          {"busybox", ""},      {"pkexec", ""},
};
constexpr std::string_view kShells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"};

std::string_view NameOf(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool IsShell(std::string_view name) {
  return std::ranges::find(kShells, name) != std::end(kShells);
}

bool IsAssignmentWord(const Word& word) {
  const size_t equals = word.text.find('=');
  return equals != std::string::npos && equals > 0 && word.text[0] != '-';
}

class Finder {
 public:
  explicit Finder(Invocations& out) : out_(out) {}

  void Read(std::string_view text, int depth) {
    if (depth > kDeepestShell) {
      out_.complete = false;
      return;
    }
    ShellText shell = ReadShell(text);
    out_.complete = out_.complete && shell.complete;
    std::ranges::move(shell.functions, std::back_inserter(out_.functions));
    for (SimpleCommand& command : shell.commands) {
      if (out_.all.size() >= kMostCommands) {
        out_.complete = false;
        return;
      }
      Add(std::move(command), depth);
    }
  }

 private:
  void Add(SimpleCommand command, int depth) {
    Invocation found{.redirects = std::move(command.redirects), .pipeline = command.pipeline};
    std::span<const Word> words = command.words;
    while (!words.empty()) {
      const std::string_view name = NameOf(words.front().text);
      const auto* wrapper = std::ranges::find(kWrappers, name, &Wrapper::name);
      const bool wraps = wrapper != std::end(kWrappers) && words.front().kind == WordKind::kPlain;
      if (!wraps) break;
      found.wrappers.emplace_back(name);
      words = Behind(*wrapper, words.subspan(1));
    }
    if (words.empty() && !found.wrappers.empty()) {
      found.program = found.wrappers.back();  // `env` or `xargs` alone
    } else if (!words.empty()) {
      found.program = NameOf(words.front().text);
      found.program_kind = words.front().kind;
      found.arguments.assign(words.begin() + 1, words.end());
    }
    std::string inner = InnerText(found);
    out_.all.push_back(std::move(found));
    if (!inner.empty()) Read(inner, depth + 1);
  }

  static std::span<const Word> Behind(const Wrapper& wrapper, std::span<const Word> words) {
    size_t operands = wrapper.operands;
    while (!words.empty()) {
      const std::string& text = words.front().text;
      if (text.size() > 1 && text[0] == '-') {
        const bool value_follows =
            text.size() == 2 && wrapper.options_with_value.find(text[1]) != std::string_view::npos;
        words = words.subspan(value_follows && words.size() > 1 ? 2 : 1);
        if (text == "--") break;
      } else if (IsAssignmentWord(words.front())) {
        words = words.subspan(1);
      } else if (operands > 0) {
        --operands;
        words = words.subspan(1);
      } else {
        break;
      }
    }
    return words;
  }

  // What a shell was told to run; "": nothing, or not in plain text.
  std::string InnerText(const Invocation& found) {
    if (found.program == "eval") return JoinPlain(found.arguments);
    if (!IsShell(found.program)) return "";
    for (size_t i = 0; i + 1 < found.arguments.size(); ++i) {
      const std::string& option = found.arguments[i].text;
      const bool runs_text = option.size() > 1 && option[0] == '-' && option[1] != '-' &&
                             option.find('c') != std::string::npos;
      if (!runs_text) continue;
      const Word& text = found.arguments[i + 1];
      // With expansions in it the text is a guess, but a good one.
      if (text.kind == WordKind::kExpanded) out_.complete = false;
      return text.text;
    }
    return "";
  }

  std::string JoinPlain(const std::vector<Word>& words) {
    std::string text;
    for (const Word& word : words) {
      if (word.kind == WordKind::kExpanded) out_.complete = false;
      text += (text.empty() ? "" : " ") + word.text;
    }
    return text;
  }

  Invocations& out_;
};

}  // namespace

Invocations FindInvocations(std::string_view command_line) {
  Invocations out;
  Finder(out).Read(command_line, 0);
  return out;
}

bool HasOption(std::span<const Word> arguments, char letter, std::string_view name) {
  for (const Word& argument : arguments) {
    const std::string_view text = argument.text;
    if (text == "--") return false;
    if (text.starts_with("--")) {
      if (!name.empty() && text.substr(2, text.find('=') - 2) == name) return true;
    } else if (letter != '\0' && text.size() > 1 && text[0] == '-' &&
               text.find(letter, 1) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace sandglass::policy

#include "policy/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "policy/invocation.h"

namespace sandglass::policy {
namespace {

bool Has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::optional<CommandClass> ClassIn(const ClassLists& lists, std::string_view name) {
  if (Has(lists.destructive, name)) return CommandClass::kDestructive;
  if (Has(lists.write, name)) return CommandClass::kWrite;
  if (Has(lists.read_only, name)) return CommandClass::kReadOnly;
  return std::nullopt;
}

// An option that makes something else of a program: `sed` reads, `sed -i` writes.
struct OptionRule {
  std::string_view program;
  std::string_view subcommand;  // "": none needed
  char letter;
  std::string_view name;
  CommandClass becomes;
};
constexpr OptionRule kOptionRules[] = {
    {"sed", "", 'i', "in-place", CommandClass::kWrite},
    {"perl", "", 'i', "", CommandClass::kWrite},
    {"sort", "", 'o', "output", CommandClass::kWrite},
    {"curl", "", 'o', "output", CommandClass::kWrite},
    {"curl", "", 'O', "remote-name", CommandClass::kWrite},
    {"tree", "", 'o', "", CommandClass::kWrite},
    {"git", "push", 'f', "force", CommandClass::kDestructive},
    {"git", "push", '\0', "force-with-lease", CommandClass::kDestructive},
    {"git", "push", 'd', "delete", CommandClass::kDestructive},
    {"git", "push", '\0', "mirror", CommandClass::kDestructive},
    {"git", "reset", '\0', "hard", CommandClass::kDestructive},
    {"git", "checkout", 'f', "force", CommandClass::kDestructive},
    {"git", "switch", 'f', "force", CommandClass::kDestructive},
    {"git", "switch", '\0', "discard-changes", CommandClass::kDestructive},
    {"git", "branch", 'D', "", CommandClass::kDestructive},
    {"git", "branch", 'd', "delete", CommandClass::kWrite},
    {"git", "branch", 'm', "move", CommandClass::kWrite},
    {"git", "tag", 'd', "delete", CommandClass::kDestructive},
    {"git", "commit", '\0', "amend", CommandClass::kWrite},
    {"git", "diff", '\0', "output", CommandClass::kWrite},
    {"rsync", "", '\0', "delete", CommandClass::kDestructive},
    {"tar", "", '\0', "remove-files", CommandClass::kDestructive},
};

// The same by a word.
struct WordRule {
  std::string_view program;
  std::string_view subcommand;
  std::string_view word;
  CommandClass becomes;
};
constexpr WordRule kWordRules[] = {
    {"find", "", "-delete", CommandClass::kDestructive},
    {"find", "", "-fprint", CommandClass::kWrite},
    {"find", "", "-fprintf", CommandClass::kWrite},
    {"git", "stash", "drop", CommandClass::kDestructive},
    {"git", "stash", "clear", CommandClass::kDestructive},
    {"git", "checkout", "--", CommandClass::kDestructive},
    {"git", "checkout", ".", CommandClass::kDestructive},
    {"git", "reflog", "expire", CommandClass::kDestructive},
    {"git", "reflog", "delete", CommandClass::kDestructive},
    {"git", "remote", "add", CommandClass::kWrite},
    {"git", "remote", "remove", CommandClass::kWrite},
    {"git", "remote", "set-url", CommandClass::kWrite},
    {"git", "worktree", "remove", CommandClass::kDestructive},
    {"npm", "cache", "clean", CommandClass::kDestructive},
};

struct Tool {
  std::string_view name;
  ClassLists ClassifierConfig::* lists;
  std::string_view options_with_value;  // before the subcommand
};
constexpr Tool kTools[] = {
    {"git", &ClassifierConfig::git, "Cc"},
    {"cargo", &ClassifierConfig::cargo, "CZ"},
    {"npm", &ClassifierConfig::npm, "C"},
};

std::string_view SubcommandOf(const Invocation& call, const Tool& tool) {
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const std::string& text = call.arguments[i].text;
    if (tool.name == "cargo" && text.starts_with('+')) continue;  // the toolchain
    if (text.empty() || text[0] != '-') return text;
    if (text.size() == 2 && tool.options_with_value.find(text[1]) != std::string_view::npos) ++i;
  }
  return "";
}

// Files that are none.
bool IsSink(std::string_view path) {
  constexpr std::string_view kSinks[] = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"};
  return std::ranges::find(kSinks, path) != std::end(kSinks);
}

class Judge {
 public:
  Judge(const Invocation& call, const ClassifierConfig& config) : call_(call), config_(config) {}

  ClassifiedCommand Run() {
    found_.program = call_.program;
    found_.command_class = CommandClass::kReadOnly;
    JudgeProgram();
    JudgeRules();
    JudgeExec();
    for (const Redirect& redirect : call_.redirects) JudgeRedirect(redirect);
    return std::move(found_);
  }

 private:
  void Raise(CommandClass to, std::string reason) {
    if (to < found_.command_class || (to == found_.command_class && !found_.reason.empty())) return;
    found_.command_class = to;
    found_.reason = std::move(reason);
  }

  void JudgeProgram() {
    if (call_.program.empty()) return;
    if (call_.program_kind == WordKind::kExpanded)
      return Raise(CommandClass::kWrite,
                   fmt::format("only the shell knows what '{}' is", call_.program));
    const auto* tool = std::ranges::find(kTools, call_.program, &Tool::name);
    if (tool != std::end(kTools)) {
      subcommand_ = SubcommandOf(call_, *tool);
      const std::string name = fmt::format("{} {}", call_.program, subcommand_);
      if (subcommand_.empty()) return;  // shows its help
      return RaiseTo(ClassIn(config_.*tool->lists, subcommand_), name);
    }
    RaiseTo(ClassIn(config_.commands, call_.program), call_.program);
  }

  void RaiseTo(std::optional<CommandClass> listed, const std::string& name) {
    if (!listed) return Raise(CommandClass::kWrite, fmt::format("'{}' is in no list", name));
    Raise(*listed, fmt::format("'{}' is listed as {}", name, CommandClassName(*listed)));
  }

  void JudgeRules() {
    for (const OptionRule& rule : kOptionRules) {
      if (Applies(rule.program, rule.subcommand) &&
          HasOption(call_.arguments, rule.letter, rule.name))
        Raise(rule.becomes, fmt::format("'{}' with {}", call_.program,
                                        rule.letter != '\0' ? fmt::format("-{}", rule.letter)
                                                            : fmt::format("--{}", rule.name)));
    }
    for (const WordRule& rule : kWordRules) {
      const bool given =
          std::ranges::find(call_.arguments, rule.word, &Word::text) != call_.arguments.end();
      if (given && Applies(rule.program, rule.subcommand))
        Raise(rule.becomes, fmt::format("'{}' with {}", call_.program, rule.word));
    }
  }

  bool Applies(std::string_view program, std::string_view subcommand) const {
    return call_.program == program && (subcommand.empty() || subcommand_ == subcommand);
  }

  // find . -exec rm {} \;
  void JudgeExec() {
    if (call_.program != "find") return;
    constexpr std::string_view kRuns[] = {"-exec", "-execdir", "-ok", "-okdir"};
    for (size_t i = 0; i + 1 < call_.arguments.size(); ++i) {
      if (std::ranges::find(kRuns, call_.arguments[i].text) == std::end(kRuns)) continue;
      Invocation inner{.program = call_.arguments[i + 1].text,
                       .program_kind = call_.arguments[i + 1].kind};
      inner.program = inner.program.substr(inner.program.rfind('/') + 1);
      inner.arguments.assign(call_.arguments.begin() + static_cast<ptrdiff_t>(i) + 2,
                             call_.arguments.end());
      // Never nested: what find runs is no find here.
      if (inner.program == "find") return Raise(CommandClass::kWrite, "'find' runs 'find'");
      const ClassifiedCommand judged = Judge(inner, config_).Run();
      Raise(judged.command_class, fmt::format("'find' runs '{}'", inner.program));
    }
  }

  void JudgeRedirect(const Redirect& redirect) {
    const bool writes =
        redirect.kind == RedirectKind::kWrite || redirect.kind == RedirectKind::kAppend;
    if (writes && !IsSink(redirect.target.text))
      Raise(CommandClass::kWrite, fmt::format("writes to {}", redirect.target.text));
  }

  const Invocation& call_;
  const ClassifierConfig& config_;
  std::string_view subcommand_;
  ClassifiedCommand found_;
};

}  // namespace

std::string_view CommandClassName(CommandClass command_class) {
  switch (command_class) {
    case CommandClass::kReadOnly:
      return "read_only";
    case CommandClass::kWrite:
      return "write";
    case CommandClass::kDestructive:
      return "destructive";
  }
  return "";
}

const ClassifierConfig& DefaultClassifierConfig() {
  static const ClassifierConfig kDefault{
      .commands =
          {.read_only =
               {"ls",        "cat",      "head",     "tail",     "less",     "more",   "wc",
                "grep",      "egrep",    "fgrep",    "rg",       "ag",       "find",   "fd",
                "pwd",       "cd",       "echo",     "printf",   "true",     "false",  "test",
                "[",         "which",    "whereis",  "type",     "file",     "stat",   "du",
                "df",        "ps",       "top",      "uname",    "hostname", "whoami", "id",
                "date",      "env",      "printenv", "diff",     "cmp",      "comm",   "sort",
                "uniq",      "cut",      "tr",       "awk",      "sed",      "jq",     "yq",
                "tree",      "basename", "dirname",  "realpath", "readlink", "md5sum", "sha1sum",
                "sha256sum", "xxd",      "od",       "hexdump",  "strings",  "nm",     "objdump",
                "ldd",       "column",   "nl",       "tac",      "rev",      "seq",    "sleep",
                "man",       "help",     "history",  "export",   "set",      "unset",  "xargs",
                "cal",       "uptime",   "free",     "nproc",    "lscpu",    "lsof",   "curl",
                "ping",      "dig",      "nslookup", "host",     "exit",     "return", "break",
                "continue",  "shift",    "read",     "wait",     "jobs",     ":",      "alias",
                "local",     "declare",  "readonly", "getopts",  "trap"},
           .write = {"cp",    "mv",      "mkdir",    "touch",   "ln",      "chmod",   "chown",
                     "chgrp", "tee",     "make",     "cmake",   "ninja",   "gcc",     "g++",
                     "clang", "clang++", "cc",       "ld",      "python",  "python3", "node",
                     "ruby",  "perl",    "php",      "go",      "rustc",   "javac",   "java",
                     "pip",   "pip3",    "yarn",     "pnpm",    "npx",     "bundle",  "gem",
                     "tar",   "unzip",   "zip",      "gzip",    "gunzip",  "bzip2",   "xz",
                     "zstd",  "patch",   "rsync",    "wget",    "install", "vi",      "vim",
                     "nano",  "emacs",   "ed",       "sh",      "bash",    "dash",    "zsh",
                     "eval",  "source",  ".",        "apt",     "apt-get", "dpkg",    "docker",
                     "mount", "umount",  "setfattr", "setfacl", "mktemp",  "split"},
           .destructive = {"rm", "rmdir", "unlink", "shred", "truncate", "dd", "mkfs", "wipefs",
                           "fdisk", "parted", "kill", "killall", "pkill", "reboot", "shutdown",
                           "poweroff", "halt", "blkdiscard", "srm"}},
      .git = {.read_only = {"status",    "log",          "diff",        "show",          "branch",
                            "remote",    "blame",        "grep",        "ls-files",      "ls-tree",
                            "ls-remote", "rev-parse",    "rev-list",    "describe",      "shortlog",
                            "cat-file",  "reflog",       "whatchanged", "count-objects", "help",
                            "version",   "check-ignore", "merge-base",  "name-rev",      "var"},
              .write = {"add",      "commit",
                        "checkout", "switch",
                        "merge",    "rebase",
                        "pull",     "fetch",
                        "push",     "clone",
                        "init",     "stash",
                        "tag",      "cherry-pick",
                        "revert",   "restore",
                        "reset",    "mv",
                        "config",   "am",
                        "apply",    "submodule",
                        "worktree", "bisect",
                        "notes",    "sparse-checkout"},
              .destructive = {"clean", "rm", "gc", "prune", "filter-branch", "filter-repo",
                              "update-ref"}},
      .cargo = {.read_only = {"check", "tree", "metadata", "search", "version", "help",
                              "locate-project", "pkgid", "verify-project", "read-manifest", "info"},
                .write = {"build", "run",    "test",   "bench",  "doc",     "new",
                          "init",  "add",    "remove", "update", "install", "fmt",
                          "fix",   "clippy", "fetch",  "vendor", "package", "generate-lockfile",
                          "b",     "r",      "t"},
                .destructive = {"clean", "uninstall", "publish", "yank", "owner"}},
      .npm = {.read_only = {"ls",    "list",    "view",    "info",   "show", "outdated", "search",
                            "audit", "help",    "version", "whoami", "ping", "root",     "prefix",
                            "bin",   "explain", "fund",    "docs",   "home", "bugs",     "repo"},
              .write = {"install", "i",          "ci",    "add",   "update", "up",
                        "run",     "run-script", "test",  "t",     "start",  "build",
                        "init",    "create",     "exec",  "link",  "pack",   "rebuild",
                        "config",  "set",        "cache", "dedupe"},
              .destructive = {"uninstall", "remove", "rm", "un", "unlink", "prune", "publish",
                              "unpublish", "deprecate"}},
  };
  return kDefault;
}

Classification Classify(std::string_view command_line, const ClassifierConfig& config) {
  const Invocations invocations = FindInvocations(command_line);
  Classification result{.certain = invocations.complete};
  for (const Invocation& call : invocations.all) {
    ClassifiedCommand judged = Has(invocations.functions, call.program)
                                   ? ClassifiedCommand{call.program, CommandClass::kWrite,
                                                       "a function that the line defines"}
                                   : Judge(call, config).Run();
    if (call.program_kind == WordKind::kExpanded) result.certain = false;
    result.command_class = std::max(result.command_class, judged.command_class);
    result.commands.push_back(std::move(judged));
  }
  if (!result.certain) result.command_class = std::max(result.command_class, CommandClass::kWrite);
  return result;
}

}  // namespace sandglass::policy

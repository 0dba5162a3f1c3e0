#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "policy/classifier.h"
#include "policy/invocation.h"

namespace sandglass::policy {
namespace {

constexpr std::string_view kPrivileged[] = {"sudo", "su", "doas", "pkexec", "runuser"};
constexpr std::string_view kShells[] = {"sh",   "bash",   "dash",    "zsh",  "ksh",  "ash",
                                        "fish", "python", "python3", "perl", "ruby", "node"};
constexpr std::string_view kDownloads[] = {"curl", "wget", "fetch", "nc", "ncat"};
constexpr std::string_view kDecoders[] = {"base64", "base32", "xxd", "openssl"};
constexpr std::string_view kDevices[] = {"/dev/sd",
                                         "/dev/hd",
                                         "/dev/vd",
                                         "/dev/nvme",
                                         "/dev/xvd",
                                         "/dev/mmcblk",
                                         "/dev/mem",
                                         "/dev/kmem",
                                         "/dev/port",
                                         "/dev/loop",
                                         "/dev/dm-",
                                         "/dev/mapper/",
                                         "/proc/sysrq-trigger",
                                         "/proc/kcore"};
constexpr std::string_view kDiskPrograms[] = {"mkfs",   "wipefs",     "fdisk", "parted",
                                              "sfdisk", "blkdiscard", "mkswap"};
constexpr std::string_view kWholeSystem[] = {"/",     "/*",      "~",       "~/",    "~/*",
                                             "$HOME", "${HOME}", "$HOME/*", "/home", "/etc",
                                             "/usr",  "/var",    "/bin",    "/lib",  "/boot"};

template <size_t Size>
bool IsOneOf(std::string_view word, const std::string_view (&list)[Size]) {
  return std::ranges::find(list, word) != std::end(list);
}

bool IsDevice(std::string_view path) {
  return std::ranges::any_of(kDevices,
                             [&](std::string_view device) { return path.starts_with(device); });
}

class DangerFinder {
 public:
  explicit DangerFinder(std::string_view text) : text_(text), calls_(FindInvocations(text)) {}

  std::vector<Finding> Run() {
    FindControlBytes();
    FindForkBombs();
    for (const Invocation& call : calls_.all) {
      FindPrivilege(call);
      FindDevices(call);
      FindWholeSystem(call);
      FindHidden(call);
    }
    FindPipesIntoShells();
    return std::move(found_);
  }

 private:
  void Add(Danger danger, std::string detail) {
    const bool known = std::ranges::any_of(
        found_, [&](const Finding& f) { return f.danger == danger && f.detail == detail; });
    if (!known) found_.push_back({danger, std::move(detail)});
  }

  void FindControlBytes() {
    const auto is_control = [](char c) {
      const auto byte = static_cast<uint8_t>(c);
      return (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7F;
    };
    if (std::ranges::any_of(text_, is_control))
      Add(Danger::kControlBytes, "it has control characters, which can hide what it says");
  }

  // A function that runs itself twice in one pipe, or a script that runs itself in the background.
  void FindForkBombs() {
    for (const std::string& name : calls_.functions) {
      std::map<size_t, size_t> uses;
      for (const Invocation& call : calls_.all) {
        if (call.program == name && ++uses[call.pipeline] == 2)
          Add(Danger::kForkBomb, fmt::format("'{}' runs itself twice", name));
      }
    }
    const auto is_self = [](const Invocation& call) {
      return call.program == "$0" || call.program == "${0}";
    };
    if (std::ranges::count_if(calls_.all, is_self) >= 2 ||
        (text_.find("$0 &") != std::string_view::npos && std::ranges::any_of(calls_.all, is_self)))
      Add(Danger::kForkBomb, "a script that runs itself again and again");
  }

  void FindPrivilege(const Invocation& call) {
    for (const std::string& wrapper : call.wrappers) {
      if (IsOneOf(wrapper, kPrivileged))
        Add(Danger::kPrivilege, fmt::format("'{}' asks for another user's rights", wrapper));
    }
    if (IsOneOf(call.program, kPrivileged))
      Add(Danger::kPrivilege, fmt::format("'{}' asks for another user's rights", call.program));
  }

  void FindDevices(const Invocation& call) {
    if (IsOneOf(std::string_view(call.program).substr(0, call.program.find('.')), kDiskPrograms))
      Add(Danger::kDevice, fmt::format("'{}' changes disks", call.program));
    for (const Redirect& redirect : call.redirects) {
      if (redirect.kind != RedirectKind::kRead && IsDevice(redirect.target.text))
        Add(Danger::kDevice, fmt::format("writes to {}", redirect.target.text));
    }
    for (const Word& argument : call.arguments) {
      std::string_view path = argument.text;
      if (call.program == "dd" && path.starts_with("of=")) path.remove_prefix(3);
      if (IsDevice(path)) Add(Danger::kDevice, fmt::format("'{}' is given {}", call.program, path));
    }
  }

  void FindWholeSystem(const Invocation& call) {
    const bool recursive =
        HasOption(call.arguments, 'r', "recursive") || HasOption(call.arguments, 'R', "");
    constexpr std::string_view kPrograms[] = {"rm", "chmod", "chown", "chgrp"};
    if (HasOption(call.arguments, '\0', "no-preserve-root"))
      Add(Danger::kWholeSystem, "--no-preserve-root is for nothing else");
    if (!recursive || !IsOneOf(call.program, kPrograms)) return;
    for (const Word& argument : call.arguments) {
      const bool home = argument.quoted && argument.text.starts_with('~');  // then it is a name
      if (!home && IsOneOf(argument.text, kWholeSystem))
        Add(Danger::kWholeSystem,
            fmt::format("'{}' through all of {}", call.program, argument.text));
    }
  }

  void FindHidden(const Invocation& call) {
    const bool substituted =
        call.program.find("$(") != std::string::npos || call.program.find('`') != std::string::npos;
    if (call.program_kind == WordKind::kExpanded && substituted)
      Add(Danger::kHiddenCommand,
          fmt::format("which program runs is found out by {}", call.program));
    if (call.program == "eval" && std::ranges::any_of(call.arguments, [](const Word& word) {
          return word.text.find("$(") != std::string::npos ||
                 word.text.find('`') != std::string::npos;
        }))
      Add(Danger::kHiddenCommand, "'eval' runs what another command prints");
    for (const Word& argument : call.arguments) {
      if (argument.text.find("${IFS}") != std::string::npos ||
          argument.text.find("$IFS") != std::string::npos)
        Add(Danger::kHiddenCommand, "$IFS in place of a blank");
    }
    if (call.program.find("$IFS") != std::string::npos ||
        call.program.find("${IFS}") != std::string::npos)
      Add(Danger::kHiddenCommand, "$IFS in place of a blank");
  }

  // curl ... | sh, base64 -d | sh
  void FindPipesIntoShells() {
    std::map<size_t, std::string> source;
    for (const Invocation& call : calls_.all) {
      const auto found = source.find(call.pipeline);
      if (found != source.end() && IsOneOf(call.program, kShells))
        Add(Danger::kHiddenCommand,
            fmt::format("'{}' runs what '{}' prints", call.program, found->second));
      const bool decodes =
          IsOneOf(call.program, kDecoders) &&
          (HasOption(call.arguments, 'd', "decode") || HasOption(call.arguments, 'r', ""));
      if (decodes || IsOneOf(call.program, kDownloads)) source.emplace(call.pipeline, call.program);
    }
  }

  const std::string_view text_;
  const Invocations calls_;
  std::vector<Finding> found_;
};

}  // namespace

std::string_view DangerName(Danger danger) {
  switch (danger) {
    case Danger::kForkBomb:
      return "fork_bomb";
    case Danger::kPrivilege:
      return "privilege";
    case Danger::kDevice:
      return "device";
    case Danger::kWholeSystem:
      return "whole_system";
    case Danger::kHiddenCommand:
      return "hidden_command";
    case Danger::kControlBytes:
      return "control_bytes";
  }
  return "";
}

std::vector<Finding> FindDangers(std::string_view command_line) {
  return DangerFinder(command_line).Run();
}

}  // namespace sandglass::policy

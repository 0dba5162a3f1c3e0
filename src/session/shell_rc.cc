#include "session/shell_rc.h"

#include <fmt/format.h>

#include "control/shim_start.h"

namespace sandglass::session {
namespace {

// PS0 is expanded after a line was read and before it runs: that waits for the answer, so no write of the line comes before its step.
// A duplicate that the shell's history leaves out would get the label of another line, so duplicates stay in it; a line that the
// history leaves out on purpose, with a space in front, is not told.
constexpr char kScript[] = R"sh(exec @RC@<&-
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  echo 'sandglass: the shell needs bash 4.4 or later' >&2
  exit 125
fi
[[ -r /etc/bash.bashrc || ! -r /etc/bashrc ]] || . /etc/bashrc
[[ ! -r ~/.bashrc ]] || . ~/.bashrc

__sandglass_ask() {
  builtin local tag=$BASHPID.$RANDOM$RANDOM answer status=1 IFS=$'\n'
  builtin printf '%s\n%s\n%s\0' "$tag" "$1" "${*:2}" >&@CHANNEL@ || builtin return 1
  while IFS= builtin read -r -d '' -u @CHANNEL@ answer; do
    [[ $answer == "$tag"$'\n'* ]] || builtin continue
    answer=${answer#*$'\n'}
    status=${answer%%$'\n'*}
    builtin printf '%s' "${answer#*$'\n'}"
    builtin break
  done
  builtin return "$status"
}
__sandglass_newest() {
  builtin local entry
  entry=$(HISTTIMEFORMAT= builtin history 1)
  [[ $entry =~ ^\ *([0-9]+)\*?\ +(.*)$ ]]
}
__sandglass_line() {
  builtin local line=
  if __sandglass_newest && [[ ${BASH_REMATCH[1]} != "$__sandglass_last" ]]; then
    line=${BASH_REMATCH[2]:0:3000}
  fi
  __sandglass_ask line "$line"
}
__sandglass_prompt() {
  builtin local before=$?
  __sandglass_last=
  __sandglass_newest && __sandglass_last=${BASH_REMATCH[1]}
  __sandglass_ask prompt
  builtin return "$before"
}
undo() { __sandglass_ask undo "$@"; }
redo() { __sandglass_ask redo "$@"; }
steps() { __sandglass_ask steps "$@"; }

case :${HISTCONTROL-}: in
  *:ignoreboth:* | *:ignorespace:*) HISTCONTROL=ignorespace ;;
  *) HISTCONTROL= ;;
esac
PS0="${PS0-}"'$(__sandglass_line)'
PROMPT_COMMAND=__sandglass_prompt$'\n'"${PROMPT_COMMAND-}"
PS1="(sandglass) ${PS1-\$ }"
)sh";

void Replace(std::string& text, std::string_view what, int number) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what))
    text.replace(at, what.size(), fmt::format("{}", number));
}

}  // namespace

std::string ShellRc() {
  std::string script = kScript;
  Replace(script, "@CHANNEL@", control::kFirstGivenFd);
  Replace(script, "@RC@", control::kFirstGivenFd + 1);
  return script;
}

std::vector<std::string> ShellArguments(const std::string& bash) {
  const std::string script = fmt::format("/proc/self/fd/{}", control::kFirstGivenFd + 1);
  return {bash, "--noprofile", "--rcfile", script, "-i"};
}

}  // namespace sandglass::session

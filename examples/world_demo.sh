#!/bin/sh
# The main job: commands in a world rewrite and delete a project, and one undo brings all of it back. Everything happens in a temporary
# folder. The verdict is not ours: tests/support/compare_tree.py shares no code with the program.
set -eu
here=$(realpath "$(dirname "$0")")
sandglass=$(realpath "${1:-$here/../build/sandglass}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export SANDGLASS_HOME="$place/state"

exec 3>&1  # where a person looks, also from within a pipe
bold= plain=
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
chapter() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
# Shows the words as one would type them, then runs them.
sandglass() {
  printf '$ sandglass' >&3
  for word; do
    case $word in *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac >&3
  done
  echo >&3
  "$sandglass" "$@" 2>&1
}

# Whatever makes a tree awkward to bring back.
make_project() {
  mkdir -p "$1/src" "$1/private"
  cd "$1"
  export GIT_CONFIG_GLOBAL=/dev/null
  git init -q -b main .
  git config user.name Ada
  git config user.email ada@example.org
  for n in 1 2 3; do
    printf 'int f%s(void) { return %s; }\n' "$n" "$n" >>src/main.c
    git add src
    git commit -q -m "Add f$n"
  done
  echo 'never saved anywhere else' >notes.txt
  printf 'x' >"$(printf 'a name with\na line end')"
  printf 'x' >"$(printf 'no UTF-8: \377\376')"
  printf 'x' >' *?[$(rm) "quotes"'\'' -rf '
  ln src/main.c second-name.c
  ln -s src/main.c link.c
  ln -s /nowhere dangling
  truncate -s 64M sparse.img
  printf 'end' | dd of=sparse.img bs=1 seek=33554432 conv=notrunc 2>/dev/null
  setfattr -n user.origin -v 'set by hand' notes.txt 2>/dev/null || echo '(this file system has no extended attributes)'
  chmod 0640 notes.txt
  chmod 4711 second-name.c
  chmod 0500 private
  touch -d '2001-02-03 04:05:06.789' notes.txt src
}

chapter 'A project that is awkward on purpose: links, odd names, modes, attributes, holes, history'
make_project "$place/project"
ls -Alb --time-style=long-iso . | tail -n +2
git --no-pager log --oneline
compare="$here/../tests/support/compare_tree.py"
python3 "$compare" snapshot . >"$place/before.json"

chapter 'A command rewrites history, and throws the old one away for good'
sandglass run --summary -- sh -c 'sed -i s/return/exit/ src/main.c; git checkout -q --orphan new; git commit -q -a -m "All mine"
    git branch -q -D main; git reflog expire --expire=now --all; git gc -q --prune=now'
git --no-pager log --oneline

chapter 'Another one deletes everything'
sandglass run --summary -- sh -c 'rm -rf ./* ./.[!.]*'
printf '%s entries are left\n' "$(find . -mindepth 1 | wc -l)"

chapter 'What happened'
sandglass history | cut -c1-112
sandglass diff 1 --stat | tail -n 4
sandglass diff 2 | grep -a -A 5 'a/notes.txt b/notes.txt'

chapter 'And back'
sandglass undo 2 | sed -n 1,5p
git --no-pager log --oneline
python3 "$compare" diff "$place/before.json" .
printf '%sIdentical%s: contents, names, modes, owners, times, links and attributes of %s entries.\n' "$bold" "$plain" \
  "$(find . -mindepth 1 | wc -l)"

#!/bin/sh
# The main job: a command in a world deletes a project, and undo brings it back. Everything happens in a temporary folder.
set -eu
sandglass=$(dirname "$0")/../build/sandglass
sandglass=$(realpath "$sandglass")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export SANDGLASS_HOME="$place/state"

mkdir -p "$place/project/src"
cd "$place/project"
echo 'int main() {}' >src/main.c
echo 'untracked, and never saved anywhere' >notes.txt
chmod 600 notes.txt
ln src/main.c second-name.c
ln -s src/main.c link.c
cp -a "$place/project" "$place/before"

say() { printf '\n$ %s\n' "$*"; }
say sandglass run -- sh -c '"rm -rf src notes.txt; echo rewritten >second-name.c"'
"$sandglass" run --summary -- sh -c 'rm -rf src notes.txt; echo rewritten >second-name.c'
say ls -l
ls -l
say sandglass history
"$sandglass" history
say sandglass diff 1
"$sandglass" diff 1
say sandglass undo
"$sandglass" undo
say ls -l
ls -l

# Names, types, modes, links, sizes and times to the nanosecond of everything, then the bytes.
state() { find . -printf '%P %y %m %n %s %T@ %l\n' | sort; }
state >"$place/after.txt"
(cd "$place/before" && state) >"$place/before.txt"
cmp "$place/before.txt" "$place/after.txt"
diff -r --no-dereference "$place/before" "$place/project"
printf '\nThe folder is what it was.\n'

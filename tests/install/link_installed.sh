# Installs $BUILD below $WORK, builds the README's example against that and runs it. install_test.cc calls this.
prefix=$WORK/root/usr
DESTDIR=$WORK/root cmake --install "$BUILD" --prefix /usr >"$WORK/install.log" || { cat "$WORK/install.log"; exit 1; }

for file in bin/sandglass lib/libsandglass_undo.a lib/libsandglass_base.a share/man/man1/sandglass.1 \
    share/man/man1/sandglass-run.1 share/man/man1/sandglass-undo.1 \
    share/bash-completion/completions/sandglass share/zsh/site-functions/_sandglass \
    share/fish/vendor_completions.d/sandglass.fish; do
  test -s "$prefix/$file" || { echo "$file was not installed"; exit 1; }
done

# The example and the way to link it are the README's own words.
sed -n '/<!-- snippet: begin -->/,/<!-- snippet: end -->/p' "$SOURCE/README.md" | grep -v '^```\|^<!--' >"$WORK/main.cc"
cat >>"$WORK/main.cc" <<'END'
#include <cstdio>
int main(int, char** argv) {
  const Status done = DeleteAndTakeBack(argv[1], argv[2]);
  if (!done.ok()) std::puts(done.error().message().c_str());
  return done.ok() ? 0 : 1;
}
END
libraries=$(grep -o -e '-lsandglass_undo[^`]*' "$SOURCE/README.md" | head -n 1)
# shellcheck disable=SC2086
"$CXX" -std=c++20 -I"$prefix/include/sandglass" "$WORK/main.cc" -o "$WORK/example" -L"$prefix/lib" $libraries

mkdir "$WORK/app"
echo precious >"$WORK/app/notes.txt"
export SANDGLASS_HOME="$WORK/state"
"$WORK/example" "$WORK/app" notes.txt
test "$(cat "$WORK/app/notes.txt")" = precious
"$prefix/bin/sandglass" redo -p "$WORK/app"
test ! -e "$WORK/app/notes.txt"

// Work as people do it, in a world and natively in the same folder: output and tree are equal, and in between undo has brought the
// tree back as an independent program compares it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/parity/parity_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Work {
  const char* name;
  const char* prepare;  // natively, once
  const char* script;
  const char* needs = nullptr;  // a program that a machine may lack
};
std::ostream& operator<<(std::ostream& out, const Work& work) { return out << work.name; }

// The same programs and the same answers inside and outside.
constexpr char kSettings[] = R"sh(set -e
unset PYTHONDONTWRITEBYTECODE PYTHONPATH MAKEFLAGS
export PATH=/usr/bin:/bin LC_ALL=C HOME=$PWD/none TZ=UTC GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'
g() { git -c safe.directory='*' -c init.defaultBranch=main -c gc.auto=0 -c pack.threads=1 "$@"; }
)sh";

constexpr Work kWorks[] = {
    {"GitCloneAndCommit", R"sh(
mkdir origin && cd origin && g init -q . && for i in 1 2 3; do mkdir -p d$i; echo $i >d$i/file; done
g add -A && g commit -qm first && g checkout -q -b side && echo side >s && g add s && g commit -qm side && g checkout -q main
)sh",
     R"sh(
g clone -q --no-hardlinks origin work && cd work
echo more >>d1/file && g mv d2 moved && g rm -q d3/file && g commit -qam second
g checkout -q -b topic && g merge -q -m merged origin/side && g rebase -q main
g log --format='%h %s' --all && g push -q origin topic && g -C ../origin branch
g gc -q && g fsck && g status --short && git stash list
rm .git/index
)sh"},
    {"MakeACProject", R"sh(
mkdir c && cd c
for i in 1 2 3 4; do echo "int f$i(void) { return $i; }" >f$i.c; done
echo '#include <stdio.h>
int f1(void), f2(void), f3(void), f4(void);
int main(void) { printf("%d\n", f1() + f2() + f3() + f4()); return 0; }' >main.c
printf 'CC = clang-19\nall: main\nmain: main.o libf.a\n\t$(CC) -o $@ main.o -L. -lf\nlibf.a: f1.o f2.o f3.o f4.o\n\tllvm-ar-19 rcsD $@ $^\ncheck: main\n\ttest $$(./main) = 10\nclean:\n\trm -f *.o\n.PHONY: all check clean\n' >Makefile
)sh",
     R"sh(
cd c && make -s -j2 && ./main && make -s check && sed -i 's/return 4/return 5/' f4.c && sleep 0.02 && touch f4.c && make -s -j2 && ./main
make -s clean && ls
)sh"},
    {"InstallIntoAVirtualEnvironment", R"sh(
mkdir -p package/greeting && echo 'def text(): return "hello"' >package/greeting/__init__.py
tar cf package.tar -C package greeting
)sh",
     R"sh(
python3 -m venv --without-pip ve && tar xf package.tar -C ve/lib/python3.*/site-packages
ve/bin/python -B -c 'import greeting; print(greeting.text())' && ls ve ve/bin && ve/bin/python -c 'import sys; print(sys.prefix)'
)sh"},
    {"NpmInstallOfATarball", R"sh(
mkdir -p package app && echo 'module.exports = () => "hello";' >package/index.js
echo '{"name": "greeting", "version": "1.0.0", "bin": {"greet": "index.js"}}' >package/package.json
tar czf app/greeting.tgz --mtime=@0 --owner=0 --group=0 package && rm -r package
echo '{"name": "app", "version": "1.0.0", "private": true}' >app/package.json
)sh",
     R"sh(
cd app && npm install --offline --no-audit --no-fund --no-update-notifier --cache "$PWD/../../outside/npm" ./greeting.tgz 2>&1 | sed 's/ in [0-9].*//'
node -e 'console.log(require("greeting")())' && cat package.json package-lock.json && ls -A node_modules node_modules/.bin
npm uninstall --offline --no-audit --no-fund --no-update-notifier --cache "$PWD/../../outside/npm" greeting 2>&1 | sed 's/ in [0-9].*//'
ls -A
)sh",
     "npm"},
    {"PythonTests", R"sh(
mkdir -p app tests && touch app/__init__.py tests/__init__.py
echo 'import json, os
def save(path, value):
    with open(path + ".tmp", "w") as f: json.dump(value, f)
    os.replace(path + ".tmp", path)
def load(path):
    with open(path) as f: return json.load(f)' >app/store.py
echo 'import os, tempfile, unittest
from app import store
class Store(unittest.TestCase):
    def test_round_trip(self):
        with tempfile.TemporaryDirectory(dir=".") as d:
            store.save(d + "/x", [1, 2]); self.assertEqual(store.load(d + "/x"), [1, 2])
    def test_keeps(self):
        store.save("kept.json", {"a": 1}); self.assertTrue(os.path.exists("kept.json"))
    def test_missing(self):
        with self.assertRaises(FileNotFoundError): store.load("nope")' >tests/test_store.py
touch -d 2001-01-01 app/*.py tests/*.py
)sh",
     R"sh(python3 -m unittest -v 2>&1 | sed 's/ in [0-9.]*s//' && cat kept.json && ls app/__pycache__ tests/__pycache__)sh"},
    {"Sqlite", "true",
     R"sh(
python3 -c '
import sqlite3
for mode in ("delete", "truncate", "wal"):
    d = sqlite3.connect(mode + ".db"); print(d.execute("pragma journal_mode=" + mode).fetchall())
    d.execute("create table t(a integer primary key, b text)")
    for i in range(20):
        with d: d.executemany("insert into t(b) values (?)", [("row %d" % i,)] * 50)
    d.execute("delete from t"); d.rollback()
    print(d.execute("select count(*), max(b) from t").fetchall())
    d.execute("delete from t where a % 2"); d.commit(); d.execute("vacuum")
    print(d.execute("pragma integrity_check").fetchall()); d.close()
' && ls
)sh"},
};

class RealWork : public ParityFixture, public ::testing::WithParamInterface<Work> {
 protected:
  // The second opinion on trees, which shares nothing with ours.
  CommandResult CompareTree(const std::string& arguments) {
    return Natively(
        "/usr/bin/python3 " SANDGLASS_SOURCE_DIR "/tests/support/compare_tree.py " + arguments,
        workspace_.root());
  }
};

TEST_P(RealWork, EndsAsItDoesNativelyAndIsUndoneExactly) {
  const char* needs = GetParam().needs;
  if (needs != nullptr && ::access((std::string("/usr/bin/") + needs).c_str(), X_OK) != 0)
    GTEST_SKIP() << needs << " is not installed";
  MustCall(::mkdir((workspace_.root() + "/outside").c_str(), 0755), "mkdir");
  const std::string project = workspace_.project();
  const CommandResult prepared = Natively(std::string(kSettings) + GetParam().prepare, project);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.output;
  ASSERT_EQ(CompareTree("snapshot project >before.json").exit_code, 0);

  const std::string script = std::string(kSettings) + GetParam().script;
  const CommandResult got = RunInWorld(script);
  const TreeSnapshot in_world = workspace_.Snapshot();
  EXPECT_EQ(CompareTree("diff before.json project").exit_code, 1) << "it changed nothing";

  const Ended undone = Sandglass({"undo"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  const CommandResult compared = CompareTree("diff before.json project");
  EXPECT_EQ(compared.exit_code, 0) << compared.output;

  const CommandResult wanted = Natively(script, project);
  EXPECT_THAT(wanted.output, Not(HasSubstr("command not found"))) << "a tool is missing";
  EXPECT_EQ(wanted.exit_code, 0) << wanted.output;
  EXPECT_EQ(got.exit_code, wanted.exit_code);
  EXPECT_EQ(got.output, wanted.output);
  CompareOptions any_time;
  any_time.mtime_tolerance_ns = INT64_MAX;
  EXPECT_TRUE(TreesEqual(workspace_.Snapshot(), in_world, any_time));
}

INSTANTIATE_TEST_SUITE_P(Works, RealWork, ::testing::ValuesIn(kWorks),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sandglass::test

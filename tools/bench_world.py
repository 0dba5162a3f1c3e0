#!/usr/bin/env python3
"""What a world costs: real work in `sandglass run` next to the same work done natively and through bindfs.

Every round is a pair: the same fresh tree, the work natively, the work in the world (with undo on), and the ratio of the two.
The median of the rounds' ratios counts. The stopwatch runs beside the work, so that making the world is not in it; that
has a line of its own, next to bubblewrap and, where npm can fetch it, sandbox-runtime. Writes build/bench/world_ratios.json for tools/bench_compare.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import filesystems
import results

ROOT = results.ROOT
OUT = ROOT / "build" / "bench"
BIN = ROOT / "build" / "release" / "bin"
SANDGLASS, WORKLOAD, WARM = BIN / "sandglass", BIN / "workload", BIN / "warm_command"
GIT = "git -c user.name=n -c user.email=e -c gc.auto=0"

# name, limit, goal, how the tree is made (in it, natively), the work itself (in it).
WORK = [
    ("create_5000_files", 3.0, 2.0, "true", f"{WORKLOAD} create new 5000"),
    ("untar", 3.0, 2.0, "cp ../many.tar .", "tar xf many.tar"),
    ("cp_a", 2.5, 2.0, "tar xf ../many.tar", "cp -a many copy"),
    ("git_add_commit", 1.5, 1.2, f"tar xf ../many.tar && {GIT} init -q .",
     f"{GIT} add . && {GIT} commit -qm all"),
    ("git_checkout", 1.5, 1.2,
     f"{GIT} init -q . && {GIT} commit -q --allow-empty -m none && {GIT} branch none && tar xf ../many.tar && "
     f"{GIT} add . && {GIT} commit -qm all && {GIT} checkout -q none", f"{GIT} checkout -q -"),
    ("npm_install", 1.3, 1.1, "cp ../packages/*.tgz . && echo '{}' > package.json",
     "npm install --offline --no-audit --no-fund ./*.tgz"),
    ("make", 1.1, None, "cp -r ../sources/. .", "make -s -j2"),
    ("find", 1.1, None, "tar xf ../many.tar", "find . -type f -size +1"),
    ("du", 1.1, None, "tar xf ../many.tar", "du -s ."),
    ("grep_r", 1.1, None, "tar xf ../many.tar", "grep -r nosuchword . || true"),
    ("git_status", 1.1, None, f"tar xf ../many.tar && {GIT} init -q . && {GIT} add . && {GIT} commit -qm all",
     f"{GIT} status --porcelain"),
    ("sequential_write", 1.1, None, "true", f"{WORKLOAD} write big 256"),
    ("sequential_read", 1.1, None, f"{WORKLOAD} write big 256", f"{WORKLOAD} read big"),
    ("rm_rf_5000_files", 2.5, 1.8, f"{WORKLOAD} create old 5000", "rm -rf old"),
]
BINDFS = {"create_5000_files", "rm_rf_5000_files", "untar"}
MANY_FILES = 1_000_000
NEEDS = {"npm_install": "npm"}  # lines that wait for a program which bootstrap does not install


def shell(command, where, **more):
    return subprocess.run(["sh", "-ec", command], cwd=where, check=True, capture_output=True, text=True, **more)


def empty(folder):
    """Cuts every file below it to nothing."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path) and os.path.isfile(path):
                os.chmod(path, 0o600)
                os.truncate(path, 0)


def nanoseconds(words, where, env=None):
    """The last line that the stopwatch printed."""
    done = subprocess.run(words, cwd=where, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr.strip()[-400:]}")
    return int(done.stdout.strip().splitlines()[-1])


class Bench:
    """A scratch folder, and the three ways to do work in a project below it."""

    def __init__(self, folder):
        self.folder = folder
        self.env = dict(os.environ, SANDGLASS_HOME=str(folder / "state"), HOME=str(folder / "home"))
        (folder / "home").mkdir()
        (folder / "aside").mkdir()
        self.put_aside = 0
        self.make_material()

    def make_material(self):
        """many.tar: 4,000 files in 100 folders, 90 MB, most of them small, of words. sources: 60 C files. packages: 5 of npm with
        200 files each."""
        chance = random.Random(1)
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(2000)]
        text = " ".join(chance.choices(words, k=400_000)).encode()
        many = self.folder / "many"
        for number in range(4000):
            path = many / f"d{number % 100}" / f"f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            size = min(int(chance.lognormvariate(9.1, 1.35)), 500_000)
            begin = chance.randrange(len(text) - size)
            path.write_bytes(text[begin:begin + size])
        shell("tar cf many.tar many && rm -rf many", self.folder)
        sources = self.folder / "sources"
        sources.mkdir()
        for number in range(60):
            body = "\n".join(f"int f{number}_{i}(int x) {{ return x * {i} + {number}; }}" for i in range(200))
            (sources / f"s{number}.c").write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{body}\n")
        (sources / "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tclang-19 -O1 -c $< -o $@\n")

        if shutil.which("npm"):
            self.make_packages()

    def make_packages(self):
        for number in range(5):
            package = self.folder / "packages" / f"p{number}"
            package.mkdir(parents=True)
            (package / "package.json").write_text(json.dumps({"name": f"bench-p{number}", "version": "1.0.0"}))
            for part in range(200):
                (package / f"part{part}.js").write_text(f"module.exports = {part};\n" * 40)
            shell("npm pack --silent --pack-destination ..", package, env=self.env)

    def fresh(self, setup):
        """An empty project and no store. The former ones are put aside, emptied for their room and not deleted: see own_ext4."""
        project = self.folder / "project"
        for old in (project, self.folder / "store"):
            if old.exists():
                self.put_aside += 1
                aside = self.folder / "aside" / str(self.put_aside)
                old.rename(aside)
                empty(aside)
        project.mkdir()
        shell(setup, project, env=self.env)
        os.sync()
        return project

    def native(self, project, work):
        return nanoseconds([WORKLOAD, "time", "sh", "-ec", work], project, self.env)

    def world(self, project, work):
        words = [SANDGLASS, "run", "--store", self.folder / "store", "--ephemeral", "--ro", BIN, "--", WORKLOAD, "time",
                 "sh", "-ec", work]
        return nanoseconds(words, project, self.env)

    def bindfs(self, project, work):
        mounted = self.folder / "mounted"
        mounted.mkdir(exist_ok=True)
        subprocess.run(["bindfs", project, mounted], check=True)
        try:
            return nanoseconds([WORKLOAD, "time", "sh", "-ec", work], mounted, self.env)
        finally:
            subprocess.run(["umount", mounted], check=True)


def measure(bench, row, rounds):
    name, limit, goal, setup, work = row
    ours, peer, native = [], [], []
    for _ in range(rounds + 1):  # the first one warms up
        plain = bench.native(bench.fresh(setup), work)
        native.append(plain)
        project = bench.fresh(setup)
        ours.append(bench.world(project, work) / plain)
        if name in BINDFS and shutil.which("bindfs"):
            peer.append(bench.bindfs(bench.fresh(setup), work) / plain)
    line = {"name": name, "ratio": round(statistics.median(ours[1:]), 3), "limit": limit}
    if goal:
        line["goal"] = goal
    if peer:
        line["bindfs"] = round(statistics.median(peer[1:]), 2)
    line["native_ms"] = round(statistics.median(native[1:]) / 1e6, 1)
    return line


def seconds(words, env, where):
    start = time.perf_counter()
    subprocess.run(words, env=env, cwd=where, check=True, capture_output=True)
    return time.perf_counter() - start


def sandbox_runtime(folder):
    """The program srt, and why there is none. One that is installed counts; else npm fetches it into the scratch folder."""
    program = shutil.which("srt")
    if not program and not shutil.which("npm"):
        return None, "neither srt nor npm is installed"
    if not program:
        place = folder / "sandbox-runtime"
        fetch = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, "@anthropic-ai/sandbox-runtime"]
        try:
            fetched = subprocess.run(fetch, capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            return None, "npm did not fetch it in time"
        program = place / "node_modules" / ".bin" / "srt"
        if fetched.returncode != 0 or not program.exists():
            return None, "npm cannot fetch it"
    tried = subprocess.run([program, "true"], cwd=folder, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return None, (tried.stderr.strip().splitlines() or ["it does not run here"])[0]
    return program, ""


def add_sandbox_runtime(bench, line, rounds):
    """It takes so much longer that a few rounds will do."""
    program, why = sandbox_runtime(bench.folder)
    if program is None:
        print(f"{'sandbox-runtime':26} skipped: {why}", flush=True)
        return
    project = bench.fresh("true")
    taken = [seconds([program, "true"], bench.env, project) for _ in range(rounds + 1)]
    line["sandbox_runtime_ms"] = round(statistics.median(taken[1:]) * 1e3, 1)


def cold_start(bench, rounds):
    """A whole world for one command, next to those of others."""
    project = bench.fresh("true")
    run = [SANDGLASS, "run", "--store", bench.folder / "store", "--ephemeral", "--", "true"]
    bwrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    ratios, ours = [], []
    for _ in range(rounds * 4):
        peer = seconds(bwrap, bench.env, project)
        ours.append(seconds(run, bench.env, project))
        ratios.append(ours[-1] / peer)
    line = {"name": "cold_run_true_to_bwrap", "ratio": round(statistics.median(ratios[1:]), 3), "limit": 1.2,
            "ours_ms": round(statistics.median(ours[1:]) * 1e3, 1)}
    add_sandbox_runtime(bench, line, rounds)
    return line


def link_many(folder, count):
    """So many names, a thousand to a folder. They are hard links: what a start may look at is names, and these are made in seconds. ext4
    gives a file 65,000 of them at most."""
    most = 60_000
    for made in range(0, count, 1000):
        target = f"{folder}/file{made // most}"
        if made % most == 0:
            Path(target).write_text("x", encoding="utf-8")
        names = f"{folder}/d{made // 1000}"
        os.mkdir(names)
        for number in range(1000):
            os.link(target, f"{names}/{number}")


def many_files(bench, rounds):
    """A world around a project of a million files, next to one around an empty project."""
    folders = {}
    for name, count in (("none", 0), ("many", MANY_FILES)):
        folders[name] = bench.folder / f"files-{name}"
        folders[name].mkdir()
        link_many(folders[name], count)
    os.sync()

    def run(name):
        words = [SANDGLASS, "run", "--store", bench.folder / f"store-{name}", "--ephemeral", "--", "true"]
        return seconds(words, bench.env, folders[name])

    pairs = [(run("many"), run("none")) for _ in range(rounds * 4)]
    return {"name": "cold_run_in_1000000_files", "ratio": round(statistics.median(many / none for many, none in pairs[1:]), 3),
            "limit": 1.1, "ours_ms": round(statistics.median(many for many, _ in pairs[1:]) * 1e3, 1)}


def warm_command(bench):
    folder = bench.folder / "warm"
    folder.mkdir()
    done = subprocess.run([WARM, BIN / "sandglass-shim", folder], env=bench.env, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {"name": "warm_command_to_spawn", "ratio": found["ratio"], "limit": 1.3, "ours_us": found["world_us"],
            "ratio_without_rest": found["ratio_without_rest"]}


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


def proportional_kib(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def switches(pid):
    """Voluntary context switches of all threads: each is a wake-up."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def idle(bench):
    """Memory and wake-ups while a command sleeps. Without `sleep` itself, which is the last of the processes."""
    project = bench.fresh("true")
    words = [SANDGLASS, "run", "--store", bench.folder / "store", "--ephemeral", "--", "sleep", "6"]
    process = subprocess.Popen(words, env=bench.env, cwd=project)
    time.sleep(1.5)
    ours = [process.pid, *children(process.pid)][:-1]
    memory = sum(proportional_kib(pid) for pid in ours) / 1024
    before = sum(switches(pid) for pid in ours)
    time.sleep(3)
    woken = sum(switches(pid) for pid in ours) - before
    process.wait()
    return [{"name": "idle_memory_to_25_MiB", "ratio": round(memory / 25, 3), "limit": 1.0},
            {"name": "idle_wakeups_in_3_s", "ratio": woken, "limit": 1}]


def print_heading():
    print(f"{'line':26} {'ratio':>7} {'limit':>6} {'goal':>5} {'bindfs':>7}  native", flush=True)


def print_line(line):
    mark = "" if line["ratio"] <= line["limit"] else f"  over by {(line['ratio'] / line['limit'] - 1) * 100:.0f} %"
    native = f"{line['native_ms']} ms" if "native_ms" in line else ""
    if "sandbox_runtime_ms" in line:
        native = f"ours {line['ours_ms']} ms, sandbox-runtime {line['sandbox_runtime_ms']} ms"
    print(f"{line['name']:26} {line['ratio']:7.2f} {line['limit']:6.1f} {line.get('goal', '-'):>5} "
          f"{line.get('bindfs', '-'):>7}  {native}{mark}", flush=True)
    return line


def all_lines(options):
    """One after the other, as they are measured, each group on a file system of its own."""
    def wanted(name):
        return not options.only or name in options.only
    for row in WORK:
        needed = NEEDS.get(row[0])
        if wanted(row[0]) and needed and not shutil.which(needed):
            print(f"{row[0]:26} skipped: {needed} is not installed", flush=True)
        elif wanted(row[0]):
            with scratch_bench() as bench:
                yield measure(bench, row, options.rounds)
    with scratch_bench() as bench:
        if wanted("cold"):
            yield cold_start(bench, options.rounds)
        if wanted("warm"):
            yield warm_command(bench)
        if wanted("idle"):
            yield from idle(bench)
    if wanted("many"):
        with scratch_bench() as bench:
            yield many_files(bench, options.rounds)


@contextlib.contextmanager
def scratch_bench():
    with filesystems.FileSystems(["ext4-image", "ext4"]) as systems:
        yield Bench(own_ext4(systems))


def own_ext4(systems):
    """An ext4 that nobody else uses, where that can be had. ext4 gives no inode away that was freed within the last minute and looks at
    each of them for every file that it creates: on a disk where others delete files, that is all that a benchmark would measure."""
    for place in (systems["ext4-image"], systems["ext4"]):
        if place.path is not None:
            return Path(place.path)
    sys.exit(f"bench: no ext4: {systems['ext4'].reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="only lines of this name, may be repeated")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    filesystems.enter_private_mounts()
    OUT.mkdir(parents=True, exist_ok=True)
    print_heading()
    lines = [print_line(line) for line in all_lines(options)]
    if not options.only:
        (OUT / "world_ratios.json").write_text(json.dumps({"lines": lines}, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

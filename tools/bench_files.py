#!/usr/bin/env python3
"""Searching the files of a project next to ripgrep: the same tree, the same pattern, in turns, and the ratio of the two.

The median of the rounds' ratios counts. Both are whole processes on a warm cache, with as many threads as they choose, and both
respect ignore files. What they find is compared as well. Writes build/bench/files_ratios.json for tools/bench_compare.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results

ROOT = results.ROOT
OUT = ROOT / "build" / "bench"
SEARCH = ROOT / "build" / "release" / "bin" / "search_files"
LIMIT = 1.5

# name, pattern, mode of search_files, option of rg that means the same.
LINES = [
    ("grep_literal_files", "nosuchword", "files", "-l"),
    ("grep_literal_content", "needle", "content", "-n"),
    ("grep_expression_files", r"need\w+ [a-z]+ing", "files", "-l"),
    ("grep_alternatives_count", r"(needle|haystack)[0-9]*$", "count", "-c"),
]


def make_tree(folder, files):
    """Words in folders of 50 files each, of 1 to 8 KiB; one file in 500 has a needle, and one folder in 20 is ignored."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(3000)]
    lines = [" ".join(chance.choices(words, k=10)) for _ in range(20_000)]
    text = "\n".join(lines)
    for number in range(files):
        parent = folder / f"m{number // 5000}" / f"d{number // 50}"
        if number % 50 == 0:
            parent.mkdir(parents=True)
            if (number // 50) % 20 == 0:
                (parent / ".gitignore").write_text("*.log\n/out/\n")
        begin = chance.randrange(len(text) - 8192)
        body = text[begin:begin + chance.randint(1024, 8192)]
        if number % 500 == 0:
            body += "\nthe needle was running away\n"
        (parent / f"f{number}.{'log' if number % 97 == 0 else 'txt'}").write_text(body + "\n")
    (folder / ".git").mkdir()  # ripgrep believes in ignore files only in a repository


def seconds(words, where):
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in words], cwd=where, check=False, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{words}: {done.returncode}: {done.stderr.strip()[-400:]}")
    return taken, done.stdout


def found_by_ripgrep(output, mode):
    """(files, matches) as search_files counts them."""
    lines = output.splitlines()
    if mode == "files":
        return len(lines), len(lines)
    if mode == "count":
        return len(lines), sum(int(line.rsplit(":", 1)[1]) for line in lines)
    return len({line.split(":", 1)[0] for line in lines}), len(lines)


def measure(tree, row, rounds):
    name, pattern, mode, option = row
    ours, theirs = [], []
    for turn in range(rounds + 1):  # the first one warms up
        ripgrep = lambda: seconds(["rg", "--no-heading", option, pattern, "."], tree)
        search = lambda: seconds([SEARCH, tree, pattern, mode], tree)
        pair = [search, ripgrep] if turn % 2 else [ripgrep, search]
        got = {run: run() for run in pair}
        theirs.append(got[ripgrep][0])
        ours.append(got[search][0])
    files, matches = found_by_ripgrep(got[ripgrep][1], mode)
    if f"{files} files, {matches} matches" not in got[search][1]:
        raise RuntimeError(f"{name}: ripgrep found {files} files and {matches} matches, search_files {got[search][1]}")
    ratios = [a / b for a, b in zip(ours[1:], theirs[1:])]
    return {"name": name, "ratio": round(statistics.median(ratios), 3), "limit": LIMIT,
            "ours_ms": round(statistics.median(ours[1:]) * 1e3, 1), "rg_ms": round(statistics.median(theirs[1:]) * 1e3, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", help="the name of one line")
    parser.add_argument("--tree", type=Path, help="use the tree that is there, or make it there and leave it")
    chosen = parser.parse_args()
    if not shutil.which("rg"):
        sys.exit("bench_files: ripgrep is not installed")
    OUT.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="sandglass-files-", dir=os.environ.get("SANDGLASS_TEST_DIR")))
    try:
        tree = chosen.tree or scratch / "tree"
        if not tree.exists():
            tree.mkdir()
            make_tree(tree, chosen.files)
        lines = []
        for row in LINES:
            if chosen.only in (None, row[0]):
                lines.append(measure(tree, row, chosen.rounds))
                print("{name:26} {ratio:6.2f}  limit {limit:.1f}  ours {ours_ms:8.1f} ms  rg {rg_ms:8.1f} ms".format(**lines[-1]),
                      flush=True)
    finally:
        shutil.rmtree(scratch)
    (OUT / "files_ratios.json").write_text(json.dumps({"lines": lines}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

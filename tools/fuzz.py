#!/usr/bin/env python3
"""Replays, fuzzes and measures the fuzz targets.

    fuzz.py replay              every committed corpus through the plain replay programs (dev build)
    fuzz.py run --seconds 60    libFuzzer on each target (fuzz build); inputs it finds stay below build/
    fuzz.py coverage            line coverage of each decoder by its committed corpus (coverage build)
    fuzz.py keep                merges the inputs that add coverage into the committed corpora

Each target counts as one test in build/test-results/extra.jsonl when --record is given.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import results

ROOT = results.ROOT
CORPORA = ROOT / "fuzz" / "corpus"
WORK = ROOT / "build" / "fuzz-work"
WANTED_COVERAGE = 90.0
# Far above what a decoder needs for one input; a decoder that believes a length field hits it.
RSS_LIMIT_MB = 1024
INPUT_TIMEOUT_SECONDS = 10


class Target:
    """A line of fuzz_manifest.txt."""

    def __init__(self, name, path, covers):
        self.name = name
        self.path = path
        self.covers = covers

    @property
    def corpus(self):
        return CORPORA / self.name

    def inputs(self):
        return sorted(p for p in self.corpus.glob("*") if p.is_file()) if self.corpus.is_dir() else []


def read_manifest(preset):
    path = ROOT / "build" / preset / "fuzz_manifest.txt"
    if not path.exists():
        sys.exit(f"fuzz: {path} is missing: build the preset first")
    targets = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, binary, covers = line.split("|")
            targets.append(Target(name, binary, [c for c in covers.split(",") if c]))
    return targets


def execute(command, **env):
    """Runs a target; (exit code, everything it said, seconds)."""
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env=dict(os.environ, **env),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode("utf-8", errors="replace")
    return done.returncode, text, time.monotonic() - begin


def replay(target, _options):
    if not target.inputs():
        return "failed", f"the corpus fuzz/corpus/{target.name} is empty", ""
    code, text, _ = execute([target.path, target.corpus])
    return ("passed", "", f"{len(target.inputs())} inputs") if code == 0 else ("failed", text, "")


def fuzz_command(target, seconds, found):
    dictionary = ROOT / "fuzz" / f"{target.name}.dict"
    return [target.path, f"-max_total_time={seconds}", f"-rss_limit_mb={RSS_LIMIT_MB}",
            f"-timeout={INPUT_TIMEOUT_SECONDS}", f"-artifact_prefix={WORK / 'findings'}/{target.name}-",
            "-print_final_stats=1", *([f"-dict={dictionary}"] if dictionary.exists() else []),
            found, target.corpus]


def fuzz(target, options):
    found = WORK / "corpus" / target.name
    found.mkdir(parents=True, exist_ok=True)
    (WORK / "findings").mkdir(parents=True, exist_ok=True)
    target.corpus.mkdir(parents=True, exist_ok=True)
    code, text, seconds = execute(fuzz_command(target, options.seconds, found))
    if code != 0:
        return "failed", "\n".join(text.splitlines()[-60:]), ""
    stats = dict(line[6:].split(":", 1) for line in text.splitlines() if line.startswith("stat::"))
    runs = stats.get("number_of_executed_units", "?").strip()
    return "passed", "", f"{runs} runs in {seconds:.0f} s, no finding"


def keep(target, _options):
    found = WORK / "corpus" / target.name
    if not found.is_dir():
        return "passed", "", "nothing new"
    before = len(target.inputs())
    code, text, _ = execute([target.path, "-merge=1", target.corpus, found])
    return ("passed" if code == 0 else "failed"), text, f"{len(target.inputs()) - before} inputs added"


def covered_lines(target):
    """(covered, total) lines per source file that the target COVERS, by its corpus alone."""
    profile = WORK / "coverage" / target.name
    profile.parent.mkdir(parents=True, exist_ok=True)
    raw, merged = profile.with_suffix(".profraw"), profile.with_suffix(".profdata")
    code, text, _ = execute([target.path, target.corpus], LLVM_PROFILE_FILE=str(raw))
    if code != 0:
        raise RuntimeError(text)
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", raw, "-o", merged], check=True)
    done = subprocess.run(["llvm-cov-19", "export", "-summary-only", f"-instr-profile={merged}", target.path],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    found = {}
    for file in json.loads(done.stdout)["data"][0]["files"]:
        for wanted in target.covers:
            if file["filename"].endswith("/" + wanted) or file["filename"] == wanted:
                lines = file["summary"]["lines"]
                found[wanted] = (lines["covered"], lines["count"])
    return found


def coverage(target, _options):
    if not target.covers:
        return "failed", "the target does not say what it COVERS", ""
    found = covered_lines(target)
    rows, low = [], []
    for name in target.covers:
        covered, count = found.get(name, (0, 0))
        share = 100.0 * covered / count if count else 0.0
        rows.append(f"{name} {share:.1f} % of {count} lines")
        if share < WANTED_COVERAGE:
            low.append(f"{name}: {share:.1f} % is below {WANTED_COVERAGE:.0f} %")
    return ("failed" if low else "passed"), "\n".join(low), "; ".join(rows)


MODES = {"replay": (replay, "dev"), "run": (fuzz, "fuzz"), "coverage": (coverage, "coverage"),
         "keep": (keep, "fuzz")}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--record", action="store_true", help="count each target as a test")
    return parser.parse_args()


def main():
    options = parse_options()
    action, preset = MODES[options.mode]
    entries = []
    targets = read_manifest(preset)
    if not targets:
        print(f"fuzz {options.mode}: no targets")
    for target in targets:
        print(f"fuzz {options.mode}: {target.name} ...", end=" ", flush=True)
        begin = time.monotonic()
        status, reason, words = action(target, options)
        print(words or status, flush=True)
        if status == "failed":
            print("\n".join(f"    {line}" for line in reason.splitlines()))
        entries.append(results.result(f"fuzz-{options.mode}", target.name, status, reason,
                                      seconds=time.monotonic() - begin))
    if options.record:
        results.append_extra(entries)
    return 1 if any(e["status"] == "failed" for e in entries) else 0


if __name__ == "__main__":
    sys.exit(main())

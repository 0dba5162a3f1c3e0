#!/usr/bin/env python3
"""Runs the benchmarks of the release build on ext4 and derives build/bench/ratios.json.

A benchmark that compares itself with the same work done plainly, in the same run, reports it as the
counters `ratio` (lower is better) and, where the line promises something, `limit`. Of repeated runs
the median counts. tools/bench_compare then compares the ratios with the recorded ones.
"""

import argparse
import json
import os
import subprocess
import sys

import filesystems
import results

ROOT = results.ROOT
OUT = ROOT / "build" / "bench"


def read_manifest():
    path = ROOT / "build" / "release" / "bench_manifest.txt"
    if not path.exists():
        sys.exit(f"bench: {path} is missing: run make build first")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("|")[:2] for line in lines if line.strip()]


# ext4 gives no inode away that was freed within the last minute, and looks at each of these for every file
# that it creates: creating comes before all that deletes, in a process of its own.
FIRST = "create_10000_files"


def runs(chosen):
    """Filters of the processes, in order."""
    return [chosen] if chosen else [FIRST, "-" + FIRST]


def run_one(name, path, place, chosen):
    report = OUT / f"{name}.json"
    command = [path, f"--benchmark_out={report}", "--benchmark_out_format=json", "--benchmark_counters_tabular=true",
               f"--benchmark_filter={chosen}"]
    env = dict(os.environ, SANDGLASS_TEST_DIR=str(place.path), SANDGLASS_TEST_FS=place.name)
    print(f"== {name} on {place.name}", flush=True)
    done = subprocess.run(command, cwd=ROOT, env=env, check=False)
    return done.returncode, report


def ratio_lines(report):
    """The lines of one report that carry a ratio; a median replaces the single runs of its name."""
    lines, from_median = {}, set()
    for entry in report["benchmarks"]:
        if "ratio" not in entry or entry.get("error_occurred"):
            continue
        name = entry.get("run_name", entry["name"])
        median = entry.get("aggregate_name") == "median"
        if entry.get("run_type") == "aggregate" and not median or name in from_median:
            continue
        if median:
            from_median.add(name)
        line = {"name": name, "ratio": round(entry["ratio"], 3)}
        if entry.get("limit"):
            line["limit"] = entry["limit"]
        lines[name] = line
    return list(lines.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", help="regular expression: only these benchmarks")
    options = parser.parse_args()
    filesystems.enter_private_mounts()
    OUT.mkdir(parents=True, exist_ok=True)
    lines, failed = [], []
    with filesystems.FileSystems(["ext4"]) as systems:
        place = systems["ext4"]
        if place.path is None:
            sys.exit(f"bench: no ext4: {place.reason}")
        for name, path in read_manifest():
            for chosen in runs(options.filter):
                code, report = run_one(name, path, place, chosen)
                if code != 0:
                    failed.append(name)
                elif report.exists() and report.stat().st_size:
                    lines += ratio_lines(json.loads(report.read_text(encoding="utf-8")))
    if lines and not options.filter:
        (OUT / "ratios.json").write_text(json.dumps({"lines": lines}, indent=2) + "\n", encoding="utf-8")
    for name in failed:
        print(f"bench: {name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

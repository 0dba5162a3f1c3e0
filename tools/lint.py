#!/usr/bin/env python3
"""Layer check, clang-format and clang-tidy. Checks what changed since the last commit, or --all."""

import argparse
import concurrent.futures
import json
import subprocess
import sys

import check_layers
import sources

ROOT = sources.ROOT
DATABASE = ROOT / "build" / "dev" / "compile_commands.json"


def check_format(files):
    if not files:
        return True
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files], cwd=ROOT, check=False)
    return done.returncode == 0


def tidy(path):
    done = subprocess.run(["clang-tidy-19", "-p", DATABASE.parent, "--quiet", path], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return path, done.returncode, done.stdout.strip()


def check_tidy(files, jobs):
    compiled = {entry["file"] for entry in json.loads(DATABASE.read_text(encoding="utf-8"))}
    todo = [path for path in files if str(path) in compiled]
    good = True
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        for number, (path, code, text) in enumerate(pool.map(tidy, todo), start=1):
            print(f"[{number:3}/{len(todo)}] {path.relative_to(ROOT)}", flush=True)
            if text:
                print(text)
            good = good and code == 0
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every source, not only what changed")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files = sources.all_sources() if options.all else sources.changed_sources()
    violations = check_layers.check(ROOT)
    print("\n".join(violations) or "layers: ok")
    formatted = check_format(files)
    print(f"format: {'ok' if formatted else 'run make format'} ({len(files)} files)")
    tidied = check_tidy(files, options.jobs)
    print(f"tidy: {'ok' if tidied else 'see above'}")
    return 0 if not violations and formatted and tidied else 1


if __name__ == "__main__":
    sys.exit(main())

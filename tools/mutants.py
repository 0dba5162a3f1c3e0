#!/usr/bin/env python3
"""Builds each named fault (mutant) into the undo library and shows which test catches it.

tools/mutants.txt names the faults; each is a `#ifdef SANDGLASS_MUTANT_<name>` in src/undo. For each one
the library and its tests are rebuilt below build/mutants, and bounded suites run until one fails: the
model test from a fixed seed, then the unit tests of undo, then a sample of the crash sweep. A mutant that
survives all of them is a hole in the tests and fails the run; so does one that does not build, changes
nothing in the library, or is named in only one of the two places.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
import time

import results
import run_tests

LIST = results.ROOT / "tools" / "mutants.txt"
SOURCE = results.ROOT / "src" / "undo"
PRESET = "mutants"
BUILD = results.ROOT / "build" / PRESET
IN_SOURCE = re.compile(r"\bSANDGLASS_MUTANT_([a-z0-9_]+)")
IN_LIST = re.compile(r"([a-z0-9_]+)\s+(\S.*)")

# Cheapest first. Most faults show on any file system, and tmpfs is the quickest.
SUITES = (
    ("model", ["--label=model", "--only-fs=tmpfs", "--timeout=600"]),
    ("tests", ["--binary=undo_*", "--only-fs=tmpfs", "--timeout=120"]),
)
# Last, and no test binary: every so many-th kill point.
CRASH_SAMPLE = 100
# The same sequences for every mutant, and no time spent on shortening what fails.
FIXED_MODEL = {"SANDGLASS_MODEL_SEED": "1", "SANDGLASS_MODEL_SEQUENCES": "200", "SANDGLASS_MODEL_SHRINK": "0"}


def read_list(text):
    """Name to description, in order; raises ValueError for a line that is neither comment nor mutant."""
    mutants = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = IN_LIST.fullmatch(line.rstrip())
        if not match or match[1] in mutants:
            raise ValueError(f"line {number} is no new mutant: {line}")
        mutants[match[1]] = match[2]
    return mutants


def in_source():
    names = set()
    for path in SOURCE.rglob("*"):
        if path.suffix in {".cc", ".h"}:
            names.update(IN_SOURCE.findall(path.read_text(encoding="utf-8")))
    return names


def objection(name, listed, present):
    """Why a mutant cannot even be tried; None when it can."""
    if name not in present:
        return "is named in mutants.txt but nowhere in src/undo"
    if name not in listed:
        return "is in src/undo but not named in mutants.txt"
    return None


def quiet(*command):
    env = dict(os.environ, SANDGLASS_EXTRA_RESULTS="", **FIXED_MODEL)  # failures here are no results
    done = subprocess.run(command, cwd=results.ROOT, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False)
    return done.returncode, done.stdout


def targets():
    """The test binaries that the suites need."""
    binaries = run_tests.read_manifest(BUILD / "test_manifest.txt")
    tests = [b.name for b in binaries
             if fnmatch.fnmatchcase(b.name, "undo_*") or b.labels & run_tests.LONG_LABELS]
    return [*tests, "crash_sweep"]


def build(name, jobs):
    """Builds the tests with the fault `name` (none for ""); the compiler's words when it fails."""
    code, text = quiet("cmake", "--preset", "dev", "-B", str(BUILD), f"-DSANDGLASS_MUTANT={name}")
    if code == 0:
        code, text = quiet("cmake", "--build", str(BUILD), "--parallel", str(jobs), "--target", *targets())
    return None if code == 0 else "\n".join(text.splitlines()[-30:])


def library_bytes():
    return (BUILD / "lib" / "libsandglass_undo.a").read_bytes()


def first_failures(jobs):
    """The suite that fails first, and the tests that failed in it; (None, []) when all pass."""
    for suite, options in SUITES:
        path = results.results_path(PRESET)
        path.unlink(missing_ok=True)
        quiet(sys.executable, "tools/run_tests.py", f"--preset={PRESET}", f"--jobs={jobs}", "--append", *options)
        if not path.exists():
            return suite, ["(the suite did not finish)"]
        failed = [t["test"] for t in results.load(path) if t["status"] == "failed"]
        if failed:
            return suite, failed
    code, _ = quiet(sys.executable, "tools/crash_sweep", "--build", str(BUILD), "--fs", "tmpfs",
                    "--sample", str(CRASH_SAMPLE))
    return ("crash", ["crash_sweep"]) if code else (None, [])


def try_mutant(name, clean, jobs):
    """(status, words) for one mutant."""
    broken = build(name, jobs)
    if broken:
        return "failed", f"does not build:\n{broken}"
    if library_bytes() == clean:
        return "failed", "changes nothing in the library"
    suite, failed = first_failures(jobs)
    if not suite:
        return "failed", "SURVIVED: no test notices it"
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return "passed", f"caught by {failed[0]}{more} ({suite})"


def baseline(jobs):
    """What is wrong without any fault; None when the suites pass, so that a failure means something."""
    broken = build("", jobs)
    if broken:
        return broken
    suite, failed = first_failures(jobs)
    return f"{suite} fails without any fault, so nothing can be shown: {failed[:5]}" if suite else None


def try_all(names, listed, options):
    present, clean, entries = in_source(), library_bytes(), []
    for number, name in enumerate(names, start=1):
        begin = time.monotonic()
        why_not = objection(name, listed, present)
        status, words = ("failed", why_not) if why_not else try_mutant(name, clean, options.jobs)
        seconds = time.monotonic() - begin
        print(f"[{number:3}/{len(names)}] {name:24} {words}  ({seconds:.0f} s)", flush=True)
        entries.append(results.result("mutants", name, status, words, seconds=seconds))
    return entries


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="one mutant by name")
    parser.add_argument("--list", action="store_true", help="print the mutants and what each breaks")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="count each mutant as a test")
    return parser.parse_args()


def main():
    options = parse_options()
    listed = read_list(LIST.read_text(encoding="utf-8"))
    names = [n for n in sorted(listed.keys() | in_source()) if options.only in (None, n)]
    if options.list:
        for name in names:
            print(f"{name:24} {listed.get(name, '(not in mutants.txt)')}")
        return 0
    if not names:
        print(f"mutants: there is none called {options.only}")
        return 1
    print(f"mutants: {len(names)}; building and testing without a fault first", flush=True)
    trouble = baseline(options.jobs)
    if trouble:
        print(f"mutants: {trouble}")
        return 1
    entries = try_all(names, listed, options)
    if options.record:
        results.append_extra(entries)
    print(results.counts_line(entries))
    return 1 if any(e["status"] == "failed" for e in entries) else 0


if __name__ == "__main__":
    sys.exit(main())

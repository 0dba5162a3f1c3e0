#!/usr/bin/env python3
"""Line coverage of src/ by the tests and corpora, from the coverage build on the default file system."""

import subprocess
import sys

import fuzz
import results
import run_tests

PROFILES = results.ROOT / "build" / "coverage" / "profiles"


def run_all():
    """Runs tests and corpora with profiles written to PROFILES; returns the programs that ran."""
    PROFILES.mkdir(parents=True, exist_ok=True)
    for old in PROFILES.glob("*.profraw"):
        old.unlink()
    # %m keeps one profile per program, %p one per process: tests fork and are killed.
    profile = {"LLVM_PROFILE_FILE": str(PROFILES / "%m-%p.profraw")}
    programs = []
    command = [sys.executable, results.ROOT / "tools" / "run_tests.py", "--preset=coverage", "--only-fs=ext4"]
    code, text, _ = fuzz.execute(command, **profile)
    print(text)
    if code != 0:
        print("coverage: some tests failed; the figures below are of what ran", file=sys.stderr)
    manifest = results.ROOT / "build" / "coverage" / "test_manifest.txt"
    programs += [binary.path for binary in run_tests.read_manifest(manifest)]
    for target in fuzz.read_manifest("coverage"):
        fuzz.execute([target.path, target.corpus], **profile)
        programs.append(target.path)
    return programs


def report(programs):
    merged = PROFILES / "all.profdata"
    raw = sorted(PROFILES.glob("*.profraw"))
    if not raw or not programs:
        sys.exit("coverage: nothing ran")
    listing = PROFILES / "profiles.txt"
    listing.write_text("\n".join(map(str, raw)), encoding="utf-8")
    # A process that was killed while it wrote leaves a broken profile: that one is dropped.
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", "--failure-mode=all", f"--input-files={listing}",
                    "-o", merged], check=True, stderr=subprocess.DEVNULL)
    objects = [f"--object={program}" for program in programs[1:]]
    subprocess.run(["llvm-cov-19", "report", f"-instr-profile={merged}", programs[0], *objects,
                    "-show-region-summary=0", "-show-branch-summary=0",
                    "--ignore-filename-regex=(/usr/|_test\\.cc$|tests/|fuzz/|cmake/)"],
                   cwd=results.ROOT, check=True)


if __name__ == "__main__":
    report(run_all())

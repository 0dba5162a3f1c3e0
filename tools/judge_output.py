#!/usr/bin/env python3
"""Judges a GoogleTest program that has run, as run_tests.py does: `judge_output.py OUTPUT REPORT`.

For tests that run a whole program once more. OUTPUT is what it printed, REPORT its JSON. Prints each failure, each skip that
tests/expected_skips.txt does not foresee, and the test in which the program ended, if it did. Exit code: 0 if there are none,
1 if there are, 77 if every test was skipped and should have been; then the reason is printed.
"""

import os
import sys
from pathlib import Path

import results
import run_tests

ALL_SKIPPED = 77


def judge(output, report, fs, rows):
    """Results of all tests that were begun, judged."""
    followed = run_tests.Output()
    for line in output.splitlines():
        followed.feed(line)
    status = dict(followed.status)
    if report.exists():
        run_tests.read_report(report, status, {})
    tests = []
    for name, how in status.items():
        said = followed.said(name)
        reason = run_tests.skip_reason(said) if how == "skipped" else said
        tests.append(results.result("nested", name, how, reason, fs))
    if followed.current and followed.current not in status:
        tests.append(results.result("nested", followed.current, "failed",
                                    followed.said(followed.current) + "\nended the program", fs))
    return results.judge_skips(tests, rows)


def main():
    output, report = Path(sys.argv[1]), Path(sys.argv[2])
    tests = judge(output.read_text(encoding="utf-8", errors="replace"), report,
                  os.environ.get("SANDGLASS_TEST_FS", "-"), results.load_expected_skips())
    failed = [test for test in tests if test["status"] == "failed"]
    for test in failed:
        print(f"FAILED {test['test']}: {test['reason']}")
    if failed or not tests:
        print("" if tests else "no test was run")
        return 1
    if not any(test["status"] == "passed" for test in tests):
        print(tests[0]["reason"])
        return ALL_SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())

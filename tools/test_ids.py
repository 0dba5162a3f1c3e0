#!/usr/bin/env python3
"""Prints every founding test id with the tests that carry it and their results in the last run.

A test carries an id by its name: TEST(UndoInterceptor, UI_01_WritingAFileThrice) carries UI-01. Fails
when an id of milestone `undo`, `world` or `api` has no test, did not run, or failed on any file system. A test that is
skipped on one file system (for an expected reason) must have passed on another.
"""

import argparse
import re
import sys
from pathlib import Path

import results

LIST = Path(__file__).resolve().parent / "test_ids.txt"
DEMANDED = ("undo", "world", "api")
ID_IN_NAME = re.compile(r"(?<![A-Za-z0-9])([A-Z][A-Z0-9]{1,2})[_-](\d{2})(?![0-9])")


class Row:
    """One id and what the last run says about it."""

    def __init__(self, name, group, milestone, scenario):
        self.name = name
        self.group = group
        self.milestone = milestone
        self.scenario = scenario
        self.tests = []

    @property
    def demanded(self):
        return self.milestone in DEMANDED

    def systems(self, status):
        return sorted({t["fs"] for t in self.tests if t["status"] == status})

    @property
    def verdict(self):
        if not self.tests:
            return "missing" if self.demanded else "later"
        if self.systems("failed"):
            return "failed on " + ", ".join(self.systems("failed"))
        never = [name for name, entries in self._by_test().items()
                 if not any(t["status"] == "passed" for t in entries)]
        if never:
            return "did not run: " + ", ".join(sorted(never))
        skipped = self.systems("skipped")
        return "passed" + (f" (skipped on {', '.join(skipped)})" if skipped else "")

    @property
    def good(self):
        return self.verdict.startswith("passed") or (not self.demanded and not self.tests)

    def _by_test(self):
        found = {}
        for entry in self.tests:
            found.setdefault(entry["test"], []).append(entry)
        return found

    def names(self):
        return sorted(self._by_test())


def read_list(text):
    rows = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 4:
            raise ValueError(f"test_ids.txt:{number}: wanted `id | group | milestone | scenario`")
        if cells[0] in rows:
            raise ValueError(f"test_ids.txt:{number}: {cells[0]} is listed twice")
        rows[cells[0]] = Row(*cells)
    return rows


def ids_in(test_name):
    return {f"{prefix}-{number}" for prefix, number in ID_IN_NAME.findall(test_name)}


def attach(rows, tests):
    for entry in tests:
        for name in ids_in(entry["test"]):
            if name in rows:
                rows[name].tests.append(entry)


def print_table(rows, full):
    print("id | test | file systems | result")
    group = None
    for row in rows.values():
        if not full and not row.tests and not row.demanded:
            continue
        if row.group != group:
            group = row.group
            print(f"\n{group}")
        names = row.names() or [f"({row.scenario})"]
        systems = ", ".join(sorted({t["fs"] for t in row.tests})) or "-"
        print(f"  {row.name} | {names[0]} | {systems} | {row.verdict}")
        for name in names[1:]:
            print(f"        | {name} | |")


def summarise(rows):
    demanded = [row for row in rows.values() if row.demanded]
    bad = [row for row in rows.values() if not row.good]
    waiting = sum(not row.demanded and not row.tests for row in rows.values())
    print(f"\n{len(rows)} ids: {len(demanded)} demanded, {sum(r.good for r in demanded)} of them good;"
          f" {waiting} wait for later milestones")
    for row in bad:
        print(f"NOT GOOD {row.name}: {row.verdict} - {row.scenario}")
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=results.results_path("dev"))
    parser.add_argument("--short", action="store_true", help="leave out ids of later milestones without a test")
    options = parser.parse_args()
    if not options.results.exists():
        print(f"test_ids: {options.results} is missing: run the tests first", file=sys.stderr)
        return 1
    rows = read_list(LIST.read_text(encoding="utf-8"))
    attach(rows, results.load(options.results) + results.load_extra())
    print_table(rows, full=not options.short)
    return 0 if summarise(rows) else 1


if __name__ == "__main__":
    sys.exit(main())

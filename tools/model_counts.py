#!/usr/bin/env python3
"""Sums what the model test did on every file system, and fails when it was less than it must be.

    model_counts.py FOLDER      with the <file system>.json reports of a full run
"""

import collections
import json
import sys
from pathlib import Path

MIN_SEQUENCES, MIN_OPERATIONS, MIN_STEPS, MIN_USES = 20_000, 30, 3, 1_000


def total(reports):
    """(sequences, shortest sequence, fewest steps, uses per operation and strategy) of all reports."""
    uses = collections.Counter()
    for report in reports:
        for word, key in (("operation", "operations"), ("strategy", "strategies")):
            for name, number in report[key].items():
                uses[f"{word} {name}"] += number
    return (sum(r["sequences"] for r in reports), min(r["shortest_sequence"] for r in reports),
            min(r["fewest_steps"] for r in reports), uses)


def objections(reports):
    """Everything that was less than it must be, one line each."""
    if not reports:
        return ["no report: the model test did not run to its end"]
    sequences, shortest, fewest, uses = total(reports)
    found = []
    if sequences < MIN_SEQUENCES:
        found.append(f"{sequences} sequences, wanted {MIN_SEQUENCES}")
    if shortest < MIN_OPERATIONS:
        found.append(f"a sequence had {shortest} operations, wanted {MIN_OPERATIONS}")
    if fewest < MIN_STEPS:
        found.append(f"a sequence had {fewest} steps, wanted {MIN_STEPS}")
    found += [f"{name}: used {number} times, wanted {MIN_USES}"
              for name, number in sorted(uses.items()) if number < MIN_USES]
    return found


def main():
    if len(sys.argv) != 2:
        print("usage: model_counts.py FOLDER", file=sys.stderr)
        return 2
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(sys.argv[1]).glob("*.json"))]
    if reports:
        sequences, shortest, fewest, uses = total(reports)
        for name, number in sorted(uses.items()):
            print(f"{name:44} {number:10}")
        print(f"{sequences} sequences of at least {shortest} operations in at least {fewest} steps on "
              + ", ".join(report["file_system"] for report in reports))
    found = objections(reports)
    for line in found:
        print(f"TOO LITTLE {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

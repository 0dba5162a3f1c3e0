"""What a test run leaves behind, and how it is counted.

A result is a dict: suite (the binary or stage), fs ("-" where none matters), test, status ("passed",
"failed" or "skipped"), reason, seconds. build/test-results/<preset>/results.json holds a list of them
under "tests". Any other program joins in by appending lines of JSON with suite, test, status and
reason to build/test-results/extra.jsonl.
"""

import fnmatch
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "test-results"
EXTRA = FOLDER / "extra.jsonl"
EXPECTED_SKIPS = ROOT / "tests" / "expected_skips.txt"
STATUSES = ("passed", "failed", "skipped")


def result(suite, test, status, reason="", fs="-", seconds=0.0):
    return {"suite": suite, "fs": fs, "test": test, "status": status, "reason": reason,
            "seconds": round(seconds, 3)}


def results_path(preset):
    return FOLDER / preset / "results.json"


def load(path):
    """The results in a results.json; none when there is no such file."""
    if not path.exists():
        return []
    return json.loads(path.read_text(encoding="utf-8"))["tests"]


def save(path, tests):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"tests": tests, "counts": count(tests)}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def load_extra(path=EXTRA):
    """The results other programs left; a line that does not parse is a failed test, never lost."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
            if raw["status"] not in STATUSES:
                raise ValueError(f"unknown status {raw['status']!r}")
            found.append(result(raw["suite"], raw["test"], raw["status"], raw.get("reason", ""),
                                raw.get("fs", "-"), raw.get("seconds", 0.0)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            found.append(result("extra", f"line {number}", "failed", f"not a result: {error}"))
    return found


def append_extra(entries, path=EXTRA):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry) + "\n")


def count(tests):
    return {status: sum(t["status"] == status for t in tests) for status in STATUSES}


def counts_line(tests):
    return ", ".join(f"{number} {status}" for status, number in count(tests).items())


def load_expected_skips(path=EXPECTED_SKIPS):
    """Rows of (file system glob, test glob, substring of the reason)."""
    rows = []
    if not path.exists():
        return rows
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 3 or not all(cells):
            raise ValueError(f"{path}:{number}: wanted `fs-glob | test-glob | reason`")
        rows.append(tuple(cells))
    return rows


def skip_is_expected(entry, rows):
    return any(
        fnmatch.fnmatchcase(entry["fs"], fs)
        and fnmatch.fnmatchcase(entry["test"], test)
        and reason in entry["reason"]
        for fs, test, reason in rows)


def judge_skips(tests, rows):
    """Turns every skip that nobody expects into a failure: a test that quietly stops running is lost."""
    for entry in tests:
        if entry["status"] == "skipped" and not skip_is_expected(entry, rows):
            entry["status"] = "failed"
            entry["reason"] = f"unexpected skip: {entry['reason'] or 'no reason given'}"
    return tests

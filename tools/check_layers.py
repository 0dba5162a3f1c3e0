#!/usr/bin/env python3
"""Enforces the ranks of the modules under src/: a module includes only modules of a lower rank.

Modules of equal rank never include each other; shim includes base and control only; code under src/
never includes tests/, fuzz/, bench/ or examples/, except that a foo_test.cc may use tests/support/.
What lies outside src/ may include anything.
"""

import argparse
import re
import sys
from pathlib import Path

RANKS = {
    "base": 0,
    "undo": 1,
    "trace": 1,
    "policy": 1,
    "net": 1,
    "control": 1,
    "vfs": 2,
    "bridge": 3,
    "world": 3,
    "session": 4,
    "api": 5,
    "cli": 6,
}
# The program inside worlds is linked statically and must stay small.
SHIM = "shim"
SHIM_MAY_INCLUDE = {"base", "control"}
OUTSIDE = {"tests", "fuzz", "bench", "examples"}
TEST_SUPPORT = "tests/support/"

SUFFIXES = {".cc", ".h", ".c", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes_of(path):
    """Yields (line number, included path) for every include that could name a module."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if match and (match[1] == '"' or match[2].split("/")[0] in RANKS.keys() | {SHIM} | OUTSIDE):
            yield number, match[2]


def objection(module, included, is_test):
    """Why `module` may not include the path `included`; None when it may."""
    if included.startswith("../") or "/../" in included:
        return "includes by a relative path; the include root is src/"
    if "/" not in included:
        return f'includes "{included}" without its module; the include root is src/'
    target = included.split("/")[0]
    if target == module:
        return None
    if target in OUTSIDE:
        if is_test and included.startswith(TEST_SUPPORT):
            return None
        return f"product code includes {target}/"
    if target not in RANKS:
        return f"includes the unknown module '{target}'"
    if module == SHIM:
        return None if target in SHIM_MAY_INCLUDE else f"shim may include base and control only, not {target}"
    if RANKS[target] == RANKS[module]:
        return f"{module} and {target} have the same rank ({RANKS[module]}) and never include each other"
    if RANKS[target] > RANKS[module]:
        return f"{module} (rank {RANKS[module]}) includes upward: {target} has rank {RANKS[target]}"
    return None


def check(root):
    """Every violation below root/src, as printable lines."""
    source = root / "src"
    found = []
    for path in sorted(p for p in source.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        relative = path.relative_to(source)
        where = path.relative_to(root)
        module = relative.parts[0]
        if len(relative.parts) < 2:
            found.append(f"{where}: lies in no module")
            continue
        if module not in RANKS and module != SHIM:
            found.append(f"{where}: the module '{module}' has no rank")
            continue
        is_test = path.stem.endswith("_test")
        for number, included in includes_of(path):
            reason = objection(module, included, is_test)
            if reason:
                found.append(f"{where}:{number}: {reason}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=Path(__file__).resolve().parent.parent, type=Path)
    root = parser.parse_args().root
    found = check(root)
    for line in found:
        print(line, file=sys.stderr)
    print(f"layers: {'ok' if not found else f'{len(found)} violations'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

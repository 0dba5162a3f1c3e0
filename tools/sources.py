"""Which C++ files are ours, and which of them changed since the last commit."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "fuzz", "bench", "examples", "cmake")
SUFFIXES = {".cc", ".h"}


def all_sources():
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")
                  if path.suffix in SUFFIXES and path.is_file())


def changed_sources():
    """Changed and new files; a changed header stands for the source beside it as well."""
    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []

    names = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    touched = {ROOT / name for name in names}
    touched |= {path.with_suffix(".cc") for path in touched if path.suffix == ".h"}
    return [path for path in all_sources() if path in touched]

#!/usr/bin/env python3
"""`make test` and, with --all, `make test-all`: every stage in order, then the counts of them all.

A failing stage does not stop the ones after it, except that nothing runs from a build that failed.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import unittest

import check_layers
import results

ROOT = results.ROOT
TOOLS = ROOT / "tools"
FUZZ_SECONDS = 5
SAMPLE_TIMEOUT, FULL_TIMEOUT = 900, 6 * 3600
SWEEP_SAMPLE = 300


class Stages:
    """Runs stages one after the other and remembers how each ended."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.broken_builds = set()
        self.begin = time.monotonic()

    def title(self, text):
        print(f"\n== {text}  [{time.monotonic() - self.begin:.0f} s]", flush=True)

    def record(self, suite, test, good, reason=""):
        results.append_extra([results.result(suite, test, "passed" if good else "failed", reason)])

    def command(self, *words, stdout=None):
        process = subprocess.Popen([str(word) for word in words], cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=stdout)
        try:
            return process.wait() == 0
        except KeyboardInterrupt:
            # A stage has mounts to undo: it is asked to end, and waited for.
            process.terminate()
            process.wait()
            raise

    def layers(self):
        self.title("layers")
        found = check_layers.check(ROOT)
        print("\n".join(found) or "ok")
        self.record("tools", "layers", not found, "\n".join(found))

    def self_tests(self):
        self.title("self tests of the tools")
        suite = unittest.defaultTestLoader.discover(str(TOOLS), pattern="test_*.py")
        outcome = unittest.TextTestRunner(stream=sys.stdout, resultclass=RecordedTests).run(suite)
        results.append_extra(outcome.entries)

    def build(self, preset, *targets):
        """Everything of a preset, or only some targets."""
        self.title(f"build {preset}")
        good = (self.command("cmake", "--preset", preset, "--log-level=WARNING",
                             stdout=subprocess.DEVNULL)
                and self.command("cmake", "--build", f"build/{preset}", "--parallel", self.jobs,
                                 *(["--target", *targets] if targets else [])))
        self.record("build", preset, good)
        if not good:
            self.broken_builds.add(preset)

    def tests(self, preset, *options):
        """Test binaries of a preset; their results go to that preset's results.json."""
        if preset in self.broken_builds:
            return
        self.title(f"tests of {preset} {' '.join(options)}".strip())
        good = self.command(sys.executable, TOOLS / "run_tests.py", f"--preset={preset}",
                            f"--jobs={self.jobs}", "--append", *options)
        # Failures that were recorded count by themselves; anything else must not be lost.
        recorded = results.load(results.results_path(preset))
        if not good and not any(entry["status"] == "failed" for entry in recorded):
            self.record("run_tests", f"{preset} {' '.join(options)}".strip(), False, "ended without results")

    def fuzz(self, preset, mode, *options):
        if preset in self.broken_builds:
            return
        self.title(f"fuzz {mode}")
        self.command(sys.executable, TOOLS / "fuzz.py", mode, "--record", *options)

    def crash_sample(self):
        if "dev" not in self.broken_builds:
            self.title("crash sweep, a sample")
            good = self.command(sys.executable, TOOLS / "crash_sweep", "--sample", SWEEP_SAMPLE)
            self.record("crash-sweep", "sample", good)

    def crash_full(self):
        """Every kill point, and the proof that a journal written too late would be noticed."""
        self.title("crash sweep")
        self.record("crash-sweep", "full", self.command("make", "crash-sweep", f"JOBS={self.jobs}", "SWEEP_EVERY=1"))

    def model_full(self):
        folder = results.FOLDER / "model"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        os.environ["SANDGLASS_MODEL_REPORT"] = str(folder)
        self.tests("dev", "--label=model", "--scale=full", f"--timeout={FULL_TIMEOUT}")
        del os.environ["SANDGLASS_MODEL_REPORT"]
        self.title("what the model test did")
        good = self.command(sys.executable, TOOLS / "model_counts.py", folder)
        self.record("model", "counts", good)

    def kills_full(self):
        """Parts of Sandglass are killed while real programs work, and a command prints 10 GB."""
        full = ("--per-fs", "--scale=full", f"--timeout={FULL_TIMEOUT}", "--verbose")
        self.tests("dev", "--binary=kills_test", "--only-fs=tmpfs,ext4", *full)
        self.tests("dev", "--binary=session_test", "--filter=*PrintsGigabytes*", "--only-fs=tmpfs", *full)

    def races_full(self):
        """Each swap of a path is tried 10,000 times, as root and as an ordinary user."""
        self.tests("dev", "--binary=security_test", "--filter=SecurityRace.*:OrdinaryUser.*", "--scale=full",
                   f"--timeout={FULL_TIMEOUT}")

    def mutants(self):
        self.title("mutants")
        good = self.command(sys.executable, TOOLS / "mutants.py", "--record", f"--jobs={self.jobs}")
        if not good and not any(entry["suite"] == "mutants" for entry in results.load_extra()):
            self.record("mutants", "baseline", False, "the suites fail without any fault")

    def mcp_clients(self):
        """MCP clients that others wrote; they record each case themselves."""
        if "dev" not in self.broken_builds:
            self.title("MCP clients")
            before = len(results.load_extra())
            good = self.command(sys.executable, ROOT / "tests" / "mcp_clients" / "run.py", "--record")
            if not good and len(results.load_extra()) == before:
                self.record("mcp_clients", "McpClients", False, "ended without results")

    def ids(self):
        self.title("founding test ids")
        self.record("tools", "test_ids", self.command(sys.executable, TOOLS / "test_ids.py", "--short"))


class RecordedTests(unittest.TextTestResult):
    """Keeps every self test as a result of its own."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        self.entries = []

    def _keep(self, test, status, reason=""):
        self.entries.append(results.result("tools", test.id(), status, reason))

    def addSuccess(self, test):  # pylint: disable=invalid-name
        super().addSuccess(test)
        self._keep(test, "passed")

    def addFailure(self, test, err):  # pylint: disable=invalid-name
        super().addFailure(test, err)
        self._keep(test, "failed", str(err[1]))

    def addError(self, test, err):  # pylint: disable=invalid-name
        super().addError(test, err)
        self._keep(test, "failed", repr(err[1]))

    def addSkip(self, test, reason):  # pylint: disable=invalid-name
        super().addSkip(test, reason)
        self._keep(test, "skipped", reason)


def forget_last_run():
    results.EXTRA.unlink(missing_ok=True)
    for path in results.FOLDER.glob("*/results.json"):
        path.unlink()


def run_short(stages):
    stages.layers()
    stages.self_tests()
    stages.build("dev")
    stages.tests("dev")
    stages.mcp_clients()
    stages.fuzz("dev", "replay")
    stages.build("fuzz", "fuzzers")
    stages.fuzz("fuzz", "run", f"--seconds={FUZZ_SECONDS}")
    stages.tests("dev", "--label=model", f"--timeout={SAMPLE_TIMEOUT}")
    stages.crash_sample()


def run_long(stages):
    stages.model_full()
    stages.crash_full()
    stages.kills_full()
    stages.races_full()
    stages.build("asan")
    stages.tests("asan", "--timeout=600", "--only-fs=ext4,tmpfs")
    stages.tests("asan", "--timeout=3600", "--only-fs=tmpfs", "--label=model")
    stages.build("tsan")
    stages.tests("tsan", "--timeout=600", "--only-fs=ext4,tmpfs", "--binary=undo_*")
    stages.build("coverage", "fuzzers")
    stages.fuzz("coverage", "coverage")
    stages.mutants()


def gather():
    """Everything that ran in this call, each preset's tests and the other stages."""
    tests = []
    for path in sorted(results.FOLDER.glob("*/results.json")):
        if path.parent.name != "mutants":  # there, a failing test is the wanted outcome
            tests += results.load(path)
    extra = results.load_extra()
    results.judge_skips(extra, results.load_expected_skips())
    return tests + extra


def close(stages):
    tests = gather()
    failed = [t for t in tests if t["status"] == "failed"]
    print(f"\n== results  [{time.monotonic() - stages.begin:.0f} s]")
    for entry in failed:
        print(f"FAILED {entry['suite']}: {entry['test']} on {entry['fs']}")
    print(results.counts_line(tests), flush=True)
    return 1 if failed or not tests else 0


def stop(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the long suites too")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    forget_last_run()
    stages = Stages(options.jobs)
    try:
        run_short(stages)
        if options.all:
            run_long(stages)
        stages.ids()
    except KeyboardInterrupt:
        print("make_test: ended early", file=sys.stderr)
        return 130
    return close(stages)


if __name__ == "__main__":
    sys.exit(main())

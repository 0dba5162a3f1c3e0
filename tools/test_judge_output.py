"""Self tests of judge_output.py."""

import json
import tempfile
import unittest
from pathlib import Path

import judge_output

ROWS = [("*", "World.*", "no local world")]


def skip(name, reason):
    return f"[ RUN      ] {name}\nfile.cc:1: Skipped\n{reason}\n[  SKIPPED ] {name} (0 ms)\n"


class Judge(unittest.TestCase):
    def judge(self, output, suites=None):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            if suites is not None:
                report.write_text(json.dumps({"testsuites": suites}), encoding="utf-8")
            tests = judge_output.judge(output, report, "-", ROWS)
        return {test["test"]: test["status"] for test in tests}

    def test_a_skip_that_nobody_expects_fails(self):
        output = skip("World.A", "no local world: x") + skip("World.B", "too tired")
        self.assertEqual(self.judge(output), {"World.A": "skipped", "World.B": "failed"})

    def test_the_test_in_which_the_program_ended_fails(self):
        output = "[ RUN      ] World.A\n[       OK ] World.A (0 ms)\n[ RUN      ] World.B\nboom\n"
        self.assertEqual(self.judge(output), {"World.A": "passed", "World.B": "failed"})

    def test_the_report_overrides_the_output(self):
        output = "[ RUN      ] World.A\n[       OK ] World.A (0 ms)\n"
        test = {"name": "A", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "x"}]}
        self.assertEqual(self.judge(output, [{"name": "World", "testsuite": [test]}]),
                         {"World.A": "failed"})


if __name__ == "__main__":
    unittest.main()

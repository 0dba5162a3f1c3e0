"""Self test of bench_compare, through its command line."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "bench_compare"


class BenchCompare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.now = Path(folder.name, "now.json")
        self.recorded = Path(folder.name, "recorded.json")

    def write(self, path, **ratios):
        lines = [{"name": name, "ratio": ratio, "limit": 2.0} for name, ratio in ratios.items()]
        path.write_text(json.dumps({"lines": lines}), encoding="utf-8")

    def compare(self, *options):
        command = [sys.executable, PROGRAM, "--now", self.now, "--recorded", self.recorded, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_thirty_percent_is_tolerated_and_more_is_flagged(self):
        self.write(self.recorded, delete=1.0, create=1.0)
        self.write(self.now, delete=1.29, create=1.31)
        code, text = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("WORSE by 31 %", text)
        self.assertEqual(text.count("WORSE"), 1)

    def test_better_and_new_lines_are_fine(self):
        self.write(self.recorded, delete=1.0)
        self.write(self.now, delete=0.5, fresh=9.0)
        code, text = self.compare()
        self.assertEqual(code, 0)
        self.assertIn("new, over its limit by 350 %", text)

    def test_a_line_that_vanished_is_flagged(self):
        self.write(self.recorded, delete=1.0, create=1.0)
        self.write(self.now, delete=1.0)
        code, text = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("GONE", text)

    def test_without_a_record_everything_is_new_and_can_be_recorded(self):
        self.write(self.now, delete=1.5)
        self.assertEqual(self.compare()[0], 0)
        self.assertEqual(self.compare("--record")[0], 0)
        self.write(self.now, delete=2.5)
        self.assertEqual(self.compare()[0], 1)

    def test_unreadable_input_is_an_error_of_its_own(self):
        self.now.write_text("{}", encoding="utf-8")
        self.assertEqual(self.compare()[0], 2)


if __name__ == "__main__":
    unittest.main()

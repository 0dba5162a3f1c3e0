"""Self test of run_tests and results: reading GoogleTest's output, judging skips, counting."""

import argparse
import tempfile
import unittest
from pathlib import Path

import results
import run_tests


def follow(text):
    output = run_tests.Output()
    for line in text.splitlines():
        output.feed(line)
    return output


class GoogleTestOutput(unittest.TestCase):
    def test_statuses_and_words_belong_to_their_tests(self):
        output = follow("""[ RUN      ] A.Good
[       OK ] A.Good (3 ms)
[ RUN      ] A.Bad
a_test.cc:7: Failure
words
[  FAILED  ] A.Bad (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Bad
""")
        self.assertEqual(output.status, {"A.Good": "passed", "A.Bad": "failed"})
        self.assertEqual(output.said("A.Bad"), "a_test.cc:7: Failure\nwords")

    def test_output_without_a_newline_does_not_hide_the_end_of_a_test(self):
        output = follow("[ RUN      ] A.B\nprogress...[       OK ] A.B (0 ms)\n")
        self.assertEqual(output.status, {"A.B": "passed"})
        self.assertEqual(output.said("A.B"), "progress...")

    def test_the_test_that_never_ended_is_the_current_one(self):
        self.assertEqual(follow("[ RUN      ] A.Hangs\nsome words\n").current, "A.Hangs")

    def test_parameterised_names_are_kept_whole(self):
        text = "[ RUN      ] All/A.B/ext4\n[  FAILED  ] All/A.B/ext4, where GetParam() = x (1 ms)\n"
        self.assertEqual(follow(text).status, {"All/A.B/ext4": "failed"})

    def test_skip_reason_is_what_the_test_said(self):
        self.assertEqual(run_tests.skip_reason("a_test.cc:9: Skipped\nno reflink here\n"), "no reflink here")


class Skips(unittest.TestCase):
    ROWS = [("tmpfs", "Undo.*", "no reflink")]

    def judge(self, **fields):
        entry = dict(results.result("s", "Undo.Clone", "skipped", "no reflink here", "tmpfs"), **fields)
        return results.judge_skips([entry], self.ROWS)[0]["status"]

    def test_an_expected_skip_stays_a_skip(self):
        self.assertEqual(self.judge(), "skipped")

    def test_another_place_test_or_reason_is_a_failure(self):
        self.assertEqual(self.judge(fs="xfs"), "failed")
        self.assertEqual(self.judge(test="Other.Clone"), "failed")
        self.assertEqual(self.judge(reason="tired"), "failed")

    def test_the_list_of_expected_skips_parses(self):
        self.assertTrue(results.load_expected_skips())

    def test_a_malformed_row_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "skips.txt")
            path.write_text("ext4 | only two\n", encoding="utf-8")
            with self.assertRaises(ValueError):
                results.load_expected_skips(path)


class Extra(unittest.TestCase):
    def test_lines_of_other_programs_join_and_a_broken_line_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "extra.jsonl")
            results.append_extra([{"suite": "model", "test": "sequences", "status": "passed"}], path)
            with open(path, "a", encoding="utf-8") as file:
                file.write('{"suite": "x"\n{"suite": "x", "test": "y", "status": "maybe"}\n')
            loaded = results.load_extra(path)
        self.assertEqual([entry["status"] for entry in loaded], ["passed", "failed", "failed"])

    def test_counts_line(self):
        tests = [results.result("s", "a", "passed"), results.result("s", "b", "skipped")]
        self.assertEqual(results.counts_line(tests), "1 passed, 0 failed, 1 skipped")


class Jobs(unittest.TestCase):
    def places(self, per_fs):
        options = argparse.Namespace(per_fs=per_fs)
        systems = {name: argparse.Namespace(name=name, path=Path(name), reason="") for name in ("tmpfs", "ext4")}
        binaries = [run_tests.Binary("plain", "plain", set()), run_tests.Binary("labelled", "labelled", {"fs"})]
        jobs, _ = run_tests.make_jobs(binaries, systems, options, None, print)
        return [(job.binary.name, job.fs) for job in jobs]

    def test_only_those_with_the_label_run_once_per_file_system(self):
        self.assertEqual(self.places(False), [("plain", "-"), ("labelled", "tmpfs"), ("labelled", "ext4")])

    def test_unless_all_are_to(self):
        self.assertEqual(self.places(True), [("plain", "tmpfs"), ("plain", "ext4"),
                                             ("labelled", "tmpfs"), ("labelled", "ext4")])


if __name__ == "__main__":
    unittest.main()

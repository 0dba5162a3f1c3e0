"""Self test of test_ids: which results make an id good, and which never may."""

import contextlib
import io
import unittest

import results
import test_ids

LIST = """# comment
UI-01 | Interceptor | undo | first
UI-02 | Interceptor | undo | second
CC-01 | Control | later | third
SH-01 | Shim | world | fourth
"""


class TestIds(unittest.TestCase):
    def rows(self, *tests):
        rows = test_ids.read_list(LIST)
        test_ids.attach(rows, [results.result("s", name, status, fs=fs) for name, status, fs in tests])
        return rows

    def test_ids_are_found_in_names_of_every_shape(self):
        self.assertEqual(test_ids.ids_in("Undo.UI_01_Writes"), {"UI-01"})
        self.assertEqual(test_ids.ids_in("All/Undo.UI-01/btrfs"), {"UI-01"})
        self.assertEqual(test_ids.ids_in("Undo.UI_16_And_UL_03"), {"UI-16", "UL-03"})
        self.assertEqual(test_ids.ids_in("Undo.DOS_04_Big"), {"DOS-04"})
        self.assertEqual(test_ids.ids_in("Undo.MULTI_01"), set())
        self.assertEqual(test_ids.ids_in("Undo.UI_0123"), set())

    def test_ids_of_the_world_are_demanded_as_well(self):
        self.assertEqual(self.rows()["SH-01"].verdict, "missing")
        self.assertFalse(self.rows()["SH-01"].good)
        self.assertTrue(self.rows(("World.SH_01_Runs", "passed", "ext4"))["SH-01"].good)

    def test_passed_everywhere_is_good(self):
        row = self.rows(("A.UI_01", "passed", "ext4"), ("A.UI_01", "passed", "xfs"))["UI-01"]
        self.assertEqual((row.verdict, row.good), ("passed", True))

    def test_failed_on_one_file_system_is_not_good(self):
        row = self.rows(("A.UI_01", "passed", "ext4"), ("A.UI_01", "failed", "xfs"))["UI-01"]
        self.assertEqual((row.verdict, row.good), ("failed on xfs", False))

    def test_skipped_everywhere_did_not_run(self):
        row = self.rows(("A.UI_01", "skipped", "ext4"))["UI-01"]
        self.assertEqual((row.verdict, row.good), ("did not run: A.UI_01", False))

    def test_one_of_two_tests_that_never_ran_is_not_good(self):
        row = self.rows(("A.UI_01_a", "passed", "ext4"), ("A.UI_01_b", "skipped", "ext4"))["UI-01"]
        self.assertFalse(row.good)

    def test_skipped_on_one_file_system_and_passed_on_another_is_good(self):
        row = self.rows(("A.UI_01", "skipped", "tmpfs"), ("A.UI_01", "passed", "xfs"))["UI-01"]
        self.assertEqual((row.verdict, row.good), ("passed (skipped on tmpfs)", True))

    def test_missing_matters_only_for_demanded_ids(self):
        rows = self.rows()
        self.assertEqual([row.good for row in rows.values()], [False, False, True, False])

    def test_a_failed_test_of_a_later_id_counts(self):
        self.assertFalse(self.rows(("A.CC_01", "failed", "-"))["CC-01"].good)

    def test_summary_names_what_is_missing(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            good = test_ids.summarise(self.rows(("A.UI_01", "passed", "ext4")))
        self.assertFalse(good)
        self.assertIn("NOT GOOD UI-02: missing", out.getvalue())

    def test_the_real_list_is_well_formed(self):
        rows = test_ids.read_list(test_ids.LIST.read_text(encoding="utf-8"))
        self.assertGreater(len(rows), 200)
        self.assertEqual(sum(row.demanded for row in rows.values()), 185)

    def test_a_duplicate_id_is_refused(self):
        with self.assertRaises(ValueError):
            test_ids.read_list(LIST + "UI-01 | x | undo | y\n")


if __name__ == "__main__":
    unittest.main()

"""Self test of check_layers: each rule has a case that breaks it and one that obeys it."""

import tempfile
import unittest
from pathlib import Path

import check_layers


class CheckLayers(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_layers.check(Path(root))

    def assert_one(self, files, words):
        found = self.check(files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_lower_ranks_and_the_own_module_are_fine(self):
        files = {
            "src/base/a.h": "#include <vector>\n",
            "src/undo/a.cc": '#include "base/a.h"\n#include "undo/a.h"\n#include <sys/stat.h>\n',
            "src/cli/main.cc": '#include "undo/a.h"\n',
        }
        self.assertEqual(self.check(files), [])

    def test_upward_include_is_refused_with_its_line(self):
        self.assert_one({"src/base/a.cc": '\n#include "undo/journal.h"\n'}, "src/base/a.cc:2: base (rank 0)")

    def test_equals_never_include_each_other(self):
        self.assert_one({"src/undo/a.cc": '#include "trace/span.h"\n'}, "same rank")

    def test_angle_brackets_do_not_hide_an_include(self):
        self.assert_one({"src/undo/a.cc": "#  include <session/session.h>\n"}, "upward")

    def test_shim_gets_base_and_control_only(self):
        self.assertEqual(self.check({"src/shim/a.cc": '#include "base/a.h"\n#include "control/m.h"\n'}), [])
        self.assert_one({"src/shim/a.cc": '#include "undo/a.h"\n'}, "shim may include")

    def test_nobody_includes_the_shim(self):
        self.assert_one({"src/session/a.cc": '#include "shim/a.h"\n'}, "unknown module 'shim'")

    def test_unknown_modules_are_refused_both_ways(self):
        self.assert_one({"src/misc/a.cc": ""}, "'misc' has no rank")
        self.assert_one({"src/undo/a.cc": '#include "misc/a.h"\n'}, "unknown module 'misc'")

    def test_includes_start_at_the_include_root(self):
        self.assert_one({"src/undo/a.cc": '#include "journal.h"\n'}, "without its module")
        self.assert_one({"src/undo/a.cc": '#include "../base/a.h"\n'}, "relative path")

    def test_only_tests_use_test_support(self):
        include = '#include "tests/support/tree_snapshot.h"\n'
        self.assertEqual(self.check({"src/undo/a_test.cc": include}), [])
        self.assert_one({"src/undo/a.cc": include}, "product code includes tests/")

    def test_outside_src_anything_goes(self):
        self.assertEqual(self.check({"tests/undo/a.cc": '#include "cli/a.h"\n', "src/base/a.h": ""}), [])


if __name__ == "__main__":
    unittest.main()

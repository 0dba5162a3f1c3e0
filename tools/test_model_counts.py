"""Self test of model_counts."""

import unittest

import model_counts


def report(**changes):
    good = {"file_system": "tmpfs", "sequences": 20_000, "shortest_sequence": 30, "fewest_steps": 3,
            "operations": {"create": 1_000}, "strategies": {"reflink": 1_000}}
    return dict(good, **changes)


class ModelCounts(unittest.TestCase):
    def test_enough_is_enough(self):
        self.assertEqual(model_counts.objections([report()]), [])

    def test_uses_add_up_over_file_systems(self):
        parts = [report(operations={"create": 400}), report(operations={"create": 600})]
        self.assertEqual(model_counts.objections(parts), [])

    def test_each_shortage_is_named(self):
        for change, words in (({"sequences": 19_999}, "19999 sequences"), ({"shortest_sequence": 29}, "29 operations"),
                              ({"fewest_steps": 2}, "2 steps"), ({"strategies": {"reflink": 9}}, "strategy reflink")):
            found = model_counts.objections([report(**change)])
            self.assertEqual(len(found), 1)
            self.assertIn(words, found[0])

    def test_no_report_is_a_failure(self):
        self.assertEqual(len(model_counts.objections([])), 1)


if __name__ == "__main__":
    unittest.main()

"""Self test of mutants: the list of faults and its agreement with the sources."""

import unittest

import mutants


class MutantList(unittest.TestCase):
    def test_names_and_descriptions_are_read_in_order(self):
        listed = mutants.read_list("# comment\n\nskip_a   forgets a\nskip_b  forgets b, too\n")
        self.assertEqual(list(listed.items()), [("skip_a", "forgets a"), ("skip_b", "forgets b, too")])

    def test_a_line_without_a_description_is_refused(self):
        with self.assertRaises(ValueError):
            mutants.read_list("skip_a\n")

    def test_a_name_given_twice_is_refused(self):
        with self.assertRaises(ValueError):
            mutants.read_list("skip_a  one\nskip_a  two\n")

    def test_a_mutant_must_stand_in_both_places(self):
        self.assertIsNone(mutants.objection("a", {"a": "x"}, {"a"}))
        self.assertIn("nowhere in src/undo", mutants.objection("a", {"a": "x"}, set()))
        self.assertIn("not named", mutants.objection("a", {}, {"a"}))

    def test_the_list_holds_at_least_ten(self):
        self.assertGreaterEqual(len(mutants.read_list(mutants.LIST.read_text(encoding="utf-8"))), 10)


if __name__ == "__main__":
    unittest.main()

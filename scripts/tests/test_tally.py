"""The tally counts honestly: every way in which a run can end badly is a failure in the closing line."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from lib.tally import COLOURS, SWIFT, UNITTEST, Tally  # noqa: E402

GOOD = ["◇ Test one() started.", "✔ Test one() passed after 0.001 seconds."]
BAD = ["◇ Test two() started.", '✘ Test two() recorded an issue at a.swift:5:22', "✘ Test two() failed after 0.1 seconds."]


class Closing(unittest.TestCase):
    def tally(self, code, lines, words=SWIFT):
        tally = Tally()
        tally.tests("T", code, lines, words)
        return tally.passed, tally.skipped, tally.failures

    def test_what_passed_is_counted(self):
        self.assertEqual(self.tally(0, GOOD + ["✔ Test run with 1 test in 0 suites passed after 0.1 seconds."]), (1, 0, []))

    def test_a_failed_test_is_named_once(self):
        lines = GOOD + BAD + ["✘ Test run with 2 tests in 1 suite failed after 0.2 seconds with 1 issue."]
        self.assertEqual(self.tally(1, lines), (1, 0, ["T: two()"]))

    def test_what_was_wrong_is_kept_with_what_was_said_of_it(self):
        tally = Tally()
        tally.tests("T", 1, GOOD + BAD[:2] + ["  in turn", "↳ 3 of 4 came", "◇ Test case passing"] + BAD[2:], SWIFT)
        self.assertEqual(tally.issues, {"two()": ["at a.swift:5:22 in turn (3 of 4 came)"]})

    def test_arguments_of_one_test_count_once(self):
        lines = [
            '◇ Test "of three" started.', '◇ Test case passing 1 argument n → 1 to "of three" started.',
            '✘ Test "of three" with 3 test cases failed after 0.001 seconds with 1 issue.',
            "✘ Test run with 1 test in 1 suite failed after 0.2 seconds with 1 issue.",
        ]
        self.assertEqual(self.tally(1, lines), (0, 0, ['T: "of three"']))

    def test_a_crash_names_the_test_that_was_running(self):
        lines = GOOD + ["◇ Test two() started.", "Fatal error: boo"]
        self.assertEqual(self.tally(1, lines), (1, 0, ["T: two(): ended with exit code 1"]))

    def test_a_hang_names_the_test_that_was_running(self):
        lines = GOOD + ["◇ Test two() started."]
        self.assertEqual(self.tally(None, lines), (1, 0, ["T: two(): took too long and was ended"]))

    def test_a_run_without_a_test_is_a_failure(self):
        for lines in ([], ["✔ Test run with 0 tests in 0 suites passed after 0.001 seconds."]):
            passed, _, failures = self.tally(0, lines)
            self.assertEqual((passed, len(failures)), (0, 1))

    def test_a_bad_exit_code_after_a_good_run_is_a_failure(self):
        lines = GOOD + ["✔ Test run with 1 test in 0 suites passed after 0.1 seconds."]
        self.assertEqual(self.tally(1, lines), (0, 0, ["T: ended with exit code 1"]))

    def test_a_skipped_test_did_not_pass(self):
        lines = GOOD + ['➜ Test old() skipped: "why"', "✔ Test run with 2 tests in 1 suite passed after 0.1 seconds."]
        self.assertEqual(self.tally(0, lines), (1, 1, []))

    def test_the_slowest_tests_come_first_whether_they_passed_or_not(self):
        tally = Tally()
        lines = ['✔ Test "of three" with 3 test cases passed after 2.500 seconds.', *GOOD, *BAD]
        tally.tests("T", 1, lines, SWIFT)
        self.assertEqual(tally.slowest(2), [(2.5, "T", '"of three"'), (0.1, "T", "two()")])

    def test_colours_hide_nothing(self):
        lines = [COLOURS.sub("", f"\x1b[92m{line[0]}\x1b[0m{line[1:]}") for line in GOOD]
        self.assertEqual(lines, GOOD)

    def test_the_scripts_own_tests_are_read(self):
        lines = ["FAIL: test_x (test_y.Y)", "Ran 4 tests in 0.1s", "FAILED (failures=1)"]
        self.assertEqual(self.tally(1, lines, UNITTEST), (3, 0, ["T: test_x"]))


if __name__ == "__main__":
    unittest.main()

"""Every test belongs to exactly one unit, beside others or alone."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from lib import units  # noqa: E402

TESTS = [
    "RTPTests.RTCPTests/reports()", "RTPTests.NumbersTests/wrap()",
    "MediaNodesTests.MediaNodesTests/EchoTests/delay()", "MediaNodesTests.MediaNodesTests/EditTests/adds()",
    "MediaNodesTests.RateLimitTests/jitter()", "MediaNodesTests.MediaNodesTests/StartSoak/thousand()",
    "RoomClientTests.`a token needs no secret`()", "GuestTests.GuestTests/Camera/opens()",
]
TARGETS = {"RTPTests", "MediaNodesTests", "RoomClientTests"}


class Division(unittest.TestCase):
    def divide(self, *timed):
        return units.divide(TESTS, TARGETS, list(timed))

    def test_a_target_is_one_unit_and_the_suites_of_a_divided_target_are_each_one(self):
        beside, alone = self.divide()
        self.assertEqual(
            sorted(unit.name for unit in beside),
            ["MediaNodesTests/EchoTests", "MediaNodesTests/EditTests", "MediaNodesTests/RateLimitTests", "RTPTests",
             "RoomClientTests/functions"])
        self.assertEqual(alone, [])

    def test_a_unit_skips_those_of_its_tests_that_run_alone(self):
        beside, alone = self.divide("RTCPTests/")
        self.assertEqual([(unit.name, unit.tests) for unit in alone], [("RTPTests (timed)", [TESTS[0]])])
        rest = next(unit for unit in beside if unit.name == "RTPTests")
        self.assertEqual((rest.tests, rest.skip), ([TESTS[1]], ["RTCPTests/"]))
        self.assertEqual(rest.command("tests")[-4:], ["--filter", r"^RTPTests\.", "--skip", "RTCPTests/"])

    def test_a_unit_all_of_whose_tests_run_alone_does_not_run_beside_others(self):
        beside, alone = self.divide("EchoTests/")
        self.assertNotIn("MediaNodesTests/EchoTests", [unit.name for unit in beside])
        self.assertEqual([unit.filter for unit in alone], [["EchoTests/"]])

    def test_suites_named_soak_run_in_soak_alone(self):
        beside, alone = self.divide()
        self.assertFalse([unit for unit in beside + alone if "Soak" in unit.name])
        self.assertEqual([unit.name for unit in units.soak(TESTS, ["Soak/"])], ["MediaNodesTests/StartSoak"])

    def test_a_target_that_is_one_unit_skips_its_suites_named_soak(self):
        tests = ["RTPTests.RTCPTests/reports()", "RTPTests.LinkSoak/hours()"]
        beside, alone = units.divide(tests, {"RTPTests"}, [])
        self.assertEqual([(unit.tests, unit.skip) for unit in beside], [([tests[0]], ["Soak/"])])
        self.assertEqual(alone, [])

    def test_the_long_units_start_first(self):
        tests = ["FuzzTests.A/a()", "FuzzTests.A/b()", "RTPTests.B/c()", "PluginTestTests.C/d()"]
        self.assertEqual(
            [unit.name for unit in units.divide(tests, {"FuzzTests", "RTPTests", "PluginTestTests"}, [])[0]],
            ["PluginTestTests", "RTPTests", "FuzzTests"])


if __name__ == "__main__":
    unittest.main()

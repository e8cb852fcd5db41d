"""Tests/soak.txt selects each suite whose tests have more rounds in make soak than in make test."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from lib import units  # noqa: E402

ROUNDS = re.compile(r"\bSoak\.rounds\(|\bjudge\(soak: ")
SUITE = re.compile(r"\b(?:struct|class|enum) (\w+(?:Tests|Soak))\b")
OUTER = re.compile(rf"^extension ({'|'.join(units.OUTER)}) ", re.M)


def suites_with_rounds(path, text):
    """The suites of a source that have rounds for make soak, by the names that the bundle lists."""
    outer = OUTER.search(text)
    found = set()
    for rounds in ROUNDS.finditer(text):
        suites = SUITE.findall(text, 0, rounds.start())
        found.add(f"{path.parts[1]}.{outer[1] + '/' if outer else ''}{suites[-1] if suites else path.stem}/")
    return found


class SoakList(unittest.TestCase):
    def test_the_suite_around_the_rounds_is_found(self):
        source = "struct FirstTests {}\nextension MediaNodesTests {\n    @Suite struct FeedTests {\n" \
                 "        func leaks() { Repeated.judge(soak: 200) {} }\n    }\n    struct OtherTests {}\n}\n"
        self.assertEqual(suites_with_rounds(pathlib.Path("Tests/MediaNodesTests/FeedTests.swift"), source),
                         {"MediaNodesTests.MediaNodesTests/FeedTests/"})

    def test_each_suite_with_rounds_for_soak_is_in_the_list(self):
        patterns = units.read_patterns((ROOT / "Tests/soak.txt").read_text(encoding="utf-8"))
        suites = set()
        for path in (ROOT / "Tests").glob("*/**/*.swift"):
            suites |= suites_with_rounds(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        self.assertGreater(len(suites), 20)
        self.assertEqual(
            [suite for suite in sorted(suites) if not any(re.search(pattern, suite) for pattern in patterns)], [])


if __name__ == "__main__":
    unittest.main()

"""Counts what the output of a test run reports, and keeps why tests failed and how long they took."""
import re

# The lines by which Swift Testing and unittest name and count tests.
SWIFT = {
    "started": re.compile(r"◇ Test (?!run started|case )(.+?) started\."),
    "passed": re.compile(r"[✔━] Test (?!run with|case )(.+?)(?: with \d+ test cases?)? passed after"),
    "failed": re.compile(r"✘ Test (?!run with|case )(.+?)(?: with \d+ test cases?)? failed after"),
    "skipped": re.compile(r"➜ Test (?!case )(.+?) skipped"),
    "all": re.compile(r"Test run with (\d+) tests?\b.* (?:passed|failed) after"),
}
UNITTEST = {
    "failed": re.compile(r"^(?:FAIL|ERROR): (\S+)"),
    "all": re.compile(r"^Ran (\d+) tests? in"),
}
ISSUE = re.compile(r"✘ Test (.+?) recorded an issue (.+)")
DURATION = re.compile(r"[✔━✘] Test (?!run with|case )(.+?)(?: with \d+ test cases?)? (?:passed|failed) after ([\d.]+) sec")
# Swift Testing begins its own lines with these; other lines continue an issue or are a test's own output.
MARKS = "◇✔✘↳➜━"
# Swift Testing colours its output even without a terminal.
COLOURS = re.compile("\x1b\\[[0-9;]*m")


class Tally:
    """A stage that fails without naming a test, or that runs no test, counts as one failure."""

    def __init__(self):
        self.passed, self.skipped, self.failures = 0, 0, []
        # The issues by test name, and those of the test that reported last.
        self.issues, self.latest = {}, []
        # (seconds, stage, test)
        self.durations = []

    def stage(self, name, code):
        """Counts a stage that is not made of tests."""
        if code == 0:
            self.passed += 1
        else:
            self.failures.append(f"{name}: {reason(code)}")

    def tests(self, name, code, lines, words):
        named = {kind: [] for kind in ("started", "passed", "failed", "skipped", "all")}
        for line in lines:
            self.hear(line)
            if found := DURATION.search(line):
                self.durations.append((float(found[2]), name, found[1]))
            for kind, word in words.items():
                if found := word.search(line):
                    named[kind].append(found[1])
        ran = int(named["all"][-1]) if named["all"] else 0
        failed = list(named["failed"])
        if not named["all"]:
            # The process died or was killed: the tests that had not finished are the failures.
            unfinished = [test for test in named["started"] if test not in named["passed"] + failed]
            failed += [f"{test}: {reason(code)}" for test in unfinished] or [reason(code)]
            self.passed += len(named["passed"])
        else:
            if ran == 0:
                failed.append("no test was run")
            elif code != 0 and not failed:
                failed.append(reason(code))
            self.passed += max(0, ran - len(failed) - len(named["skipped"]))
        self.skipped += len(named["skipped"])
        self.failures += [f"{name}: {test}" for test in failed]

    def hear(self, line):
        """Keeps an issue, all of its lines, and the comment on it."""
        if found := ISSUE.search(line):
            self.latest = self.issues.setdefault(found[1], [])
            self.latest.append(found[2])
        elif self.latest and line.startswith("↳ "):
            self.latest[-1] += f" ({line[2:]})"
        elif line[:1] in MARKS:
            self.latest = []
        elif self.latest:
            self.latest[-1] += f" {line.strip()}"

    def slowest(self, count):
        return sorted(self.durations, reverse=True)[:count]


def reason(code):
    return "took too long and was ended" if code is None else f"ended with exit code {code}"

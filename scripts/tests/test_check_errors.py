"""scripts/check-errors finds texts that name a flag, and codes of the original SDK that no test raises."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parent.parent / "check-errors"
LOADER = importlib.machinery.SourceFileLoader("check_errors", str(PATH))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_errors", LOADER))
LOADER.exec_module(check)


class Flags(unittest.TestCase):
    def test_a_text_that_names_a_flag_is_found(self):
        self.assertEqual(check.flags('let a = 1\nlet b = "Start the server with --open."\nlet c = "--turn URL"'), [2, 3])

    def test_comments_code_dashes_and_the_namer_of_flags_are_no_texts(self):
        for line in ['    // "--open"', 'a = b --c', 'a = "one --- two"', 'a = "x--y"', 'a = "\\"" --b',
                     'case .command: return "--\\(name)"']:
            self.assertEqual(check.flags(line), [], line)

    def test_the_sources_for_applications_are_read(self):
        self.assertTrue(all((check.ROOT / "Sources" / place).exists() for place in check.FOR_APPLICATIONS))


class Raising(unittest.TestCase):
    SOURCE = "@Suite struct A {\n    @Test func `a number`() { #expect(code == -1101) }\n" \
             "    @Test(arguments: [1, 2])\n    func `a name`(x: Int) { #expect(error.code == .noServer) }\n" \
             "    @Test(\"in words\") func other() { #expect(code == 1103) }\n}\n"

    def problems(self, items, raised, errors, differences="| Error codes | -1101 never occurs |"):
        names = check.code_names("static let noServer = Self(1102)\nstatic let gone = Self(1103)\n")
        return list(check.raising_problems(items, raised, check.tests_in(self.SOURCE), names, differences, errors))

    def test_a_test_mentions_the_number_or_the_name_of_its_code(self):
        items, raised = [("-1101", "same"), ("1102", "same")], {"-1101": "a number", "1102": "a name"}
        self.assertEqual(self.problems(items, raised, "\n| -1101 |\n| 1102 |\n"), [])

    def test_a_code_without_a_test_is_found(self):
        self.assertIn("no test raises 1102", self.problems([("1102", "same")], {}, "")[0])

    def test_a_test_that_does_not_exist_or_mentions_another_code_is_found(self):
        for name in ("a number", "a name", "a test that is gone"):
            self.assertIn(f"'{name}' mentions 1103", self.problems([("1103", "same")], {"1103": name}, "\n| 1103 |")[0])

    def test_a_code_that_a_page_leaves_out_is_found(self):
        self.assertIn("docs/errors.md", self.problems([("-1101", "same")], {"-1101": "a number"}, "")[0])
        self.assertIn("docs/differences.md", self.problems([("1103", "different")], {}, "")[0])
        self.assertEqual(self.problems([("-1101", "different")], {}, ""), [])


if __name__ == "__main__":
    unittest.main()

"""scripts/check-interface distinguishes changes that break a plugin from those that do not."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parent.parent / "check-interface"
LOADER = importlib.machinery.SourceFileLoader("interface", str(PATH))
interface = importlib.util.module_from_spec(importlib.util.spec_from_loader("interface", LOADER))
LOADER.exec_module(interface)

BEFORE = """generation 3
Node.init(name: String) -> Node
Node.name : String { get, set }
Node.send(Int) throws -> () { default 1 }
case Codec.vp8(Codec.Type) -> Codec { frozen 0 }
frozen enum Codec { Equatable, Sendable }
protocol Stand <Self : Sendable>
requirement Stand.name : String { default, get }
requirement Stand.run() async -> ()
struct Node { Equatable }
"""


class Breaches(unittest.TestCase):
    def breaches(self, *changes):
        """The findings when lines of the baseline change: (old, new) pairs, or an added line."""
        text = BEFORE
        for change in changes:
            old, new = change if isinstance(change, tuple) else ("", "")
            self.assertIn(old, text)
            text = text.replace(old, new) if old else text + change + "\n"
        return list(interface.breaches(interface.read(BEFORE)[0], interface.read(text)[0]))

    def assert_one(self, start, *changes):
        found = self.breaches(*changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found)

    def test_what_is_written_is_read_again(self):
        self.assertEqual(interface.written(*interface.read(BEFORE)), BEFORE)

    def test_the_same_is_no_breach(self):
        self.assertEqual(self.breaches(), [])

    def test_a_function_that_is_gone(self):
        self.assert_one("gone: Node.init", ("Node.init(name: String) -> Node\n", ""))

    def test_a_function_that_takes_something_else(self):
        self.assert_one("gone: Node.send(Int)", ("send(Int)", "send(Double)"))

    def test_a_setter_that_is_gone(self):
        self.assert_one("gone from Node.name : String: set", ("{ get, set }", "{ get }"))

    def test_a_default_value_that_is_gone(self):
        self.assert_one("gone from Node.send", (" { default 1 }", ""))

    def test_a_conformance_that_is_gone(self):
        self.assert_one("gone from struct Node: Equatable", ("struct Node { Equatable }", "struct Node"))

    def test_a_protocol_that_asks_for_more(self):
        self.assert_one("gone: protocol Stand", ("<Self : Sendable>", "<Self : Hashable, Self : Sendable>"))

    def test_a_requirement_without_a_default(self):
        self.assert_one("new, without a default", "requirement Stand.stop() -> ()")

    def test_a_setter_of_a_requirement_without_a_default(self):
        self.assert_one("gone from requirement Stand.name", ("{ default, get }", "{ get }"))
        self.assert_one("new, without a default", ("requirement Stand.run() async -> ()", "requirement Stand.run() async -> () { set }"))

    def test_a_case_of_a_frozen_enum(self):
        self.assert_one("new in a frozen type", "case Codec.av1(Codec.Type) -> Codec { frozen 1 }")

    def test_a_frozen_enum_that_is_new_as_a_whole(self):
        self.assertEqual(
            self.breaches("case Event.done(Event.Type) -> Event { frozen 0 }", "frozen enum Event { Sendable }"), [])

    def test_another_name_in_a_frozen_enum(self):
        self.assertEqual(len(self.breaches(("Codec.vp8", "Codec.vp9"))), 2)

    def test_what_is_added_is_no_breach(self):
        self.assertEqual(
            self.breaches(
                "Node.other() -> ()", "case Open.one(Open.Type) -> Open", "requirement Stand.stop() -> () { default }",
                ("struct Node { Equatable }", "struct Node { Equatable, Hashable }"),
                ("requirement Stand.run() async -> ()", "requirement Stand.run() async -> () { default }")), [])


if __name__ == "__main__":
    unittest.main()

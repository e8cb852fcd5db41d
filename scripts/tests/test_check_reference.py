"""scripts/check-reference distinguishes comments that help a reader from those that do not."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parent.parent / "check-reference"
LOADER = importlib.machinery.SourceFileLoader("check_reference", str(PATH))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_reference", LOADER))
LOADER.exec_module(check)


class Comments(unittest.TestCase):
    def problem(self, comment, declaration="func send()", name="send()", kind="swift.method", module="MediaNodes"):
        return check.problem(kind, name, declaration, comment, module)

    def test_a_comment_has_a_summary_of_its_own(self):
        self.assertIsNone(self.problem("Sends a frame."))
        for comment in ["", "- Parameter time: in seconds.", "- Throws: an error of the device.", "Likewise."]:
            self.assertIn("summary", self.problem(comment))

    def test_a_function_that_throws_names_its_errors(self):
        self.assertIn("throws", self.problem("Sends a frame.", "func send() throws(MediaError)"))
        self.assertIsNone(self.problem("Sends a frame. Throws `node.flood`.", "func send() throws"))
        self.assertIsNone(self.problem("Sends a frame.", "func send(_ body: (Int) throws -> Void) rethrows"))

    def test_classes_and_delegates_name_their_threads(self):
        self.assertIn("threads", self.problem("The cameras of a machine.", kind="swift.class"))
        self.assertIsNone(self.problem("The cameras of a machine. Callable on any thread.", kind="swift.class"))
        self.assertIn("threads", self.problem("Gets events.", kind="swift.protocol", module="ConnectLiveSDK"))
        self.assertIsNone(self.problem("Gets events.", kind="swift.protocol"))
        self.assertIsNone(self.problem("A size and a rate.", kind="swift.struct"))

    def test_sizes_and_times_have_units(self):
        for name, unit in [("width", "In pixels."), ("frameHeight", "In pixels."), ("latencyDelay", "In seconds.")]:
            self.assertIn("unit", self.problem("The value of now.", f"var {name}: Int", name))
            self.assertIsNone(self.problem(unit, f"var {name}: Int", name))
        self.assertIsNone(self.problem("The value of now.", "var timeout: Duration", "timeout"))
        self.assertIsNone(self.problem("All that were lost.", "var packetsLostPerInterval: Int", "packetsLostPerInterval"))


class Pages(unittest.TestCase):
    def symbol(self, *names, kind="swift.struct"):
        return {"pathComponents": list(names), "kind": {"identifier": kind}}

    def test_a_type_without_a_topic_is_found(self):
        symbols = [self.symbol("Camera"), self.symbol("Camera", "width"), self.symbol("MediaGraph"), self.symbol("Node"),
                   self.symbol(">>>(_:_:)", kind="swift.func.op")]
        pages = "## Topics\n\n- ``Camera``\n- ``MediaGraph/MediaGraph``\nSee ``Node``.\n"
        self.assertEqual(check.missing(symbols, pages), ["Node"])


if __name__ == "__main__":
    unittest.main()

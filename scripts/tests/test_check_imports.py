"""scripts/check-imports finds each kind of violation in a fake tree, and none in a correct one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parent.parent / "check-imports"

LAWFUL = {
    "Sources/System/CGLib/shim.h": "",
    "Sources/System/CNice/shim.h": "",
    "Sources/Media/MediaGraph/A.swift": "import Foundation\n",
    "Sources/Media/GStreamerKit/A.swift":
        "internal import CGLib\npublic import MediaGraph\nlet p: UnsafeRawPointer? = nil\n",
    "Sources/Transport/RTP/A.swift": "// Told the time: no Task { } and no Mutex<Int> here.\nlet s = \"await\"\n",
    "Sources/Transport/PeerIO/A.swift": "internal import CNice\nimport RTP\n",
    "Sources/Room/RoomServer/A.swift": "internal import NIOCore\n@preconcurrency package import PeerIO\nawait x()\n",
    "Sources/SDK/ConnectLiveSDK/A.swift": "public import struct MediaGraph.Graph\n",
    "Sources/CLI/connectlive/A.swift": "import ConnectLiveSDK\n",
}


class CheckImports(unittest.TestCase):
    def check(self, **changed):
        """The checker's exit code and output for the lawful tree with some files changed."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**LAWFUL, **changed.get("files", {})}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, CHECKER, folder], capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout + done.stderr

    def assert_breach(self, path, text, sentence):
        code, output = self.check(files={path: text})
        self.assertEqual(code, 1, output)
        self.assertIn(path, output)
        self.assertIn(sentence, output)

    def test_a_lawful_tree_passes(self):
        self.assertEqual(self.check(), (0, ""))

    def test_this_repository_is_read_at_all(self):
        root = CHECKER.parent.parent
        self.assertTrue(list((root / "Sources").rglob("*.swift")))

    def test_media_may_not_import_transport(self):
        self.assert_breach("Sources/Media/MediaNodes/B.swift", "public import RTP\n", "imports go down")

    def test_transport_may_not_import_media(self):
        self.assert_breach("Sources/Transport/PeerSession/B.swift", "import MediaGraph\n", "imports go down")

    def test_a_lower_layer_may_not_import_a_higher_one(self):
        self.assert_breach("Sources/Room/RoomClient/B.swift", "import ConnectLiveSDK\n", "imports go down")

    def test_an_import_of_one_declaration_counts(self):
        self.assert_breach("Sources/Media/MediaNodes/B.swift", "import struct RTP.SSRC\n", "imports go down")

    def test_c_stays_in_its_targets(self):
        self.assert_breach("Sources/Room/RoomServer/B.swift", "internal import CGLib\n", "GStreamerKit and PeerIO alone")

    def test_one_c_target_may_not_import_the_other_s_library(self):
        self.assert_breach("Sources/Media/GStreamerKit/B.swift", "internal import CNice\n", "PeerIO alone")

    def test_c_is_imported_internally(self):
        self.assert_breach("Sources/Transport/PeerIO/B.swift", "import CNice\n", "without 'internal'")

    def test_unsafe_types_stay_in_their_targets(self):
        self.assert_breach("Sources/Room/RoomServer/B.swift", "let p: UnsafePointer<Int>\n", "an Unsafe type outside")

    def test_a_switch_over_the_events_of_a_peer_has_no_default(self):
        text = ("final class A {\n    private func handle(_ event: PeerEvent) {\n        switch event {\n"
                "        case .closed: close()\n        default: break\n        }\n    }\n}\n")
        self.assert_breach("Sources/Room/RoomServer/B.swift", text, "B.swift:5: a switch over a peer's events")
        other = text.replace("PeerEvent", "MouseEvent")
        self.assertEqual(self.check(files={"Sources/Room/RoomServer/B.swift": other}), (0, ""))

    def test_the_transport_core_has_no_package(self):
        self.assert_breach("Sources/Transport/RTP/B.swift", "import NIOCore\n", "no package dependency")

    def test_the_transport_core_has_no_clock_task_or_lock(self):
        for line in ("let now = ContinuousClock.now", "Task { }", "let lock = Mutex(0)", "await later()", "actor Loop {}"):
            with self.subTest(line=line):
                self.assert_breach("Sources/Transport/PeerSession/B.swift", line + "\n", "is told the time")

    def test_neighbours_import_each_other_one_way(self):
        code, output = self.check(files={
            "Sources/Room/RoomClient/B.swift": "import RoomServer\n",
            "Sources/Room/RoomServer/B.swift": "import RoomClient\n",
        })
        self.assertEqual(code, 1)
        self.assertIn("which comes back to RoomClient", output)

    def test_a_file_in_no_layer_is_named(self):
        self.assert_breach("Sources/Helper/X/B.swift", "\n", "the layers are")

    def test_a_long_file_is_named(self):
        self.assert_breach("Sources/Room/RoomServer/B.swift", "let a = 1\n" * 601, "601 lines")


if __name__ == "__main__":
    unittest.main()

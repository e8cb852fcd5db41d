"""A checkout may have any name and lie anywhere: the tests find their programs, and the scripts find the sources."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / ".build" / "debug"
NAMES = ["connectlive", "connectlive/connectlive", "a folder/with spaces", "ünïcode $HOME"]


class CheckoutNames(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="checkout-names-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_in(self, place, *command):
        done = subprocess.run(command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, f"{place}: {done.stdout}")
        return done.stdout

    @unittest.skipUnless((BUILD / "connectlivePackageTests.xctest").exists(), "nothing is built yet")
    def test_tests_find_the_programs_beside_them(self):
        for name in NAMES:
            place = self.folder / name / ".build"
            place.mkdir(parents=True)
            (place / "debug").symlink_to(BUILD, target_is_directory=True)
            said = self.run_in(
                self.folder, str(place / "debug" / "connectlivePackageTests.xctest"), "--testing-library",
                "swift-testing", "--filter", "ProgramsBesideTests/")
            self.assertIn("Test run with 1 test", said)

    def test_scripts_work_in_any_folder_and_below_one_that_cannot_be_written(self):
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        for name in NAMES[1:3]:
            place = self.folder / name / "checkout"
            for file in filter(None, listed.stdout.split("\0")):
                if not (ROOT / file).is_file():
                    continue
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, place / file)
            place.parent.chmod(0o555)
            self.addCleanup(place.parent.chmod, 0o755)
            self.assertIn("make test", self.run_in(place, "make", "help"))
            for script in ("check-imports", "check-errors", "check-docs"):
                self.run_in(place, f"scripts/{script}")


if __name__ == "__main__":
    unittest.main()

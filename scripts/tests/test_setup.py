"""scripts/setup on fake machines: the PATH has only a folder of substitutes for the system's tools."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parent.parent / "setup"
LIST = SETUP.parent / "packages.txt"
TOOLS = ("awk", "bash", "dirname", "env", "head", "sed", "sort", "tr", "wc", "cat", "touch")


def packages(*purposes):
    rows = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line and line[0] != "#")
    return [row[1] for row in rows if row[0] in purposes]


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.folder / tool)
        self.installed = self.folder / "installed.list"
        self.calls = self.folder / "calls.list"
        self.calls.touch()
        self.has(packages("build", "test", "bench"))
        self.put("swift", 'echo "Swift version 6.3.1 (swift-6.3.1-RELEASE)"')
        self.put("id", "echo 0")
        self.put("dpkg-query", f'while read -r package; do echo "installed $package"; done <{self.installed}')
        # Installs its arguments: the words after the options and the command.
        self.put("apt-get", f'''
            echo "apt-get $*" >>{self.calls}
            for word in "$@"; do
                case $word in -*|install|update|DPkg*) ;; *) echo "$word" >>{self.installed} ;; esac
            done''')

    def put(self, name, script):
        path = self.folder / name
        path.write_text(f"#!{self.folder}/bash\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def has(self, names):
        self.installed.write_text("".join(name + "\n" for name in names), encoding="utf-8")

    def run_setup(self, purpose="build"):
        done = subprocess.run(
            [self.folder / "bash", SETUP, purpose], env={"PATH": str(self.folder)}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_with_everything_there_it_says_nothing_and_calls_no_apt(self):
        self.assertEqual(self.run_setup("bench"), (0, "", ""))
        self.assertEqual(self.calls.read_text(), "")

    def test_root_installs_exactly_what_is_missing_and_names_it_first(self):
        self.has(set(packages("build")) - {"libnice-dev", "gstreamer1.0-x"})
        code, output, _ = self.run_setup()
        self.assertEqual(code, 0, output)
        self.assertLess(output.index("libnice-dev"), output.index("Installing"))
        install = self.calls.read_text().splitlines()[-1]
        self.assertTrue(install.endswith("libnice-dev gstreamer1.0-x"), install)

    def test_the_tests_packages_are_not_wanted_for_a_build(self):
        self.has(packages("build"))
        self.assertEqual(self.run_setup("build")[0], 0)
        self.assertEqual(self.calls.read_text(), "")
        self.assertEqual(self.run_setup("test")[0], 0)
        self.assertIn("chromium", self.calls.read_text())

    def test_the_guests_packages_are_wanted_for_the_guest_alone(self):
        self.assertEqual(self.run_setup("bench")[0], 0)
        self.assertEqual(self.calls.read_text(), "")
        self.assertEqual(self.run_setup("guest")[0], 0)
        self.assertIn("qemu-system-x86", self.calls.read_text())
        self.assertNotIn("valgrind", self.calls.read_text())

    def test_a_user_installs_with_sudo(self):
        self.has([])
        self.put("id", "echo 1000")
        self.put("sudo", f'echo "sudo $*" >>{self.calls}; "$@"')
        self.assertEqual(self.run_setup()[0], 0)
        self.assertIn("sudo env DEBIAN_FRONTEND=noninteractive apt-get", self.calls.read_text())

    def test_without_sudo_a_user_gets_the_list_and_1(self):
        self.has([])
        self.put("id", "echo 1000")
        code, output, error = self.run_setup()
        self.assertEqual(code, 1)
        for name in packages("build"):
            self.assertIn(f"    {name}\n", output)
        self.assertIn("there is no sudo", error)
        self.assertEqual(self.calls.read_text(), "")

    def test_without_apt_and_dpkg_the_list_is_printed_and_1(self):
        (self.folder / "apt-get").unlink()
        (self.folder / "dpkg-query").unlink()
        code, output, error = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("    libgstreamer1.0-dev\n", output)
        self.assertIn("no apt-get", error)

    def test_an_apt_that_fails_ends_it_with_1(self):
        self.has([])
        self.put("apt-get", "exit 100")
        code, _, error = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("apt-get failed", error)

    def test_a_package_that_was_removed_but_left_its_settings_is_missing(self):
        self.put("dpkg-query", f'while read -r package; do echo "config-files $package"; done <{self.installed}')
        code, output, _ = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("libnice-dev", output)

    def test_without_swift_a_sentence_says_so_before_anything_is_installed(self):
        self.has([])
        (self.folder / "swift").unlink()
        code, _, error = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("Swift 6.3 or later is needed and none was found", error)
        self.assertEqual(self.calls.read_text(), "")

    def test_an_old_swift_is_told_in_a_sentence(self):
        self.put("swift", 'echo "Swift version 6.1 (swift-6.1-RELEASE)"')
        code, _, error = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("Swift 6.3 or later is needed and 6.1 was found", error)

    def test_a_swift_that_lacks_its_libraries_gets_them(self):
        self.has([])
        self.put("swift", f"""
            grep -q libncurses6 {self.installed} && echo "Swift version 6.3.1" && exit
            echo "swift: error while loading shared libraries: libncurses.so.6" >&2; exit 127""")
        os.symlink(shutil.which("grep"), self.folder / "grep")
        self.assertEqual(self.run_setup()[0], 0)

    def test_a_swift_that_does_not_run_is_quoted(self):
        self.put("swift", 'echo "swift: libthing.so.1 is missing" >&2; exit 127')
        code, _, error = self.run_setup()
        self.assertEqual(code, 1)
        self.assertIn("libthing.so.1 is missing", error)

    def test_a_later_swift_will_do(self):
        self.put("swift", 'echo "Apple Swift version 6.10 (swift-6.10-RELEASE)"')
        self.assertEqual(self.run_setup()[0], 0)


if __name__ == "__main__":
    unittest.main()

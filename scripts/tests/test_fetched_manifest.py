"""Package.swift still describes a package that can be fetched by its address, where MediaAuthoring is a target of it.

Only the manifest is read; scripts/check-fetched builds what it describes.
"""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NESTED = {"MediaAuthoring", "MediaTesting", "CMediaStamp"}
# At the start of a line, because a template of the program contains imports too.
IMPORT = re.compile(r"^(?:@\w+\s+)*(?:\w+\s+)?import\s+(\w+)", re.M)


def described(folder):
    done = subprocess.run(
        ["swift", "package", "--package-path", folder, "dump-package"], stdout=subprocess.PIPE, timeout=300, check=True)
    return json.loads(done.stdout)


class FetchedManifest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as place:
            # The package manager's folder of fetched packages.
            folder = pathlib.Path(place, "checkouts", "connectlive")
            folder.mkdir(parents=True)
            (folder / "Package.swift").write_text((ROOT / "Package.swift").read_text("utf-8"), "utf-8")
            cls.package = described(folder)
        cls.targets = {target["name"]: target for target in cls.package["targets"]}
        cls.dependencies = {
            name: {(kinds.get("byName") or kinds.get("target") or kinds["product"])[0]: kinds for kinds in target["dependencies"]}
            for name, target in cls.targets.items()}

    def test_it_contains_no_other_package(self):
        self.assertEqual({kind for dependency in self.package["dependencies"] for kind in dependency}, {"sourceControl"})

    def test_no_target_has_flags_that_are_refused_to_what_is_fetched(self):
        flagged = [name for name, target in self.targets.items() if "unsafeFlags" in json.dumps(target["settings"])]
        self.assertEqual(flagged, [])

    def test_each_target_is_there_and_depends_on_targets_that_are(self):
        for name, target in self.targets.items():
            self.assertTrue((ROOT / target["path"]).is_dir(), target["path"])
            by_name = {other for other, kinds in self.dependencies[name].items() if "product" not in kinds}
            self.assertLessEqual(by_name, set(self.targets), name)

    def test_the_library_is_a_product_of_the_targets_that_it_has_where_it_is_a_package(self):
        nested = {target["name"]: target for target in described(ROOT / "Sources/Media")["targets"]}
        self.assertEqual(set(nested), NESTED)
        for name, target in nested.items():
            self.assertEqual(self.targets[name]["path"], f"Sources/Media/{target['path']}")
            self.assertEqual(self.targets[name]["dependencies"], target["dependencies"])

    def test_what_imports_the_library_s_modules_depends_on_them(self):
        # The tests of fetched packages are not built.
        for name, target in self.targets.items():
            if target["type"] == "test":
                continue
            files = (ROOT / target["path"]).rglob("*.swift")
            imported = {module for file in files for module in IMPORT.findall(file.read_text("utf-8"))}
            self.assertLessEqual(imported & NESTED - {name}, set(self.dependencies[name]), name)


if __name__ == "__main__":
    unittest.main()

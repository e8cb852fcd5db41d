"""The API reference: the symbols of the built modules, and the pages that docc makes of them."""
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / ".build/debug"
# The modules that other packages may import, each after those that it imports itself.
MODULES = [
    "MediaAuthoring", "MediaTesting", "MediaGraph", "MediaNodes", "GraphFile", "FrameSocket", "RoomSimulation",
    "ConnectLiveSDK"]
PACKAGES = [ROOT / "Package.swift", ROOT / "Sources/Media/Package.swift"]
PRODUCT = re.compile(r'\.library\(\s*name: "(\w+)"(?:, type: \.\w+)?, targets: \[([^\]]*)\]')


class Unreadable(Exception):
    """A module that is not built, or pages that docc refuses."""


def products():
    """The modules of the packages' libraries."""
    texts = [package.read_text(encoding="utf-8") for package in PACKAGES]
    return {name for text in texts for product in PRODUCT.finditer(text) for name in re.findall(r'"(\w+)"', product[2])}


def pages(module):
    """The folder of a module's pages. None if there is none."""
    return next(ROOT.glob(f"Sources/*/{module}/{module}.docc"), None)


def includes():
    """The folders with module maps of the C modules that a built module imports."""
    folders = {path.parent for path in ROOT.glob("Sources/System/**/module.modulemap")}
    folders |= {path.parent for path in BUILD.glob("*.build/module.modulemap")}
    folders |= {path.parent for path in ROOT.glob(".build/checkouts/*/Sources/*/include/module.modulemap")}
    glib = subprocess.run(["pkg-config", "--cflags-only-I", "glib-2.0"], stdout=subprocess.PIPE, text=True, check=True)
    return [str(folder) for folder in sorted(folders)] + [flag[2:] for flag in glib.stdout.split()]


def extract(module, folder):
    """Writes the symbol graphs of a built module to a folder, and returns the symbols."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = [flag for path in [str(BUILD / "Modules"), *includes()] for flag in ("-I", path)]
    target = json.loads(run("swift", "-print-target-info"))["target"]["unversionedTriple"]
    run("swift-symbolgraph-extract", "-module-name", module, *flags, "-minimum-access-level", "public",
        "-target", target, "-output-dir", str(folder))
    graphs = sorted(folder.glob(f"{module}*.symbols.json"))
    return [symbol for path in graphs for symbol in json.loads(path.read_text(encoding="utf-8"))["symbols"]]


def convert(module, graphs, archive, dependencies=()):
    """Makes static pages of a module, and returns docc's warnings."""
    links = [flag for dependency in dependencies for flag in ("--dependency", str(dependency))]
    return run("docc", "convert", str(pages(module)), "--additional-symbol-graph-dir", str(graphs), "--output-path",
               str(archive), "--fallback-display-name", module, "--fallback-bundle-identifier", module,
               "--transform-for-static-hosting", "--enable-experimental-external-link-support", *links)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise Unreadable(f"{done.stdout}{command[0]} failed; run swift build --build-tests first.")
    return done.stdout

"""The programs that are measured, built in release."""
import os
import subprocess


def path(root, product="media-benchmarks"):
    """Where a product is, once it is built; None where it does not build. MEDIA_BENCHMARKS_PROGRAM names another
    media-benchmarks."""
    given = os.environ.get("MEDIA_BENCHMARKS_PROGRAM")
    if given is not None and product == "media-benchmarks":
        return given
    command = ["swift", "build", "--configuration", "release", "--product", product]
    if subprocess.run(command, cwd=root).returncode != 0:
        return None
    folder = subprocess.run([*command[:4], "--show-bin-path"], capture_output=True, text=True, cwd=root)
    return os.path.join(folder.stdout.strip(), product)

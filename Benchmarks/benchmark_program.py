"""The program that runs the media graph's benchmarks, built in release."""
import os
import subprocess


def path(root):
    """Where it is, once it is built; None where it does not build. MEDIA_BENCHMARKS_PROGRAM names another."""
    given = os.environ.get("MEDIA_BENCHMARKS_PROGRAM")
    if given is not None:
        return given
    command = ["swift", "build", "--configuration", "release", "--product", "media-benchmarks"]
    if subprocess.run(command, cwd=root).returncode != 0:
        return None
    folder = subprocess.run([*command[:4], "--show-bin-path"], capture_output=True, text=True, cwd=root)
    return os.path.join(folder.stdout.strip(), "media-benchmarks")

"""The programs that are measured, built in release, and the malloc counter."""
import os
import subprocess

from figures import ROOT, Failure

# Each can name a program that is built already.
VARIABLES = {"benchmarks": "BENCHMARKS_PROGRAM", "media-benchmarks": "MEDIA_BENCHMARKS_PROGRAM",
             "connectlive": "CONNECTLIVE_PROGRAM"}


def build(product):
    """Returns the path of a product."""
    given = os.environ.get(VARIABLES.get(product, ""))
    if given:
        return given
    command = ["swift", "build", "--configuration", "release", "--product", product]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        raise Failure(f"The product {product} does not build.")
    folder = subprocess.run([*command[:4], "--show-bin-path"], capture_output=True, text=True, cwd=ROOT, check=True)
    return os.path.join(folder.stdout.strip(), product)


def build_malloc_counter(folder):
    """Returns its path in the folder."""
    counter = os.path.join(folder, "malloc_counter.so")
    source = os.path.join(ROOT, "Benchmarks", "malloc-counter", "malloc_counter.c")
    if subprocess.run(["cc", "-O2", "-Wall", "-fPIC", "-shared", "-o", counter, source]).returncode != 0:
        raise Failure("The malloc counter does not build.")
    return counter

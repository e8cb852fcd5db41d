"""Shared by all benchmarks: they run a program that prints figures, and write a page of tables."""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "Benchmarks", "results")
NOT_MEASURED = "–"


class Failure(Exception):
    """Its message is all that `run` prints about it."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def page_parser(name, description):
    """For the options of `run NAME`, with the first line of the description."""
    parser = argparse.ArgumentParser(prog=f"run {name}", description=description.split("\n")[0])
    parser.add_argument("--output", default=RESULTS, help="folder of the page")
    return parser


# Reading.


def last_json(done):
    """The last line of JSON that a finished program has printed. None if there is none."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def run_json(command, limit, **options):
    """Runs a program for at most `limit` seconds, and returns the last line of JSON that it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, **options)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"not done after {limit} s") from late
    figures = last_json(done)
    if done.returncode != 0 or figures is None:
        raise Failure(done.stderr.strip()[-300:] or f"ended with {done.returncode}, without figures")
    return figures


def load_average():
    """Of 1, 5 and 15 minutes."""
    with open("/proc/loadavg") as file:
        return " ".join(file.read().split()[:3])


# Writing.


def median(values):
    """None of no values."""
    return statistics.median(values) if values else None


def spread(values, digits=1):
    """The median (minimum to maximum), or the only value."""
    values = [value for value in values if value is not None]
    if not values:
        return NOT_MEASURED
    words = f"{median(values):.{digits}f}"
    return words if len(values) == 1 else f"{words} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def ratios(ours, theirs):
    """Of each round's pair."""
    return [a / b for a, b in zip(ours, theirs) if a is not None and b]


def head(*cells):
    return [row(*cells), "|---" * len(cells) + "|"]


def row(*cells):
    return f"| {' | '.join(cells)} |"


def write_file(folder, name, text):
    """Puts the date before the name, and returns both."""
    os.makedirs(folder, exist_ok=True)
    name = f"{datetime.date.today().isoformat()}-{name}"
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    say(f"wrote {path}")
    return name


def write_page(folder, name, title, facts, lines, load=None):
    """Below a table of facts. `load` is the load average before the measurements, which have just ended."""
    if load is not None:
        facts = [*facts, ("load average of 1, 5 and 15 minutes before", f"{load}, after {load_average()}")]
    text = "\n".join([f"# Benchmarks: {title}", "", *head("", ""), *(row(*fact) for fact in facts), "", *lines])
    write_file(folder, f"{name}.md", text.rstrip("\n") + "\n")

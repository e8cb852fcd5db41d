"""SRTP on OpenSSL beside libsrtp2: sealing and opening, without sessions and sockets.

BENCHMARKS_PROGRAM names a built `benchmarks`; otherwise it is built in release.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchmark_program import path as build


def spread(values):
    values = [value / 1000 for value in values]
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def ratio(ours, theirs):
    return f"{statistics.median(a / b for a, b in zip(ours, theirs)):.2f}"


def table(report, counted):
    lines = [
        "Microseconds of processor time per packet; median of the rounds (min to max). Both libraries run in one thread, in "
        "turn, and a ratio is the median of those of the rounds. A packet is sealed and opened in its own buffer, so "
        "nothing is copied; the buffers fit into the second-level cache. Lengths are without the tag. Packets of 45 SSRCs "
        "alternate.",
        "",
        "| profile | bytes | SSRCs | seal: OpenSSL | libsrtp2 | ratio | open: OpenSSL | libsrtp2 | ratio | allocations of a "
        "packet, seal and open: OpenSSL | libsrtp2 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    costs = zip(report["costs"][::2], report["costs"][1::2], counted["costs"][::2], counted["costs"][1::2])
    for ours, theirs, our_counts, their_counts in costs:
        cells = [ours["profile"], str(ours["length"]), str(ours["ssrcs"])]
        for key in ("seal", "open"):
            cells += [spread(ours[key]), spread(theirs[key]), f"**{ratio(ours[key], theirs[key])}**"]
        for counts in (our_counts, their_counts):
            cells.append(", ".join(
                f"{statistics.median(counts[key]):.2f}" for key in ("sealAllocations", "openAllocations")))
        lines.append(f"| {' | '.join(cells)} |")
    return lines + [
        "",
        "Allocations are counted by a preloaded malloc, in a run of its own.",
        "",
    ]


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run srtp", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each library")
    parser.add_argument("--build", default="Built in release.", help="a sentence about the program that is measured")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    program = os.environ.get("BENCHMARKS_PROGRAM") or build(root, "benchmarks")
    if program is None:
        return ["srtp: the benchmarks do not build."]

    def run(rounds, **environment):
        done = subprocess.run(
            [program, "srtp", "--rounds", str(rounds)], capture_output=True, text=True, timeout=600,
            env={**os.environ, **environment})
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-300:])
        return json.loads(done.stdout.splitlines()[-1])

    load = " ".join(open("/proc/loadavg").read().split()[:3])
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        counter = os.path.join(folder, "malloc_counter.so")
        source = os.path.join(root, "Benchmarks", "malloc-counter", "malloc_counter.c")
        if subprocess.run(["cc", "-O2", "-Wall", "-fPIC", "-shared", "-o", counter, source]).returncode != 0:
            return ["srtp: the malloc counter does not build."]
        try:
            report = run(options.rounds)
            counted = run(1, LD_PRELOAD=counter, MALLOC_COUNTER_FILE=os.path.join(folder, "counts"))
            if not all(statistics.median(cost["sealAllocations"]) > 0 for cost in counted["costs"][1::2]):
                raise RuntimeError("the malloc counter does not count the allocations of libsrtp2")
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
            return [f"srtp: {problem}"]
    load += ", after " + " ".join(open("/proc/loadavg").read().split()[:3])
    rows = [*facts, ("load average before", load)]
    text = "\n".join(
        ["# Benchmarks: SRTP on OpenSSL beside libsrtp2", "", "| | |", "|---|---|",
         *(f"| {name} | {value} |" for name, value in rows), "", f"Made by `Benchmarks/run srtp`. {options.build}", ""]
        + table(report, counted))
    os.makedirs(options.output, exist_ok=True)
    page = os.path.join(options.output, f"{datetime.date.today().isoformat()}-srtp.md")
    with open(page, "w") as file:
        file.write(text)
    print(f"wrote {page}", file=sys.stderr)
    return []

"""Raw pictures of a shared library and of another process, beside the same pictures made in the graph's own program.

All are 1920x1080 I420 at 60 frames/s into a graph that reads each one's bar code. Runs alternate (A B C D A B C D ...), each
in a process of its own.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

import benchmark_program

WAYS = {
    "capturer": "a capturer of the program (no copy)",
    "library": "the same capturer out of a shared library (no copy)",
    "socket": "another process, over the frame socket (no copy)",
    "push": "the program, pushed as arrays (one copy)",
}


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def measure(program, plugin, pairs, seconds):
    results = {way: [] for way in WAYS}
    for number in range(1, pairs + 1):
        for way in WAYS:
            print(f"{way}: run {number} of {pairs}", file=sys.stderr, flush=True)
            done = subprocess.run([program, "frames", way, str(seconds), plugin], capture_output=True, text=True, timeout=seconds + 60)
            if done.returncode != 0:
                raise SystemExit(f"{way}: {done.stderr.strip()[-300:]}")
            results[way].append(json.loads(done.stdout.splitlines()[-1]))
    return results


def table(results, pairs, seconds):
    lines = [
        f"{pairs} alternating runs of {seconds} s, median (min to max). Processor time is the scheduler's account of all threads; "
        "this includes drawing the frames, wherever they are drawn, and reading the bar code. Latency is from the capture "
        "time, which the capturers read before they draw and the others after, until the graph's last node has it.",
        "",
        "| source of the frames | processor µs a frame, the graph's process | the feeder's | together | latency ms, median | "
        "95 % | most | frames lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for way, what in WAYS.items():
        runs = results[way]
        lines.append(
            f"| {what} | {spread([run['graphMicroseconds'] for run in runs], 0)} | "
            + (f"{spread([run['otherMicroseconds'] for run in runs], 0)} | " if way == "socket" else "| ")
            + f"{spread([run['graphMicroseconds'] + run['otherMicroseconds'] for run in runs], 0)} | "
            f"{spread([run['latencyMedian'] for run in runs])} | {spread([run['latency95'] for run in runs])} | "
            f"{spread([run['latencyMost'] for run in runs], 1)} | "
            f"{sum(run['lost'] for run in runs)} of {sum(run['frames'] for run in runs)} |")
    lines += ["", "Beside the capturer of the program, run by run:", ""]
    for way, what in WAYS.items():
        if way == "capturer":
            continue
        pairs_of = list(zip(results[way], results["capturer"]))
        processor = [
            (a["graphMicroseconds"] + a["otherMicroseconds"]) / (b["graphMicroseconds"] + b["otherMicroseconds"])
            for a, b in pairs_of]
        added = [a["latencyMedian"] - b["latencyMedian"] for a, b in pairs_of]
        lines.append(
            f"* {what}: **{spread(processor)}** times the processor time, **{spread(added)} ms** more latency.")
    return lines + [""]


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run raw-frames", description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=10, help="runs of each way")
    parser.add_argument("--seconds", type=int, default=5, help="that each run is watched")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    program = benchmark_program.path(root)
    if program is None:
        return ["The benchmarks do not build."]
    plugin = os.path.join(root, "Benchmarks", "plugin")
    if subprocess.run(["swift", "build", "--configuration", "release", "--package-path", plugin]).returncode != 0:
        return ["The benchmark's plugin does not build."]
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    results = measure(program, plugin, options.pairs, options.seconds)
    load += ", after " + " ".join(open("/proc/loadavg").read().split()[:3])
    rows = [*facts, ("load average before", load)]
    text = "\n".join(
        ["# Benchmarks: raw frames from elsewhere", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), "",
         "Made by `Benchmarks/run raw-frames`: raw I420 of 1920x1080 at 60 frames/s.", ""]
        + table(results, options.pairs, options.seconds))
    os.makedirs(options.output, exist_ok=True)
    path = os.path.join(options.output, f"{datetime.date.today().isoformat()}-raw-frames.md")
    with open(path, "w") as file:
        file.write(text)
    print(f"wrote {path}", file=sys.stderr)
    return []

"""Raw pictures of a shared library and of another process, beside the same pictures made in the graph's own program.

All are 1920x1080 I420 at 60 frames/s into a graph that reads each one's bar code. Runs alternate (A B C D A B C D ...), each
in a process of its own.
"""
import os
import subprocess

from benchmark_program import build
from figures import ROOT, Failure, load_average, page_parser, ratios, run_json, say, spread, write_page

WAYS = {
    "capturer": "a capturer of the program (no copy)",
    "library": "the same capturer out of a shared library (no copy)",
    "socket": "another process, over the frame socket (no copy)",
    "push": "the program, pushed as arrays (one copy)",
}


def measure(program, plugin, pairs, seconds):
    results = {way: [] for way in WAYS}
    for number in range(1, pairs + 1):
        for way in WAYS:
            say(f"{way}: run {number} of {pairs}")
            results[way].append(run_json([program, "frames", way, str(seconds), plugin], seconds + 60))
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
            f"{spread([run['latencyMedian'] for run in runs], 2)} | {spread([run['latency95'] for run in runs], 2)} | "
            f"{spread([run['latencyMost'] for run in runs], 1)} | "
            f"{sum(run['lost'] for run in runs)} of {sum(run['frames'] for run in runs)} |")
    lines += ["", "Beside the capturer of the program, run by run:", ""]
    for way, what in WAYS.items():
        if way == "capturer":
            continue
        processor = ratios(*(
            [run["graphMicroseconds"] + run["otherMicroseconds"] for run in results[name]] for name in (way, "capturer")))
        added = [a["latencyMedian"] - b["latencyMedian"] for a, b in zip(results[way], results["capturer"])]
        lines.append(
            f"* {what}: **{spread(processor, 2)}** times the processor time, **{spread(added, 2)} ms** more latency.")
    return lines + [""]


def main(arguments, facts):
    parser = page_parser("raw-frames", __doc__)
    parser.add_argument("--pairs", type=int, default=10, help="runs of each way")
    parser.add_argument("--seconds", type=int, default=5, help="that each run is watched")
    options = parser.parse_args(arguments)
    program = build("media-benchmarks")
    plugin = os.path.join(ROOT, "Benchmarks", "plugin")
    if subprocess.run(["swift", "build", "--configuration", "release", "--package-path", plugin]).returncode != 0:
        raise Failure("The benchmark's plugin does not build.")
    load = load_average()
    results = measure(program, plugin, options.pairs, options.seconds)
    write_page(
        options.output, "raw-frames", "raw frames from elsewhere", facts,
        ["Raw I420 of 1920x1080 at 60 frames/s.", "", *table(results, options.pairs, options.seconds)], load)
    return []

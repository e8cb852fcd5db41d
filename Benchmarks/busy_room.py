"""The delay of one room's packets while another room fills and a publisher bursts.

The room server runs in a process of its own. BENCHMARKS_PROGRAM names a built `benchmarks`; otherwise it is built in
release.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys


def program(root):
    given = os.environ.get("BENCHMARKS_PROGRAM")
    if given is not None:
        return given
    command = ["swift", "build", "--configuration", "release", "--product", "benchmarks"]
    subprocess.run(command, cwd=root, check=True)
    folder = subprocess.run([*command[:4], "--show-bin-path"], capture_output=True, text=True, cwd=root, check=True)
    return os.path.join(folder.stdout.strip(), "benchmarks")


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(runs, build):
    first = runs[0]
    priority = "with precedence over" if all(run["probeHasPriority"] for run in runs) else "on the same terms as"
    lines = [
        f"A publisher and a receiver of one room, {first['packetsPerSecond']} packets of 1200 bytes a second, beside a room "
        f"that {first['participants']} participants join; each announces audio and sends a packet a second. Then a "
        f"publisher with {first['burstReceivers']} subscribers sends {first['burst']} packets in one burst. Delays are "
        "from sending to receiving, through the server, on one clock. The server has a process of its own. All clients "
        f"share another, whose threads compete for the same cores; the measured clients run {priority} them. "
        f"{len(runs)} runs, {build}; median (min to max).",
        "",
        "| while | seconds | p50, ms | p99, ms | longest, ms | core used by the rooms | packets, missing |",
        "|---|---|---|---|---|---|---|",
    ]
    for index, phase in enumerate(first["phases"]):
        phases = [run["phases"][index] for run in runs]
        figures = [
            spread([phase["seconds"] for phase in phases], 1), spread([phase["p50"] for phase in phases]),
            f"**{spread([phase['p99'] for phase in phases])}**", spread([phase["max"] for phase in phases], 1),
            f"{100 * statistics.median(phase['load'] for phase in phases):.0f} %",
            f"{sum(phase['packets'] for phase in phases)}, {sum(phase['missing'] for phase in phases)}",
        ]
        lines.append(f"| {phase['name']} | {' | '.join(figures)} |")
    return lines + [""]


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run busy", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs")
    parser.add_argument("--build", default="built in release", help="words about the program that is measured")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    path = program(root)
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    runs = []
    for number in range(1, options.rounds + 1):
        print(f"busy: run {number} of {options.rounds}", file=sys.stderr, flush=True)
        done = subprocess.run([path, "busy"], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            return [f"busy: {done.stderr.strip()[-300:]}"]
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    load += ", after " + " ".join(open("/proc/loadavg").read().split()[:3])
    rows = [*facts, ("load average before", load)]
    text = "\n".join(
        ["# Benchmarks: a busy room beside another", "", "| | |", "|---|---|",
         *(f"| {name} | {value} |" for name, value in rows), "", "Made by `Benchmarks/run busy`.", ""]
        + table(runs, options.build))
    os.makedirs(options.output, exist_ok=True)
    page = os.path.join(options.output, f"{datetime.date.today().isoformat()}-busy-room.md")
    with open(page, "w") as file:
        file.write(text)
    print(f"wrote {page}", file=sys.stderr)
    return []

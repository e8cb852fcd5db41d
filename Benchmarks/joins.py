"""Joins of a room in which a subscriber is already: the time to the first packet beside Janus, and to the first frame.

Subscribers join one after the other, each when the one before has a keyframe, and stay. Servers and load generator run
as in janus.py. Needs root, two cores, and Debian's package janus. BENCHMARKS_PROGRAM names a built `benchmarks`;
otherwise it is built in release.
"""
import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys

from benchmark_program import path as build
from janus_numbers import NAMES
from janus_parts import LOAD_CORE, start
from joined_namespaces import JoinedNamespaces
from room_servers import Failure, janus_version

# The default configuration of Janus, with a thread for each subscriber, is too busy for the last joins.
KINDS = ["ours", "best"]
# Seconds between the first frame of the other viewer and the join.
WATCHED = {"a keyframe that is 0.2 s old": "0.2", "a keyframe that is 3 s old": "3"}


def run_json(command, limit):
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise Failure(f"{' '.join(command)[-80:]}: {done.stderr.strip()[-300:]}")
    return json.loads(lines[-1])


def measure_joins(kind, program, joins):
    with JoinedNamespaces(load_core=LOAD_CORE) as network:
        server = start(kind, program, network)
        try:
            return run_json(
                network.inside(
                    network.load, program, "room-joins", *server.load_options(), "--joins", str(joins),
                    core=LOAD_CORE), 400)
        finally:
            server.stop()


def spread(values, digits=1):
    text = f"{statistics.median(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def joins_table(runs):
    lines = [
        "| | first packet, ms, p50 | p95 | longest | first keyframe, ms, p50 | p95 | longest | keyframes | joins a second |",
        "|---" * 9 + "|"]
    for kind in KINDS:
        results = runs[kind]
        figures = [
            spread([result[event][key] for result in results])
            for event in ("packet", "keyframe") for key in ("median", "p95", "max")]
        keyframes = spread([result["keyframes"] for result in results], 0)
        rate = spread([result["joins"] / result["seconds"] for result in results])
        lines.append(f"| {NAMES[kind]} | {' | '.join(figures)} | {keyframes} | {rate} |")
    return lines


def calls_table(calls):
    lines = [
        "| the other viewer's stream began with | first frame, ms | of it until connected | until subscribed |",
        "|---" * 4 + "|"]
    for name, results in calls.items():
        figures = [spread([r[key] for r in results]) for key in ("firstFrameMs", "connectedMs", "subscribedMs")]
        lines.append(f"| {name} | **{figures[0]}** | {figures[1]} | {figures[2]} |")
    return lines


def page(runs, calls, options, facts):
    first = runs["ours"][0]
    return [
        "# Benchmarks: joins beside Janus", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts),
        "", "Made by `Benchmarks/run joins`.", "", "## Join to first packet", "",
        f"One room with one publisher, {first['packetsPerSecond']} packets of 1200 bytes a second in 30 bursts. One "
        f"subscriber is there; {first['joins']} more join one after the other, each when the one before has a keyframe, "
        "and stay. Times are from before the connection to the server: WebSocket, joining, ICE, DTLS and subscribing are "
        "in them. *Keyframes* are those that the joins cost the publisher. The server is alone on a core, in another "
        f"network namespace than the load generator. {options.rounds} round(s), in turn; median (min to max).", "",
        *joins_table(runs), "", "## Join to first frame", "",
        "A publisher, a viewer that is there, the room server and the measured viewer on the SDK in one process, on "
        "loopback: 640x480 at 30 frames/s, VP8. From `connect` of the measured viewer to its first rendered frame, as in "
        f"`make bench`. {options.calls} runs of each; median (min to max).", "", *calls_table(calls), ""]


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run joins", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each server (3)")
    parser.add_argument("--joins", type=int, default=200, help="of each round (200)")
    parser.add_argument("--calls", type=int, default=10, help="of each kind (10)")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    version = janus_version()
    if version is None or shutil.which("ip") is None or os.geteuid() != 0 or os.cpu_count() < 2:
        return ["joins: needs root, two cores, ip, and Debian's janus: apt-get install --no-install-recommends janus."]
    program = os.environ.get("BENCHMARKS_PROGRAM") or build(root, "benchmarks")
    if program is None:
        return ["joins: the benchmarks do not build."]
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    runs, problems = {kind: [] for kind in KINDS}, []
    calls = {name: [] for name in WATCHED}
    for number in range(1, options.rounds + 1):
        for kind in KINDS:
            print(f"joins: round {number} of {options.rounds}, {NAMES[kind]}", file=sys.stderr, flush=True)
            try:
                runs[kind].append(measure_joins(kind, program, options.joins))
            except (Failure, subprocess.TimeoutExpired) as problem:
                problems.append(str(problem))
    for number in range(1, options.calls + 1):
        for name, seconds in WATCHED.items():
            print(f"joins: call {number} of {options.calls}, {name}", file=sys.stderr, flush=True)
            try:
                calls[name].append(run_json([program, "call", "--seconds", "1", "--warm-up", "0", "--watched", seconds], 90))
            except (Failure, subprocess.TimeoutExpired) as problem:
                problems.append(str(problem))
    if not all(runs.values()) or not all(calls.values()):
        return problems
    wrong = sum(run[key] for run in runs["ours"] for key in ("missing", "wrong"))
    if wrong:
        problems.append(f"joins: our server lost or changed {wrong} packets.")
    load += ", after " + " ".join(open("/proc/loadavg").read().split()[:3])
    text = "\n".join(page(runs, calls, options, [*facts, ("Janus", version), ("load average before", load)]))
    os.makedirs(options.output, exist_ok=True)
    file_name = os.path.join(options.output, f"{datetime.date.today().isoformat()}-joins.md")
    with open(file_name, "w") as file:
        file.write(text)
    print(f"wrote {file_name}", file=sys.stderr)
    return problems

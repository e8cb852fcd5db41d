"""The room server beside Debian's Janus, with one load generator for both.

Each server runs in a network namespace of its own, alone on core 0. The load generator runs on core 1, in a namespace
joined by a virtual cable. Needs root, two cores, and Debian's package janus. BENCHMARKS_PROGRAM names a built
`benchmarks`; otherwise it is built in release.
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
from joined_namespaces import JoinedNamespaces
from room_servers import Failure, Janus, OurServer, janus_version

SERVER_CORE, LOAD_CORE = 0, 1
# The best configuration of Janus 1.1.2 for one core. By default each subscriber has a thread.
BEST = "event_loops = 2"
NAMES = {"ours": "ours", "best": "Janus, event_loops=2", "default": "Janus, default"}
# With more, the default configuration loses packets.
DEFAULT_LIMIT = 200


def start(kind, program, network):
    def inside(*command):
        return network.inside(network.server, *command, core=SERVER_CORE)

    if kind == "ours":
        return OurServer(inside(program, "serve", "--host", network.server_address))
    return Janus(inside, network.server_address, general=BEST if kind == "best" else "")


def measure(kind, program, options):
    """One server's steps, with all clients new."""
    with JoinedNamespaces(load_core=LOAD_CORE) as network:
        server = start(kind, program, network)
        try:
            command = network.inside(
                network.load, program, "room-load", *server.load_options(), "--process", str(server.process.pid),
                *options, core=LOAD_CORE)
            done = subprocess.run(command, capture_output=True, text=True, timeout=400)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0 or not lines:
                raise Failure(f"{NAMES[kind]}: {done.stderr.strip()[:400]}")
            return json.loads(lines[-1])
        finally:
            server.stop()


def spread(values, digits=1):
    if not values:
        return ""
    text = f"{statistics.median(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def values_of(runs, kind, subscribers, key):
    return [step[key] for run in runs[kind] for step in run["steps"] if step["subscribers"] == subscribers]


def ratio(runs, subscribers, key, other="best"):
    pairs = zip(values_of(runs, "ours", subscribers, key), values_of(runs, other, subscribers, key))
    return spread([ours / theirs for ours, theirs in pairs if theirs], 2)


def lost(runs, kind, subscribers):
    """Share of packets that did not come, where it is not 0."""
    missing = sum(values_of(runs, kind, subscribers, "missing"))
    return f", loses {100 * missing / (missing + sum(values_of(runs, kind, subscribers, 'packetsOut'))):.1f} %" if (
        missing) else ""


def forwarding_table(runs, kinds, counts):
    lines = [
        "| subscribers | " + " | ".join(f"{NAMES[kind]}, µs" for kind in kinds) + " | ours / event_loops=2 | "
        + " | ".join(f"{NAMES[kind]}, ms, p50 / p99" for kind in kinds) + " |",
        "|---" * (2 + 2 * len(kinds)) + "|"]
    for count in counts:
        costs = [
            spread(values_of(runs, kind, count, "microsecondsPerPacket")) + lost(runs, kind, count) for kind in kinds]
        latencies = [
            " / ".join(
                f"{statistics.median(values):.1f}" for key in ("latencyMedian", "latencyP99")
                if (values := values_of(runs, kind, count, key)))
            for kind in kinds]
        lines.append(
            f"| {count} | {' | '.join(costs)} | **{ratio(runs, count, 'microsecondsPerPacket')}** | "
            f"{' | '.join(latencies)} |")
    return lines


def slope(run, counts, key):
    """Of one subscriber, between two steps."""
    steps = {step["subscribers"]: step for step in run["steps"]}
    few, many = counts[-2], counts[-1]
    if few not in steps or many not in steps:
        return None
    return (steps[many][key] - steps[few][key]) / (many - few)


def resources_table(runs, kinds, counts):
    rows = []
    for key, name in (
        ("privateMemory", "private memory, KiB"), ("threads", "threads"), ("descriptors", "descriptors")):
        row = [spread([s for run in runs[kind] if (s := slope(run, counts, key)) is not None]) for kind in kinds]
        rows.append(f"| {name}, of one subscriber, as the slope from {counts[-2]} to {counts[-1]} | {' | '.join(row)} |")
    for count in counts:
        row = [spread([100 * v for v in values_of(runs, kind, count, "idleCore")], 2) for kind in kinds]
        media = spread([100 * v for v in values_of(runs, "ours", count, "idleMediaCore")], 2)
        rows.append(
            f"| {count} connected and silent, % of a core | {' | '.join(row)} |"
            f"\n| of it on the thread of the rooms | {media} |" + " |" * (len(kinds) - 1))
    return ["| | " + " | ".join(NAMES[kind] for kind in kinds) + " |", "|---" * (1 + len(kinds)) + "|", *rows]


def page(runs, kinds, counts, options, facts):
    first = runs["ours"][0]
    generator = max(step["generatorCore"] for kind in kinds for run in runs[kind] for step in run["steps"])
    return [
        "# Benchmarks: rooms beside Janus", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts),
        "", "Made by `make bench-janus`.", "",
        f"One room with one publisher: {first['rate']} bursts of {first['burst']} packets of {first['packetLength']} "
        f"bytes a second, SRTP {first['profile']}. The server is alone on a core. The load generator is the same for "
        "both and has the other core, in another network namespace; it checks the number and the authentication tag of "
        f"every packet. The namespaces are joined by a veth pair, whose receiving side works on the generator's core. "
        f"{options.rounds} round(s) of {options.seconds} s for each step, in turn; median (min to max).", "",
        "## Processor time and latency",
        "Microseconds of all threads of the server for each packet that a subscriber received, and milliseconds from "
        f"sending to receiving, which include the generator's own. The generator used up to {100 * generator:.0f} % of "
        "its core.", "",
        *forwarding_table(runs, kinds, counts), "",
        "## Memory and idle cost", "", *resources_table(runs, kinds, counts), ""]


def parse(arguments, root):
    parser = argparse.ArgumentParser(prog="run janus", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each server (5)")
    parser.add_argument("--seconds", type=int, default=5, help="of each step (5)")
    parser.add_argument("--subscribers", default="1,20,100,200,400", help="one step after the other")
    parser.add_argument("--quick", action="store_true", help="1 round of 3 seconds, up to 100 subscribers, to standard output")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds, options.subscribers = 1, 3, "1,20,100"
    return options


def main(arguments, root, facts):
    options = parse(arguments, root)
    version = janus_version()
    if version is None or shutil.which("ip") is None or os.geteuid() != 0 or os.cpu_count() < 2:
        return ["janus: needs root, two cores, ip, and Debian's janus: apt-get install --no-install-recommends janus."]
    program = os.environ.get("BENCHMARKS_PROGRAM") or build(root, "benchmarks")
    if program is None:
        return ["janus: the benchmarks do not build."]
    counts = sorted(int(count) for count in options.subscribers.split(","))
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    kinds = ["ours", "best", "default"]
    runs = {kind: [] for kind in kinds}
    problems = []
    for number in range(1, options.rounds + 1):
        for kind in kinds:
            used = [count for count in counts if kind != "default" or count <= DEFAULT_LIMIT]
            print(f"janus: round {number} of {options.rounds}, {NAMES[kind]}", file=sys.stderr, flush=True)
            steps = ["--subscribers", ",".join(map(str, used)), "--seconds", str(options.seconds), "--idle", "3"]
            try:
                runs[kind].append(measure(kind, program, steps))
            except (Failure, subprocess.TimeoutExpired) as problem:
                problems.append(str(problem))
    if not all(runs.values()):
        return problems
    wrong = sum(step[key] for run in runs["ours"] for step in run["steps"] for key in ("missing", "wrong", "refused"))
    if wrong:
        problems.append(f"janus: our server lost or changed {wrong} packets.")
    facts = [*facts, ("Janus", version), ("load average before", load)]
    text = "\n".join(page(runs, kinds, counts, options, facts))
    if options.quick:
        print(text)
        return problems
    os.makedirs(options.output, exist_ok=True)
    file_name = os.path.join(options.output, f"{datetime.date.today().isoformat()}-janus.md")
    with open(file_name, "w") as file:
        file.write(text)
    print(f"wrote {file_name}", file=sys.stderr)
    return problems

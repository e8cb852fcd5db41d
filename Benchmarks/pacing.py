"""What it costs the room server to estimate a subscriber's link and to pace its packets, beside subscribers that report
no arrivals.

One publisher, and subscribers that either accept transport-wide numbers or refuse them. Server and load generator run as
in janus.py. Needs root, two cores and valgrind.
"""
import tempfile

from benchmark_program import build
from counters import Instructions, paced
from figures import load_average, page_parser, ratios, run_json, say, spread, write_page
from joined_namespaces import check_machine
from room_servers import LOAD_CORE, serving

KINDS = {"unpaced": ["--unpaced"], "paced": []}
# Packets in a burst, and bursts a second: video of 2.3 Mbit/s, and single packets.
SHAPES = {"8 packets, 30 times a second": (8, 30), "1 packet, 50 times a second": (1, 50)}


def load(joined, server, program, kind, shape, counts, *options):
    burst, rate = SHAPES[shape]
    return joined.inside(
        joined.load, program, "room-load", *server.load_options(), "--process", str(server.process.pid), "--from",
        ",".join(joined.client_addresses), "--subscribers", ",".join(map(str, counts)), "--burst", str(burst), "--rate",
        str(rate), *KINDS[kind], *map(str, options), core=LOAD_CORE)


def measure_time(kind, shape, program, options):
    with serving("ours", program) as (server, joined):
        command = load(joined, server, program, kind, shape, options.counts, "--seconds", options.seconds, "--settle", 3)
        return run_json(command, 500)["steps"]


def measure_instructions(kind, shape, program, options):
    """callgrind slows the server down about fifty times, so there are few subscribers."""
    with tempfile.TemporaryDirectory(prefix="counts-") as folder, \
            serving("ours", Instructions.server(program, folder)) as (server, joined):
        command = load(
            joined, server, program, kind, shape, options.counted, "--seconds", options.seconds, "--settle", 3,
            "--idle", options.seconds, "--warm-up", 80, "--paced")
        return paced(command, Instructions(server.process.pid, folder))["steps"]


def of_packet(step):
    """Instructions of a packet, without those of as much silence."""
    sending, silent = step["counts"]["sending"], step["counts"].get("silent")
    rest = silent["count"] * sending["seconds"] / silent["seconds"] if silent else 0
    return (sending["count"] - rest) / step["packetsOut"]


def rows(shape, runs, value, digits):
    lines = []
    for index, step in enumerate(runs[shape, "paced"][0]):
        figures = {kind: [value(run[index]) for run in runs[shape, kind]] for kind in KINDS}
        lines.append(
            f"| {shape} | {step['subscribers']} | {spread(figures['unpaced'], digits)} | {spread(figures['paced'], digits)} "
            f"| **{spread(ratios(figures['paced'], figures['unpaced']), 2)}** |")
    return lines


def table(unit, runs, value, digits):
    head = f"| packets | subscribers | unpaced, {unit} | paced, {unit} | ratio |"
    return [head, "|---" * 5 + "|", *(line for shape in SHAPES for line in rows(shape, runs, value, digits))]


def main(arguments, facts):
    parser = page_parser("pacing", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of the processor time (3)")
    parser.add_argument("--seconds", type=int, default=5, help="of each step (5)")
    parser.add_argument("--subscribers", default="1,20,100", help="one step after the other")
    parser.add_argument("--counted", default="20", help="likewise with callgrind; none: instructions are not counted")
    options = parser.parse_args(arguments)
    options.counts = [int(count) for count in options.subscribers.split(",")]
    options.counted = [] if options.counted == "none" else [int(count) for count in options.counted.split(",")]
    check_machine()
    program = build("benchmarks")
    before = load_average()
    times, counts = ({(shape, kind): [] for shape in SHAPES for kind in KINDS} for _ in range(2))
    for number in range(1, options.rounds + 1):
        for shape, kind in times:
            say(f"pacing: round {number} of {options.rounds}, {shape}, {kind}")
            times[shape, kind].append(measure_time(kind, shape, program, options))
    for shape, kind in counts if options.counted else ():
        say(f"pacing: instructions, {shape}, {kind}")
        counts[shape, kind].append(measure_instructions(kind, shape, program, options))
    lines = [
        "Packets of 1200 bytes, SRTP AEAD_AES_128_GCM. A *paced* subscriber accepts transport-wide numbers and reports "
        "arrivals each 50 to 250 ms: the server estimates its link, paces, and gives each packet a number. The reports are "
        "in the figures. Servers take turns; median (min to max).", "",
        "## Processor time", "", f"Of all threads of the server for each packet that a subscriber received. "
        f"{options.rounds} rounds.", "",
        *table("µs", times, lambda step: step["microsecondsPerPacket"], 2)]
    if options.counted:
        lines += [
            "", "## Instructions", "", "Of all threads of the server in user space (callgrind) for each packet, encryption "
            "included, less those of as many silent seconds. One round.", "", *table("instructions", counts, of_packet, 0)]
    write_page(options.output, "pacing", "the cost of pacing", facts, lines, before)
    return [
        f"pacing: the server lost or changed {wrong} packets of {shape}, {kind}, at {step['subscribers']} subscribers."
        for (shape, kind), found in times.items() for steps in found for step in steps
        if (wrong := step["missing"] + step["wrong"] + step["refused"])]

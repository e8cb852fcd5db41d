"""How much two loops of the room server forward, each held to a part of a core, beside one such loop: with several rooms
on each loop, and with one room on both.

The server runs in a network namespace of its own on core 0, and the load generator on core 1. A control group of its own
holds each loop's thread to 25 % of the core (cpu.max). Needs root, two cores, and control groups.
"""
import contextlib
import glob
import json
import os
import subprocess
import time

from benchmark_program import build
from figures import Failure, load_average, page_parser, ratios, run_json, say, spread, write_page
from joined_namespaces import check_machine
from room_servers import LOAD_CORE, serving

# A throttled thread stands still for the rest of a period, so periods are short.
PERIOD, QUOTA = 10_000, 2_500
# Rooms, subscribers of each, packets in a burst, first rate.
SHAPES = {"40 rooms of three": (40, 2, 4, 110), "6 rooms of 21": (6, 20, 8, 50), "1 room of 101": (1, 100, 8, 60)}


class Groups:
    """A control group for each thread of a process, which ends first."""

    def __init__(self):
        self.made = []
        self.version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.root = "/sys/fs/cgroup" if self.version2 else "/sys/fs/cgroup/cpu"
        self.parent = os.path.join(self.root, f"loops-{os.getpid()}")

    def __enter__(self):
        self._make(self.parent)
        return self

    def take(self, process):
        if self.version2:
            write(os.path.join(self.root, "cgroup.subtree_control"), "+cpu")
            write(os.path.join(self.parent, "cgroup.procs"), process)

    def _make(self, path):
        os.mkdir(path)
        self.made.append(path)

    def hold(self, thread, name):
        path = os.path.join(self.parent, name)
        self._make(path)
        if self.version2:
            write(os.path.join(path, "cgroup.type"), "threaded")
            write(os.path.join(self.parent, "cgroup.subtree_control"), "+cpu")
            write(os.path.join(path, "cpu.max"), f"{QUOTA} {PERIOD}")
            write(os.path.join(path, "cgroup.threads"), thread)
        else:
            write(os.path.join(path, "cpu.cfs_period_us"), PERIOD)
            write(os.path.join(path, "cpu.cfs_quota_us"), QUOTA)
            write(os.path.join(path, "tasks"), thread)

    def __exit__(self, *_):
        for path in reversed(self.made):
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.1)


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def loops_of(process):
    """The threads of the loops, by name."""
    found = {}
    for task in glob.glob(f"/proc/{process}/task/*"):
        with contextlib.suppress(OSError), open(os.path.join(task, "comm")) as file:
            name = file.read().strip()
            if name.startswith("rooms"):
                found[name] = os.path.basename(task)
    return found


def statistics_of(network, server):
    """The server's own counters."""
    access = json.loads(server.access)
    address = f"http://{access['host']}:{access['port']}/v1/statistics"
    command = network.inside(network.load, "curl", "-sS", "-u", f"{access['id']}:{access['secret']}", address)
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(threads, shape, program, seconds):
    rooms, subscribers, burst, rate = SHAPES[shape]
    options = ["--threads", str(threads)]
    if rooms < threads:
        options += ["--room-loop-size", str((subscribers + 1 + threads) // threads)]
    with Groups() as groups, serving("ours", program, options) as (server, joined):
        groups.take(server.process.pid)
        loops = loops_of(server.process.pid)
        if len(loops) != threads:
            raise Failure(f"The server has the loops {sorted(loops)}, not {threads}.")
        for name, thread in loops.items():
            groups.hold(thread, name.replace(" ", "-"))
        # The rooms end with the load generator, and their counters stay.
        steps = run_json(
            joined.inside(
                joined.load, program, "room-load", *server.load_options(), "--process", str(server.process.pid),
                "--rooms", str(rooms), "--subscribers", str(subscribers), "--burst", str(burst),
                "--rate", str(rate * threads), "--seconds", str(seconds), "--search", core=LOAD_CORE), 500)["steps"]
        counters = statistics_of(joined, server)["loops"]
        best = max(
            (step for step in steps if step["missing"] * 1000 <= step["packetsOut"]), key=lambda step: step["rate"])
        received = sum(loop["received"] for loop in counters)
        handed = sum(loop["handedOver"] for loop in counters)
        return {
            "forwarded": best["packetsOut"] / best["seconds"], "cost": best["mediaMicrosecondsPerPacket"],
            "p99": best["latencyP99"], "generator": best["generatorCore"],
            "handedOver": handed / max(1, received - handed)}


def table(runs):
    lines = [
        "| rooms | loops | packets forwarded a second | **ratio** | µs of the loops for each | received on the wrong loop | "
        "latency p99, ms | generator, core |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        for threads in (1, 2):
            found = runs[shape, threads]
            beside_one = ratios(*([run["forwarded"] for run in runs[shape, count]] for count in (2, 1)))
            lines.append(
                f"| {shape} | {threads} | {spread([run['forwarded'] for run in found], 0)} | "
                f"{'**' + spread(beside_one, 2) + '**' if threads == 2 else ''} | "
                f"{spread([run['cost'] for run in found], 2)} | "
                f"{spread([100 * run['handedOver'] for run in found], 0)} % | "
                f"{spread([run['p99'] for run in found], 1)} | "
                f"{spread([run['generator'] for run in found], 2)} |")
    return lines


def main(arguments, facts):
    parser = page_parser("loops", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="searches of each kind")
    parser.add_argument("--seconds", type=int, default=2, help="of each step of a search")
    options = parser.parse_args(arguments)
    check_machine()
    program = build("benchmarks")
    load = load_average()
    runs = {(shape, threads): [] for shape in SHAPES for threads in (1, 2)}
    for number in range(1, options.rounds + 1):
        for shape, threads in runs:
            say(f"loops: round {number} of {options.rounds}, {shape}, {threads}")
            runs[shape, threads].append(measure(threads, shape, program, options.seconds))
    write_page(options.output, "loops", "one loop and two", facts, [
        f"Each loop's thread is held to {100 * QUOTA // PERIOD} % of a core by a control group (`cpu.max`, periods of "
        f"{PERIOD // 1000} ms). The server has core 0 in a network namespace of its own, the load generator core 1. A "
        "search raises the rate of all publishers until more than 0.1 % of the packets are missing, and then halves the "
        "distance; a line is the highest rate that passed. Packets have 1200 bytes, and every receiver checks number and "
        f"tag. At that rate the queues are full, as the latency shows. {options.rounds} searches of each kind; median (min to "
        "max).", "",
        *table(runs)], load)
    return []

"""How much two loops of the room server forward, each held to a part of a core, beside one such loop: with several rooms
on each loop, and with one room on both.

The server runs in a network namespace of its own on core 0, and the load generator on core 1. A control group of its own
holds each loop's thread to 25 % of the core (cpu.max). Needs root, two cores, and control groups. BENCHMARKS_PROGRAM
names a built `benchmarks`; otherwise it is built in release.
"""
import argparse
import contextlib
import datetime
import glob
import json
import os
import statistics
import subprocess
import sys
import time

from benchmark_program import path as build
from joined_namespaces import JoinedNamespaces
from room_servers import Failure, OurServer

SERVER_CORE, LOAD_CORE = 0, 1
# A throttled thread stands still for the rest of a period, so periods are short.
PERIOD, QUOTA = 10_000, 2_500
# Rooms, subscribers of each, packets in a burst, first rate.
SHAPES = {"40 rooms of three": (40, 2, 4, 110), "6 rooms of 21": (6, 20, 8, 50), "1 room of 101": (1, 100, 8, 60)}


class Groups:
    """A control group for each thread of a process."""

    def __init__(self, process):
        self.made = []
        self.version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        root = "/sys/fs/cgroup" if self.version2 else "/sys/fs/cgroup/cpu"
        self.parent = os.path.join(root, f"loops-{process}")
        self._make(self.parent)
        if self.version2:
            write(os.path.join(root, "cgroup.subtree_control"), "+cpu")
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

    def remove(self):
        """After the process has ended."""
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


def measure(threads, shape, program, options):
    rooms, subscribers, burst, rate = SHAPES[shape]
    with JoinedNamespaces(load_core=LOAD_CORE) as network:
        command = [program, "serve", "--host", network.server_address, "--threads", str(threads)]
        if rooms < threads:
            command += ["--room-loop-size", str((subscribers + 1 + threads) // threads)]
        server = OurServer(network.inside(network.server, *command, core=SERVER_CORE))
        groups = Groups(server.process.pid)
        try:
            loops = loops_of(server.process.pid)
            if len(loops) != threads:
                raise Failure(f"The server has the loops {sorted(loops)}, not {threads}.")
            for name, thread in loops.items():
                groups.hold(thread, name.replace(" ", "-"))
            command = network.inside(
                network.load, program, "room-load", *server.load_options(), "--process", str(server.process.pid),
                "--rooms", str(rooms), "--subscribers", str(subscribers), "--burst", str(burst),
                "--rate", str(rate * threads), "--seconds", str(options.seconds), "--search", core=LOAD_CORE)
            load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            # The rooms end with the load generator, and their counters stay.
            output, errors = load.communicate(timeout=500)
            lines = [line for line in output.splitlines() if line.startswith("{")]
            if load.returncode != 0 or not lines:
                raise Failure(f"{threads} loops, {shape}: {errors.strip()[:400]}")
            counters = statistics_of(network, server)["loops"]
            good = [step for step in json.loads(lines[-1])["steps"] if step["missing"] * 1000 <= step["packetsOut"]]
            best = max(good, key=lambda step: step["rate"])
            received = sum(loop["received"] for loop in counters)
            handed = sum(loop["handedOver"] for loop in counters)
            return {
                "forwarded": best["packetsOut"] / best["seconds"], "cost": best["mediaMicrosecondsPerPacket"],
                "p99": best["latencyP99"], "generator": best["generatorCore"],
                "handedOver": handed / max(1, received - handed)}
        finally:
            server.stop()
            groups.remove()


def spread(values, digits=0):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(runs):
    lines = [
        "| rooms | loops | packets forwarded a second | **ratio** | µs of the loops for each | received on the wrong loop | "
        "latency p99, ms | generator, core |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        for threads in (1, 2):
            found = runs[shape, threads]
            ratios = [
                two["forwarded"] / one["forwarded"] for one, two in zip(runs[shape, 1], runs[shape, 2])]
            lines.append(
                f"| {shape} | {threads} | {spread([run['forwarded'] for run in found])} | "
                f"{'**' + spread(ratios, 2) + '**' if threads == 2 else ''} | "
                f"{spread([run['cost'] for run in found], 2)} | "
                f"{spread([100 * run['handedOver'] for run in found])} % | "
                f"{spread([run['p99'] for run in found], 1)} | "
                f"{spread([run['generator'] for run in found], 2)} |")
    return lines


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run loops", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="searches of each kind")
    parser.add_argument("--seconds", type=int, default=2, help="of each step of a search")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        return ["loops: start it as root, for network namespaces and control groups"]
    program = os.environ.get("BENCHMARKS_PROGRAM") or build(root, "benchmarks")
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    runs = {(shape, threads): [] for shape in SHAPES for threads in (1, 2)}
    try:
        for number in range(1, options.rounds + 1):
            for shape, threads in runs:
                print(f"loops: round {number} of {options.rounds}, {shape}, {threads}", file=sys.stderr, flush=True)
                runs[shape, threads].append(measure(threads, shape, program, options))
    except Failure as failure:
        return [str(failure)]
    load += ", after " + " ".join(open("/proc/loadavg").read().split()[:3])
    rows = [*facts, ("load average before", load)]
    text = "\n".join([
        "# Benchmarks: one loop and two", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows),
        "", "Made by `Benchmarks/run loops`.", "",
        f"Each loop's thread is held to {100 * QUOTA // PERIOD} % of a core by a control group (`cpu.max`, periods of "
        f"{PERIOD // 1000} ms). The server has core 0 in a network namespace of its own, the load generator core 1. A "
        "search raises the rate of all publishers until more than 0.1 % of the packets are missing, and then halves the "
        "distance; a line is the highest rate that passed. Packets have 1200 bytes, and every receiver checks number and "
        f"tag. At that rate the queues are full, as the latency shows. {options.rounds} searches of each kind; median (min to "
        "max).", "",
        *table(runs), ""])
    os.makedirs(options.output, exist_ok=True)
    page = os.path.join(options.output, f"{datetime.date.today().isoformat()}-loops.md")
    with open(page, "w") as file:
        file.write(text)
    print(f"wrote {page}", file=sys.stderr)
    return []

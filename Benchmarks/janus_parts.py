"""The parts of `run janus`: each function measures one round and returns numbers, by server."""
import tempfile

from counters import Instructions, SystemCalls, paced
from figures import Failure, run_json
from joined_namespaces import JoinedNamespaces
from kernel_cost import KernelCost
from room_servers import LOAD_CORE, SERVER_CORE, serving

# With more subscribers, or rooms, the default configuration loses packets.
DEFAULT_SUBSCRIBERS, DEFAULT_ROOMS = 200, 50
# Seconds of a load.
LIMIT = 500


class Bench:
    """The programs, and how long to measure."""

    def __init__(self, program, options):
        self.program = program
        self.seconds = options.seconds
        self.is_quick = options.quick
        self.kinds = options.servers.split(",")
        self.counts = sorted(int(count) for count in options.subscribers.split(","))
        self._kernel = None

    @property
    def kernel(self):
        self._kernel = self._kernel or KernelCost(SERVER_CORE, LOAD_CORE)
        return self._kernel

    def named(self, *kinds):
        return [kind for kind in kinds if kind in self.kinds]


def load_command(bench, joined, server, *options):
    return joined.inside(
        joined.load, bench.program, "room-load", *server.load_options(), "--process", str(server.process.pid),
        "--from", ",".join(joined.client_addresses), *map(str, options), core=LOAD_CORE)


def measured(kind, bench, *options):
    """One server's steps, with all clients new. A failure is a result too."""
    try:
        with serving(kind, bench.program) as (server, joined):
            return run_json(load_command(bench, joined, server, *options), LIMIT)
    except Failure as failure:
        return {"problem": str(failure), "steps": []}


def one_room(bench):
    results = {}
    for kind in bench.named("ours", "best", "default"):
        counts = [count for count in bench.counts if kind != "default" or count <= DEFAULT_SUBSCRIBERS]
        results[kind] = measured(
            kind, bench, "--subscribers", ",".join(map(str, counts)), "--seconds", bench.seconds,
            "--settle", 6, "--idle", 8)
    return results


def single(bench):
    """Single packets, beside the kernel and OpenSSL alone."""
    counts = [count for count in bench.counts if count > 1]
    results = {"kernel": [], "cut": []}
    for count in counts:
        with JoinedNamespaces(load_core=LOAD_CORE) as joined:
            results["kernel"].append(bench.kernel.send(joined, count, burst=1, rate=240, seconds=bench.seconds))
            results["cut"].append(
                bench.kernel.send(joined, count, burst=8, rate=30, seconds=bench.seconds, is_cut=True))
    for kind in bench.named("ours", "best"):
        results[kind] = measured(
            kind, bench, "--subscribers", ",".join(map(str, counts)), "--burst", 1, "--rate", 240,
            "--seconds", bench.seconds, "--warm-up", 480)
    return results


def rooms(bench):
    """Rooms with one publisher and 1, 2 and 3 subscribers, at the same number of packets."""
    results = {}
    for count, rate in ((10, 30), (50, 30)) if bench.is_quick else ((50, 30), (500, 3)):
        for kind in bench.named("ours", "best", "default"):
            if kind == "default" and count > DEFAULT_ROOMS:
                continue
            results.setdefault(kind, {})[str(count)] = measured(
                kind, bench, "--rooms", count, "--subscribers", "1,2,3", "--rate", rate, "--seconds", bench.seconds,
                "--idle", 3, "--warm-up", 64)
    return results


def audio(bench):
    """Rooms of three who all speak."""
    results = {}
    for count in (10,) if bench.is_quick else (50, 200):
        for kind in bench.named("ours", "best", "default"):
            if kind == "default" and count > DEFAULT_ROOMS:
                continue
            results.setdefault(kind, {})[str(count)] = measured(
                kind, bench, "--rooms", count, "--publishers", 3, "--subscribers", 2, "--audio", "--burst", 1,
                "--rate", 50, "--seconds", bench.seconds, "--warm-up", 50, "--idle", 3)
    return results


def latency(bench):
    """Rooms of three who all publish single packets, at rising rates. Ours begins with the rate at which Janus had used
    60 % of its core."""
    shape = ["--rooms", 20 if bench.is_quick else 200, "--publishers", 3, "--subscribers", 2, "--burst", 1,
             "--seconds", min(bench.seconds, 4), "--warm-up", 20]
    loads = "0.1,0.4" if bench.is_quick else "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8"
    results, rate = {}, 5
    for kind in bench.named("best", "ours"):
        results[kind] = measured(kind, bench, *shape, "--rate", rate, "--loads", loads)
        steps = results[kind]["steps"]
        if kind == "best" and steps:
            rate = min(steps, key=lambda step: abs(step["serverCore"] - 0.6))["rate"]
    return results


def last(bench):
    """From a publisher's first packet until the server's last packet of the burst, on the cable."""
    results = {}
    count = 100 if bench.is_quick else 400
    for kind in bench.named("ours", "best"):
        for burst in (1, 8):
            results.setdefault(kind, {})[str(burst)] = measured_last(kind, bench, count, burst)
    return results


def measured_last(kind, bench, count, burst):
    # More single packets, so that their time stands out from that of a silent server.
    rate = 40 if burst == 1 else 8
    try:
        # Watching costs the load's core only.
        with serving(kind, bench.program) as (server, joined), \
                bench.kernel.watching(joined, length=1200, burst=burst, rate=rate) as watched:
            result = run_json(
                load_command(
                    bench, joined, server, "--subscribers", count, "--burst", burst, "--rate", rate, "--seconds",
                    2 * bench.seconds, "--idle", 5, "--warm-up", 20 * burst), LIMIT)
    except Failure as failure:
        return {"problem": str(failure), "steps": []}
    return {**result, "bursts": watched.bursts, "unseen": watched.unseen}


def scaling_counts(bench):
    return (20, 100) if bench.is_quick else (20, 400, 1000)


def scaling(bench):
    """Processor time with many subscribers, at a rate that the load generator can check."""
    results = {}
    for kind in bench.named("ours", "best"):
        results[kind] = measured(
            kind, bench, "--subscribers", ",".join(map(str, scaling_counts(bench))), "--rate", 10, "--seconds",
            bench.seconds, "--idle", 3, "--warm-up", 160)
    return results


def calls(bench):
    """System calls, as the kernel's tracepoint counts them (perf stat)."""
    return {kind: counted(kind, bench, SystemCalls, "--rate", 10) for kind in bench.named("ours", "best")}


def instructions(bench):
    """Instructions of our server in user space (callgrind)."""
    return {"ours": counted("ours", bench, Instructions, "--rate", 1)} if "ours" in bench.kinds else {}


def counted(kind, bench, counter_class, *options):
    try:
        with tempfile.TemporaryDirectory(prefix="counts-") as folder, \
                serving(kind, counter_class.server(bench.program, folder)) as (server, joined):
            command = load_command(
                bench, joined, server, "--subscribers", ",".join(map(str, scaling_counts(bench))), "--seconds", 3,
                "--idle", 3, "--warm-up", 16, "--paced", *options)
            return paced(command, counter_class(server.process.pid, folder))
    except Failure as failure:
        return {"problem": str(failure), "steps": []}


PARTS = {
    "one-room": one_room, "single": single, "rooms": rooms, "audio": audio, "latency": latency, "last": last,
    "scaling": scaling, "calls": calls, "instructions": instructions,
}

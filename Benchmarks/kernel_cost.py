"""Builds and runs kernel-cost/kernel_cost.c: the kernel and OpenSSL without a server."""
import contextlib
import json
import os
import subprocess
import tempfile

from figures import Failure
from room_servers import finish

FIRST_PORT = 40_000
HERE = os.path.dirname(os.path.abspath(__file__))


class Watched:
    """Microseconds from the first packet of each burst until the last, and the packets that were not seen."""

    def __init__(self):
        self.bursts = []
        self.unseen = 0


class KernelCost:
    def __init__(self, server_core, load_core):
        self.server_core, self.load_core = server_core, load_core
        self.folder = tempfile.TemporaryDirectory(prefix="kernel-cost-")
        self.program = os.path.join(self.folder.name, "kernel_cost")
        source = os.path.join(HERE, "kernel-cost", "kernel_cost.c")
        if subprocess.run(["cc", "-O2", "-Wall", "-o", self.program, source, "-lcrypto"]).returncode != 0:
            raise Failure("kernel_cost.c does not build.")

    def send(self, joined, destinations, burst, rate, seconds, is_cut=False):
        """Processor time of encrypting and sending, to as many destinations, each with a socket that is read."""
        sink = self._start(joined, "sink", joined.load_address, FIRST_PORT, destinations)
        sent = subprocess.run(
            joined.inside(
                joined.server, self.program, "send", joined.load_address, *map(str, (
                    FIRST_PORT, destinations, 1200, burst, rate, seconds, int(is_cut))), core=self.server_core),
            capture_output=True, text=True, timeout=60 + seconds)
        output, _ = sink.communicate("")
        if sent.returncode != 0:
            raise Failure(f"kernel_cost: {sent.stderr.strip()[-300:]}")
        result = json.loads(sent.stdout)
        received = json.loads(output.splitlines()[-1])["received"]
        return {**result, "subscribers": destinations, "burst": burst, "missing": result["sent"] - received}

    @contextlib.contextmanager
    def watching(self, joined, length, burst, rate):
        """Gives `Watched`, which is filled at the end."""
        watched = Watched()
        # Bursts begin half an interval after the last at least.
        process = self._start(joined, "watch", "cable", joined.server_address, length, burst, 500_000 // rate)
        try:
            yield watched
            output, _ = process.communicate("", timeout=30)
        finally:
            if process.poll() is None:
                process.stdin.close()
                finish(process)
        lines = [json.loads(line) for line in output.splitlines()]
        watched.bursts = [line for line in lines if "microseconds" in line]
        watched.unseen = lines[-1]["unseen"]

    def _start(self, joined, *arguments):
        process = subprocess.Popen(
            joined.inside(joined.load, self.program, *map(str, arguments), core=self.load_core),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if process.stdout.readline().strip() != "ready":
            finish(process)
            raise Failure(f"kernel_cost {arguments[0]} did not start.")
        return process

"""Counts the work of a server between two moments that the load generator reports (room-load --paced)."""
import json
import os
import re
import signal
import subprocess
import time

from figures import Failure


class SystemCalls:
    """Of all threads of a process, by the tracepoint of the kernel's entry. Needs perf."""

    name = "system calls"

    def __init__(self, process, _):
        self.process = process
        self.perf = None

    @staticmethod
    def server(program, _):
        return [program]

    def begin(self):
        self.perf = subprocess.Popen(
            ["perf", "stat", "--field-separator", ";", "--event", "raw_syscalls:sys_enter", "--pid", str(self.process)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Until perf has opened the counters; the load waits.
        time.sleep(1)
        if self.perf.poll() is not None:
            raise Failure(f"perf does not count: {self.perf.stderr.read().strip()[-200:]}")

    def end(self):
        self.perf.send_signal(signal.SIGINT)
        _, text = self.perf.communicate(timeout=20)
        found = re.search(r"^(\d+);", text, re.MULTILINE)
        if found is None:
            raise Failure(f"perf does not count: {text.strip()[-200:]}")
        return int(found.group(1))


class Instructions:
    """Of all threads of a process in user space, counted by callgrind, which runs it on a processor of its own making."""

    name = "instructions"

    def __init__(self, process, folder):
        self.process, self.folder = process, folder

    @staticmethod
    def server(program, folder):
        # Debian's valgrind cannot read the debug information that Swift writes.
        stripped = os.path.join(folder, "benchmarks")
        subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
        return [
            "env", f"LD_LIBRARY_PATH={os.path.dirname(os.path.abspath(program))}", "valgrind", "--tool=callgrind",
            "--instr-atstart=no", f"--callgrind-out-file={os.path.join(folder, 'callgrind.out')}",
            f"--log-file={os.path.join(folder, 'log')}", stripped]

    def begin(self):
        self._control("--instr=on")

    def end(self):
        # The dump counts since instrumenting began; switching it off forgets the counts.
        before = set(os.listdir(self.folder))
        self._control("--dump")
        dumps = sorted(set(os.listdir(self.folder)) - before)
        total = 0
        for name in dumps:
            with open(os.path.join(self.folder, name), errors="replace") as file:
                total += sum(int(count) for count in re.findall(r"^totals: (\d+)", file.read(), re.MULTILINE))
        self._control("--instr=off")
        if total == 0:
            raise Failure("callgrind counted nothing.")
        return total

    def _control(self, command):
        done = subprocess.run(
            ["callgrind_control", command, str(self.process)], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failure(f"callgrind_control {command}: {(done.stdout + done.stderr).strip()[-200:]}")


def paced(command, counter):
    """The result of a load command, with `counts` for each step: the work while it sent and while it was silent, and the
    seconds of both, which are more than those of the packets."""
    load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    counts, started = [], 0
    try:
        for line in load.stdout:
            message = json.loads(line)
            if "steps" in message:
                for step in message["steps"]:
                    step["sendingSeconds"] = step["packetsIn"] / (message["burst"] * step["rate"])
                    of_step = [c for c in counts if c["subscribers"] == step["subscribers"]]
                    step["counts"] = {c["what"]: {"count": c["count"], "seconds": c["seconds"]} for c in of_step}
                return message
            what, moment = message["moment"].split()
            if moment == "begins":
                started = time.monotonic()
                counter.begin()
            else:
                count = counter.end()
                counts.append(
                    {"what": what, "subscribers": message["subscribers"], "count": count,
                     "seconds": time.monotonic() - started})
            load.stdin.write("\n")
            load.stdin.flush()
    finally:
        if load.poll() is None:
            load.kill()
        _, errors = load.communicate()
    raise Failure(errors.strip()[:300] or "the load generator ended early")

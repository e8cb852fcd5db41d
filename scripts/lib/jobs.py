"""Runs commands, one or several at a time, each with its output, its time and its CPU time."""
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

from lib.tally import COLOURS


@dataclass
class Job:
    name: str
    command: list
    # The job is killed after this many seconds.
    seconds: float
    # How its output names tests (tally.SWIFT or tally.UNITTEST); None for a command without tests.
    words: dict | None = None
    # Of the jobs that need the same thing, one runs at a time.
    needs: str | None = None


@dataclass
class Result:
    job: Job
    # None: the job took too long and was killed.
    code: int | None
    lines: list = field(default_factory=list)
    wall: float = 0
    # User and system time of the process and of the descendants that it waited for.
    cpu: float = 0


class Runner:
    """Runs jobs in `folder`. `end_all` kills those that run."""

    def __init__(self, folder):
        self.folder, self.running, self.lock, self.ended = folder, set(), threading.Lock(), False

    def run(self, job, show=None):
        """Runs one job to its end. `show` receives each line as it comes."""
        lines, killed, begin = [], threading.Event(), time.monotonic()
        process = subprocess.Popen(
            job.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True)
        with self.lock:
            self.running.add(process.pid)

        def kill():
            killed.set()
            self.kill(process.pid)

        timer = threading.Timer(max(1, job.seconds), kill)
        timer.start()
        if self.ended:
            self.kill(process.pid)
        try:
            for line in process.stdout:
                lines.append(COLOURS.sub("", line.rstrip("\n")))
                if show:
                    show(lines[-1])
            process.stdout.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
            with self.lock:
                self.running.discard(process.pid)
        code = None if killed.is_set() else process.returncode
        return Result(job, code, lines, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)

    def run_all(self, jobs, lanes):
        """Runs the jobs in order, `lanes` at a time. Yields each result as its job ends."""
        waiting, used, results, changed = list(jobs), set(), queue.SimpleQueue(), threading.Condition()

        def next_job():
            """The first job that may run now. None: there are no more."""
            with changed:
                while waiting and not self.ended:
                    for job in waiting:
                        if job.needs is None or job.needs not in used:
                            waiting.remove(job)
                            used.add(job.needs)
                            return job
                    changed.wait()
            return None

        def work():
            while job := next_job():
                try:
                    results.put(self.run(job))
                except OSError as error:
                    results.put(Result(job, 127, [str(error)]))
                with changed:
                    used.discard(job.needs)
                    changed.notify_all()

        for _ in range(lanes):
            threading.Thread(target=work, daemon=True).start()
        for _ in jobs:
            yield results.get()

    def end_all(self):
        self.ended = True
        with self.lock:
            running = list(self.running)
        for process in running:
            self.kill(process)

    @staticmethod
    def kill(process):
        # Each job leads a process group of its own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)

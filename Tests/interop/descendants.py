"""Ends the processes that a browser started, however it ends."""
import os
import shutil
import signal
import time


def own_processes(folder):
    """Ids of our descendants, and of what has our folder (which nobody else uses) in its command line."""
    parents, found = {}, set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat") as file:
                state, parent = file.read().rsplit(")", 1)[1].split()[:2]
            with open(f"/proc/{process}/cmdline", "rb") as file:
                if state != "Z" and folder.encode() in file.read():
                    found.add(int(process))
        except OSError:
            continue
        if state != "Z":
            parents[int(process)] = int(parent)
    def descends(process):
        while process in parents and parents[process] != os.getpid():
            process = parents[process]
        return process in parents
    return (found | {process for process in parents if descends(process)}) - {os.getpid()}


def end(browser, folder):
    """Ends the browser, and by its own id each process of it that is left; returns when none is."""
    started = own_processes(folder)
    if browser is not None:
        try:
            browser.quit()
        except Exception:  # a driver that died already
            pass
    deadline = time.monotonic() + 5
    while left := {process for process in started if os.path.exists(f"/proc/{process}")} & own_processes(folder):
        if time.monotonic() > deadline - 3:  # had two seconds to go by itself
            for process in left:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)

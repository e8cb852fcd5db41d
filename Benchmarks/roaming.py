"""How long frames stop when a client's network or the server fails: Chromium, aiortc and our programs, in turn.

The client publishes and watches a video. Another participant, whose network never fails, does the same. Each is in a network
namespace. Needs root, chromium, chromium-driver, python3-selenium, python3-aiortc, python3-wsproto and coturn.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from benchmark_program import build
from figures import ROOT, Failure, head, load_average, page_parser, row, say, write_page

sys.path.insert(0, os.path.join(ROOT, "Tests", "interop", "network"))

from calls import SECRET, SERVICE, publish, rendered_videos, serve, turn_server, view, watcher  # noqa: E402
from hosts import Broken, Network, ip  # noqa: E402
from room import PORT  # noqa: E402

CLIENTS = ("Chromium", "aiortc", "ours")
# Before the fault, and from its end to the end of the measurement.
SETTLED, AFTER = 4, 25
INTEROP = os.path.join(ROOT, "Tests", "interop")
RESTART = "ICE restart"


def cut(seconds):
    def fault(network, server, client, programs):
        client.set_cable(False)
        time.sleep(seconds)
        client.set_cable(True)
    return fault


def one_direction(seconds, towards_server):
    def fault(network, server, client, programs):
        receiver, sender = (server, client) if towards_server else (client, server)
        with receiver:
            ip("rule", "add", "preference", "10", "lookup", "local")
            ip("rule", "delete", "preference", "0", "lookup", "local")
            ip("rule", "add", "preference", "5", "iif", "eth0", "from", sender.address, "blackhole")
        time.sleep(seconds)
        with receiver:
            ip("rule", "delete", "preference", "5")
    return fault


def change_address(network, server, client, programs):
    client.change_address(client.address.rsplit(".", 1)[0] + ".77")


def restart_server(network, server, client, programs):
    programs["server"].kill()
    time.sleep(3)
    programs["server"] = start_server(server)


def restart_ice(network, server, client, programs):
    """The client restarts ICE of both sessions, although its network is fine."""
    programs["client"].send_signal(signal.SIGUSR1)


def nothing(network, server, client, programs):
    pass


# How long the fault lasts, and what it is.
FAULTS = {
    "none": (0, nothing),
    "TURN alone": (0, nothing),
    "3 s cut": (3, cut(3)),
    "10 s cut": (10, cut(10)),
    "40 s cut": (40, cut(40)),
    "10 s nothing towards the server": (10, one_direction(10, True)),
    "10 s nothing from the server": (10, one_direction(10, False)),
    "other address": (0, change_address),
    "server killed, back after 3 s": (3, restart_server),
    RESTART: (0, restart_ice),
}


def start_server(host, turn=None):
    flags, environment = ["--listen", f"0.0.0.0:{PORT}", "--open"], {}
    if turn:
        flags += ["--turn", f"turn:{turn}?transport=udp"]
        environment["CONNECTLIVE_TURN_SECRET"] = SECRET
    return serve(host, *flags, **environment)


def start_client(kind, host, server, seconds, relay, restarts):
    """Returns a process that restarts ICE at SIGUSR1, and a function that gives the client's own longest pause in seconds, or
    None if its frames ended."""
    address = f"{server.address}:{PORT}"
    if kind == "ours" and not restarts:
        policy = ("--ice-policy", "relay") if relay else ()
        publishing, viewing = publish(host, server, *policy), view(host, server, *policy)

        def finish():
            stopped = [program for program in (publishing, viewing) if program.process.poll() is not None]
            for program in (publishing, viewing):
                if program.process.poll() is None:
                    program.interrupt()
            return None if stopped else pauses(host)[0]
        return None, finish
    if kind == "ours":
        command = [os.environ["BENCHMARKS_PROGRAM"], "participant", "--server", f"ws://{address}", "--service-id", SERVICE,
                   "--service-secret", SECRET, "--room", "r", "--watch", "1", "--size", "320x240", "--fps", "15",
                   "--seconds", str(seconds)]
    elif kind == "Chromium":
        command = [sys.executable, os.path.join(INTEROP, "chromium.py"), "--page", f"http://{address}/?room=r&join=1",
                   "--seconds", "30", "--until-expected", "--expect-video-from-others", "1", "--expect-publishing", "5",
                   "--then-watch", str(seconds), f"--flag=--unsafely-treat-insecure-origin-as-secure=http://{address}"]
    else:
        command = [sys.executable, os.path.join(ROOT, "Benchmarks", "peers", "aiortc_participant.py"), "--server",
                   f"http://{address}", "--service-id", SERVICE, "--service-secret", SECRET, "--room", "r", "--seconds",
                   str(seconds)]
    with host:
        process = subprocess.Popen([*command, *(["--relay"] if relay else [])], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish():
        output, errors = process.communicate(timeout=seconds + 90)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise Broken(f"{kind} ended with {process.returncode}: {errors.strip()[-300:]}")
        report = json.loads(lines[-1])
        if kind == "ours":
            return report["longestPause"] if report.get("frames") else None
        if kind == "aiortc":
            return None if report.get("ended") or report.get("silent", 0) > 5 else report["longest"]
        if "watched" not in report:
            raise Broken(f"{kind}: {report['sentence']}")
        if restarts and not report["watched"]["hasRestarted"]:
            raise Broken("Chromium did not restart ICE.")
        return report["watched"]["longestPause"] if report["watched"]["framesDecoded"] else None
    return process, finish


def pauses(host):
    """The longest pause of each video that a viewer's report has, the longest-lived first."""
    return [video["longestGapMs"] / 1000 for video in rendered_videos(host)]


class Deliveries:
    """The longest time in which a host gets next to nothing, in seconds. It counts bytes, so it also sees what a report does not:
    a time after which other videos begin."""

    # Bytes in each interval, of a video of about 100 kbit/s.
    INTERVAL, LEAST = 0.25, 1000

    def __init__(self, hosts):
        self.hosts = hosts
        self.longest = {host.name: 0.0 for host in hosts}
        self.isOver = threading.Event()
        self.thread = threading.Thread(target=self._count)
        self.thread.start()

    def _count(self):
        before = {host.name: host.bytes_received() for host in self.hosts}
        since = dict.fromkeys(before, time.monotonic())
        while not self.isOver.wait(self.INTERVAL):
            for host in self.hosts:
                count, now = host.bytes_received(), time.monotonic()
                if count - before[host.name] >= self.LEAST:
                    since[host.name] = now
                before[host.name] = count
                self.longest[host.name] = max(self.longest[host.name], now - since[host.name])

    def end(self):
        self.isOver.set()
        self.thread.join()
        return self.longest


def measure(network, kind, name):
    lasts, fault = FAULTS[name]
    server, other, observer, client = (network.host(host) for host in ("server", "other", "observer", "client"))
    relay = name == "TURN alone"
    place = None
    if relay:
        host = network.host("turn")
        turn_server(host)
        place = f"{host.address}:3478"
        server.block_udp_from(client)
    programs = {"server": start_server(server, place)}
    publish(other, server)
    seen = watcher(server, "127.0.0.1")
    programs["client"], finish = start_client(
        kind, client, server, SETTLED + lasts + AFTER + 4, relay, fault is restart_ice)
    seen.wait_for_publisher(0, 60)
    observing = view(observer, server)
    observing.wait_for_line("and 1 more", 40)
    time.sleep(SETTLED)
    deliveries, begun = Deliveries([client, observer]), time.monotonic()
    fault(network, server, client, programs)
    while time.monotonic() < begun + lasts + AFTER:
        time.sleep(0.1)
    silent = deliveries.end()
    messages = [(when - begun, message) for when, message in seen.messages if when >= begun]
    left = [message for _, message in messages if message["type"] == "participantLeft"]
    # Another stream than before the fault: no report has the time between the two.
    back = next((after for after, message in messages if message["type"] == "streamPublished"
                 and message["stream"]["media"] == "video"), 0)
    own = finish()
    observing.interrupt()
    return {"own": own and max(own, silent[client.name]), "seen": max([*pauses(observer), silent[observer.name], back]),
            "left": len(left)}


def inside(options):
    os.environ["CONNECTLIVE"] = options.connectlive
    os.environ["BENCHMARKS_PROGRAM"] = options.benchmarks
    with tempfile.TemporaryDirectory(prefix="roaming-") as folder:
        network = Network(folder, dict(os.environ))
        try:
            print(json.dumps(measure(network, options.client, options.fault)))
        finally:
            network.close()


def main(arguments, facts):
    parser = page_parser("roaming", __doc__)
    parser.add_argument("--only", help="one fault")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        raise Failure("This benchmark needs root.")
    if options.only not in (None, *FAULTS):
        raise Failure(f"No fault has the name '{options.only}'. They are: {', '.join(FAULTS)}.")
    programs, cells = (build("connectlive"), build("benchmarks")), {}
    before = load_average()
    for name in FAULTS:
        if options.only in (None, name):
            for kind in CLIENTS:
                if name == RESTART and kind == "aiortc":
                    cells[name, kind] = {"cannot": True}
                    continue
                say(f"roaming: {name}, {kind}")
                done = subprocess.run(
                    ["unshare", "--net", sys.executable, __file__, "--connectlive", programs[0], "--benchmarks", programs[1],
                     "--client", kind, "--fault", name], capture_output=True, text=True, timeout=300)
                lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
                cells[name, kind] = json.loads(lines[-1]) if done.returncode == 0 and lines else None
                say(f"   {cells[name, kind] or done.stderr.strip()[-400:]}")
    write_page(options.output, "roaming", "networks and servers that fail", facts, page(cells), before)
    return []


def page(cells):
    """`own` is None if the client's frames ended; `left` counts participants that the others saw leave."""
    lines = [
        "A client publishes and watches a video, and so does another participant, whose network never fails. Each is in a "
        "network namespace of its own. *Sees* is the longest time without a frame at the client, and *is seen* at the "
        f"other one, in seconds; the fault is in them. Each fault begins {SETTLED} s after all videos move, and {AFTER} s "
        "are watched after it. A client that was seen to leave comes back as another participant, and *is seen* again when its video "
        "is announced. Ours is `connectlive publish` and `view`, Chromium is the room page, and aiortc an example "
        "client that neither resumes nor restarts ICE. An ICE restart is one of both sessions on a network that is fine: by "
        "`Room.restartIce()` in a program with our SDK, and by the room page, which is told that its connections are lost.", "",
        *head("fault", *(f"{kind}: sees" if index == 0 else "is seen" for kind in CLIENTS for index in (0, 1)),
              "seen to leave")]
    for name in dict.fromkeys(name for name, _ in cells):
        found = [cells[name, kind] for kind in CLIENTS]
        # The connection that would tell who leaves ends with the killed server.
        left = "all, as new ones" if FAULTS[name][1] is restart_server else ", ".join(
            kind for kind, cell in zip(CLIENTS, found) if cell and cell.get("left"))
        lines.append(row(name, *(text for cell in found for text in words(cell)), left or "nobody"))
    return lines


def words(cell):
    if cell is None:
        return "failed", "failed"
    if cell.get("cannot"):
        return "cannot", "cannot"
    own = "ended" if cell["own"] is None else f"{cell['own']:.1f}"
    return own, "ended" if cell["own"] is None else f"{cell['seen']:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for flag in ("--connectlive", "--benchmarks", "--client", "--fault"):
        parser.add_argument(flag, required=True)
    inside(parser.parse_args())

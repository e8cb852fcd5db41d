#!/usr/bin/python3
"""Network namespaces joined by links in user space: rates that change, a queue, delay, jitter and loss. Needs root.

`EmulatedLinks` makes the namespace `near` and one at the far end of each link, and runs this file as a program for each link,
which passes the packets on. Towards the far end, they share the link's rate and queue. Towards `near`, they are only delayed.
A link keeps a record of each packet towards its far end. Where the kernel shapes the link (`tc tbf`), this file only changes
its rate, delays the packets, and samples the queue."""
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from ctypes import CDLL, get_errno



def ends(number):
    """The addresses of a link's near and far end."""
    return f"10.201.{9 + number}.1", f"10.201.{9 + number}.2"


NEAR, FAR = ends(0)
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
SET_INTERFACE, TUN, NO_HEADER = 0x400454CA, 0x0001, 0x1000  # TUNSETIFF, IFF_TUN, IFF_NO_PI
# An IPv4 header without options, then that of UDP.
UDP_HEADERS = 28
REORDERED_BY = 0.02
SAMPLED_EACH = 0.05


class EmulatedLinks:
    """`settings` of each link: `rates`, pairs of seconds and kbit/s, from the first packet of media on; `queue` in bytes;
    `delay` and `jitter` in milliseconds; `loss` from 0 to 1; optionally `burst`, the mean length of losses in packets, and
    `reordered`, the share of packets that come 20 ms late, behind others; `tbf`, whether the kernel shapes the link; `seed`."""

    def __init__(self, settings):
        self.settings, self.processes = settings, []
        self.near = f"link-near-{os.getpid()}"
        self.fars = [f"link-far-{number}-{os.getpid()}" for number in range(len(settings))]

    def __enter__(self):
        try:
            for name in (self.near, *self.fars):
                subprocess.run(["ip", "netns", "add", name], check=True)
                subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            for number, (far, settings) in enumerate(zip(self.fars, self.settings)):
                self.processes.append(subprocess.Popen(
                    [sys.executable, __file__, self.near, far, str(number), json.dumps(settings)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            if any(process.stdout.readline() != "up\n" for process in self.processes):
                raise RuntimeError("An emulated link did not come up.")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        for name in (self.near, *self.fars):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)

    def inside(self, name, *command):
        """The command as it runs in a namespace."""
        return ["ip", "netns", "exec", name, *command]

    def end(self):
        """Ends the links. Returns the record of each: when media began by CLOCK_MONOTONIC, and its packets as
        [seconds at which it came, bytes, seconds at which it left the queue or null, [SSRC, timestamp, marker] of RTP].
        Packets of a link with `tbf` came when they left; its record has the samples of its queue as [seconds, milliseconds],
        and how many packets it dropped."""
        return [json.loads(process.communicate("\n")[0]) for process in self.processes]


class EmulatedLink(EmulatedLinks):
    """One link."""

    def __init__(self, settings):
        super().__init__([settings])
        self.far = self.fars[0]

    def end(self):
        return super().end()[0]


class Link:
    """One direction. Knows at once when a packet will leave the queue, because the rates are known."""

    def __init__(self, settings):
        self.rates = [(at, kilobits * 125) for at, kilobits in settings["rates"]]
        self.queue, self.loss, self.burst = settings["queue"], settings["loss"], settings.get("burst", 1)
        self.is_shaped = settings.get("tbf", False)
        self.reordered, self.is_losing = settings.get("reordered", 0), False
        self.delay, self.jitter = settings["delay"] / 1000, settings["jitter"] / 1000
        self.random = random.Random(settings["seed"])
        self.free = self.last = 0.0
        self.waiting = []

    def leaves(self, now, size):
        """When the packet has left the queue. None if the queue is full."""
        if self.is_shaped:
            return now
        self.waiting = [(at, waits) for at, waits in self.waiting if at > now]
        if sum(waits for _, waits in self.waiting) + size > self.queue:
            return None
        at, rest = max(now, self.free), size
        for index, (begin, rate) in enumerate(self.rates):
            end = self.rates[index + 1][0] if index + 1 < len(self.rates) else float("inf")
            if at >= end:
                continue
            carried = max(0.0, end - at) * rate if end != float("inf") else rest
            if carried >= rest and rate > 0:
                at += rest / rate
                break
            rest -= carried
            at = end
        self.free = at
        self.waiting.append((at, size))
        return at

    def loses(self):
        """The model of Gilbert: losses end with a chance, and begin so often that their share is the stated one."""
        if self.is_losing:
            self.is_losing = self.random.random() >= 1 / self.burst
        if not self.is_losing and self.loss > 0:
            self.is_losing = self.random.random() < self.loss / (self.burst * (1 - self.loss) + self.loss)
        return self.is_losing

    def arrives(self, left):
        """In order, as on the links of phones and on cables, but for packets that are reordered."""
        self.last = max(self.last, left + self.delay + self.random.uniform(0, self.jitter))
        return self.last + (REORDERED_BY if self.reordered and self.random.random() < self.reordered else 0)


class Shaper:
    """The kernel's token bucket at the near end of a link. Its thread changes the rate, and samples the queue."""

    def __init__(self, namespace, settings):
        self.namespace, self.rates, self.queue = namespace, settings["rates"], settings["queue"]
        self.samples, self.before, self.ended = [], 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.use("add", self.rates[0][1])

    def tc(self, *arguments):
        return subprocess.run(["tc", "-n", self.namespace, *arguments], check=True, capture_output=True, text=True).stdout

    def use(self, verb, rate):
        self.tc("qdisc", verb, "dev", "cable0", "root", "tbf", "rate", f"{rate}kbit", "burst", "5kb", "limit", str(self.queue))

    def state(self):
        return json.loads(self.tc("-s", "-j", "qdisc", "show", "dev", "cable0"))[0]

    def begin(self, origin):
        self.origin = origin
        self.thread.start()

    def run(self):
        later, rate = self.rates[1:], self.rates[0][1]
        self.before = self.state()["drops"]
        while not self.ended.wait(SAMPLED_EACH):
            moment = time.monotonic() - self.origin
            if later and moment >= later[0][0]:
                rate = later.pop(0)[1]
                self.use("change", rate)
            self.samples.append([round(moment, 3), round(self.state()["backlog"] / (rate * 0.125), 2)])

    def end(self):
        self.ended.set()
        if self.thread.ident is not None:
            self.thread.join()
        return {"queue": self.samples, "dropped": self.state()["drops"] - self.before}


def rtp(packet):
    """[SSRC, timestamp, marker] if it is RTP over UDP."""
    if len(packet) < UDP_HEADERS + 12 or packet[0] != 0x45 or packet[9] != socket.IPPROTO_UDP:
        return None
    first, second = packet[UDP_HEADERS], packet[UDP_HEADERS + 1]
    if first >> 6 != 2 or 192 <= second <= 223:
        return None
    _, timestamp, ssrc = struct.unpack_from("!HII", packet, UDP_HEADERS + 2)
    return [ssrc, timestamp, second >> 7]


def interface(name, device_name, own, other):
    """A TUN device in a namespace."""
    with open(f"/run/netns/{name}") as place:
        if CDLL(None, use_errno=True).setns(place.fileno(), NEW_NETWORK) != 0:
            raise OSError(get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, SET_INTERFACE, struct.pack("16sH22x", device_name.encode(), TUN | NO_HEADER))
    subprocess.run(["ip", "address", "add", own, "peer", other, "dev", device_name], check=True)
    subprocess.run(["ip", "link", "set", "dev", device_name, "up"], check=True)
    return device


def main():
    near_name, far_name, number, settings = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    near_address, far_address = ends(number)
    near = interface(near_name, f"cable{number}", near_address, far_address)
    far = interface(far_name, "cable", far_address, near_address)
    forward, back = Link(settings), settings["delay"] / 1000
    shaper = Shaper(near_name, settings) if forward.is_shaped else None
    started, origin, records, later, count = time.monotonic(), None, [], [], 0
    poll = select.poll()
    for watched in (near, far, sys.stdin.fileno()):
        poll.register(watched, select.POLLIN)
    print("up", flush=True)
    while True:
        wait = None if not later else max(0, (later[0][0] - time.monotonic()) * 1000)
        ready = {descriptor for descriptor, _ in poll.poll(wait)}
        if sys.stdin.fileno() in ready:
            break
        for source, target in ((near, far), (far, near)):
            while source in ready:
                try:
                    packet = os.read(source, 65536)
                except BlockingIOError:
                    break
                now, count = time.monotonic(), count + 1
                if source == far:
                    heapq.heappush(later, (now + back, count, near, packet))
                    continue
                media = rtp(packet)
                # What comes before media meets the first rate.
                if origin is None and media:
                    origin, forward.free, forward.waiting, forward.last = now, 0.0, [], 0.0
                    if shaper:
                        shaper.begin(origin)
                since = origin if origin is not None else started
                moment = now - since if origin is not None else min(0.0, now - started)
                left = forward.leaves(moment, len(packet)) if origin is not None else moment
                if origin is not None:
                    records.append([round(moment, 5), len(packet), left and round(left, 5), media])
                if left is None or origin is not None and forward.loses():
                    continue
                arrival = since + forward.arrives(left) if origin is not None else now + forward.delay
                heapq.heappush(later, (arrival, count, far, packet))
        now = time.monotonic()
        while later and later[0][0] <= now:
            _, _, target, packet = heapq.heappop(later)
            try:
                os.write(target, packet)
            except OSError:
                pass  # The device's queue is full, or its namespace ends.
    json.dump({"began": origin, "packets": records} | (shaper.end() if shaper else {}), sys.stdout)


if __name__ == "__main__":
    main()

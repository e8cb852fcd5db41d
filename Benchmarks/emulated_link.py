#!/usr/bin/python3
"""Two network namespaces joined by a link in user space: rates that change, a queue, delay, jitter and loss. Needs root.

`EmulatedLink` makes the namespaces `near` and `far`, and runs this file as a program, which passes the packets on. Towards
`far`, they share the link's rate and queue. Towards `near`, they are only delayed. The link keeps a record of each packet
towards `far`."""
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
import time
from ctypes import CDLL, get_errno

NEAR, FAR = "10.201.9.1", "10.201.9.2"
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
SET_INTERFACE, TUN, NO_HEADER = 0x400454CA, 0x0001, 0x1000  # TUNSETIFF, IFF_TUN, IFF_NO_PI
# An IPv4 header without options, then that of UDP.
UDP_HEADERS = 28


class EmulatedLink:
    """`settings`: `rates`, pairs of seconds and kbit/s, from the first packet of media on; `queue` in bytes; `delay` and
    `jitter` in milliseconds; `loss` from 0 to 1; `seed`."""

    def __init__(self, settings):
        self.settings = settings
        self.near, self.far = (f"link-{end}-{os.getpid()}" for end in ("near", "far"))

    def __enter__(self):
        try:
            for name in (self.near, self.far):
                subprocess.run(["ip", "netns", "add", name], check=True)
                subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
            self.process = subprocess.Popen(
                [sys.executable, __file__, self.near, self.far, json.dumps(self.settings)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            if self.process.stdout.readline() != "up\n":
                raise RuntimeError("The emulated link did not come up.")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if process := getattr(self, "process", None):
            process.kill()
            process.wait()
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)

    def inside(self, name, *command):
        """The command as it runs in a namespace."""
        return ["ip", "netns", "exec", name, *command]

    def end(self):
        """Ends the link. Returns its record: when media began by CLOCK_MONOTONIC, and its packets as
        [seconds at which it came, bytes, seconds at which it left the queue or null, [SSRC, timestamp, marker] of RTP]."""
        output, _ = self.process.communicate("\n")
        return json.loads(output)


class Link:
    """One direction. Knows at once when a packet will leave the queue, because the rates are known."""

    def __init__(self, settings):
        self.rates = [(at, kilobits * 125) for at, kilobits in settings["rates"]]
        self.queue, self.loss = settings["queue"], settings["loss"]
        self.delay, self.jitter = settings["delay"] / 1000, settings["jitter"] / 1000
        self.random = random.Random(settings["seed"])
        self.free = self.last = 0.0
        self.waiting = []

    def leaves(self, now, size):
        """When the packet has left the queue. None if the queue is full."""
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

    def arrives(self, left):
        """In order, as on the links of phones and on cables."""
        self.last = max(self.last, left + self.delay + self.random.uniform(0, self.jitter))
        return self.last


def rtp(packet):
    """[SSRC, timestamp, marker] if it is RTP over UDP."""
    if len(packet) < UDP_HEADERS + 12 or packet[0] != 0x45 or packet[9] != socket.IPPROTO_UDP:
        return None
    first, second = packet[UDP_HEADERS], packet[UDP_HEADERS + 1]
    if first >> 6 != 2 or 192 <= second <= 223:
        return None
    _, timestamp, ssrc = struct.unpack_from("!HII", packet, UDP_HEADERS + 2)
    return [ssrc, timestamp, second >> 7]


def interface(name, own, other):
    """A TUN device in a namespace."""
    with open(f"/run/netns/{name}") as place:
        if CDLL(None, use_errno=True).setns(place.fileno(), NEW_NETWORK) != 0:
            raise OSError(get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, SET_INTERFACE, struct.pack("16sH22x", b"cable", TUN | NO_HEADER))
    subprocess.run(["ip", "address", "add", own, "peer", other, "dev", "cable"], check=True)
    subprocess.run(["ip", "link", "set", "dev", "cable", "up"], check=True)
    return device


def main():
    near_name, far_name, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    near, far = interface(near_name, NEAR, FAR), interface(far_name, FAR, NEAR)
    forward, back = Link(settings), settings["delay"] / 1000
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
                since = origin if origin is not None else started
                moment = now - since if origin is not None else min(0.0, now - started)
                left = forward.leaves(moment, len(packet)) if origin is not None else moment
                if origin is not None:
                    records.append([round(moment, 5), len(packet), left and round(left, 5), media])
                if left is None or origin is not None and forward.random.random() < forward.loss:
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
    json.dump({"began": origin, "packets": records}, sys.stdout)


if __name__ == "__main__":
    main()

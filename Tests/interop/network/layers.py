"""A browser's video in temporal layers, and a viewer whose link does not carry all of them."""
import json
import os
import subprocess

import rtp_dump
from calls import serve, view
from hosts import expect, wait_for
from room import PORT

CHROMIUM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "chromium.py")
# The fake camera has 20 frames/s.
CAMERA_RATE = 20
HIGHEST_LAYER = 2


class Browser:
    """Chromium on the page of the room, until `finish`."""

    def __init__(self, host, place, codec, *arguments):
        self.name, self.end = f"Chromium on {host.name}", os.path.join(host.folder, "end")
        self.output = os.path.join(host.folder, "said")
        page = f"http://{place}:{PORT}/?room=r&join=1&size=480x360&codec={codec}"
        with host, open(self.output, "w", encoding="utf-8") as output:
            # It ends the browser and its driver when it is terminated.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "/usr/bin/python3", CHROMIUM, "--page", page, "--until-expected",
                 "--seconds", "60", "--then-read", self.end, *arguments],
                cwd=host.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        host.network.programs.append(self)

    def has_ended(self):
        return self.process.poll() is not None

    def said(self):
        with open(self.output, encoding="utf-8") as output:
            return output.read()

    def finish(self, videos=""):
        """Ends it when it has seen so many moving videos once more. Without a number, at once."""
        with open(self.end + ".new", "w", encoding="utf-8") as file:
            file.write(videos)
        os.rename(self.end + ".new", self.end)
        self.process.wait(60)
        report = json.loads(self.said().splitlines()[-1])
        expect(report["ok"], f"{self.name}: {report['sentence']}")

    def kill(self):
        if not self.has_ended():
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def pictures(packets):
    """The first packet of each picture, in order."""
    return list({packet.picture: packet for _, packet in reversed(packets)}.values())[::-1]


def groups(packets):
    """The temporal layers of the pictures from each picture of the base layer up to the next one."""
    found = []
    for picture in pictures(packets):
        if picture.layer == 0:
            found.append([])
        if found:
            found[-1].append(picture.layer)
    return found[:-1]


def expect_continuity(packets):
    """Returns how many packets follow the one before. The link's losses leave gaps in the sequence numbers."""
    pairs = [(before, packet) for (place, before), (next_place, packet) in zip(packets, packets[1:])
             if next_place == place + 1]
    for before, packet in pairs:
        # VP9 in flexible mode may leave picture ids out. It has no TL0PICIDX.
        if packet.base is not None:
            begins = packet.timestamp != before.timestamp
            expect(packet.picture == (before.picture + begins) % 0x8000, f"{packet} follows {before}: PictureID")
            rises = begins and packet.layer == 0
            expect(packet.base == (before.base + rises) % 0x100, f"{packet} follows {before}: TL0PICIDX")
    return len(pairs)


def expect_references(packets):
    """A picture on which others depend has arrived, or the link has lost it."""
    first, places = packets[0][1].picture, {}
    for place, packet in packets:
        places.setdefault((packet.picture - first) % 0x8000, []).append(place)
    for _, packet in packets:
        for picture in ((reference - first) % 0x8000 for reference in packet.references):
            if picture in places or picture > 0x4000:  # before the first one
                continue
            last_before = max(max(found) for number, found in places.items() if number < picture)
            first_after = min(min(found) for number, found in places.items() if number > picture)
            expect(first_after > last_before + 1, f"{packet} depends on a picture that was left out")


def expect_fewer_layers(network, codec, rate, *arguments):
    server, viewer = network.host("server"), network.host("viewer")
    viewer.narrow(rate)
    serve(server, "--listen", f"0.0.0.0:{PORT}", "--open")
    publishing = Browser(server, "127.0.0.1", codec, "--expect-publishing", "30", *arguments)
    # For a viewer with all of it, the publisher sends more than the other one's link carries.
    wide = view(server, server)
    wide.wait_for_pictures(CAMERA_RATE / 2, 60)
    dump = rtp_dump.Dump(os.path.join(viewer.folder, "dump"))
    watching = Browser(viewer, server.address, codec, "--expect-video-from-others", "1", "--rtp-dump", dump.path)

    def thinned():
        return [group for group in groups(rtp_dump.video(dump.packets())) if HIGHEST_LAYER not in group]

    wait_for(lambda: watching.has_ended() or len(thinned()) >= 30, 90, "30 groups without the highest layer")
    expect(not watching.has_ended(), f"{watching.name} ended: {watching.said()}")
    wide.wait_for_pictures(CAMERA_RATE / 2)
    watching.finish("1")
    publishing.finish()
    packets, requests = rtp_dump.video(dump.packets()), rtp_dump.keyframe_requests(dump.packets())
    found = groups(packets)
    expect(any(HIGHEST_LAYER in group for group in found), f"the browser sent no third layer: {found}")
    expect_references(packets)
    pairs = expect_continuity(packets)
    expect(pairs > len(packets) / 2, f"only {pairs} of {len(packets)} packets follow the one before")
    # The link may lose a picture for good.
    expect(requests <= 2, f"the viewer requested {requests} keyframes")
    return (f"{len(thinned())} of {len(found)} groups were thinned; {pairs} packets in order, "
            f"{requests} keyframes requested")


def a_narrow_viewer_of_a_browser_gets_fewer_temporal_layers_of_vp8(network):
    return expect_fewer_layers(network, "vp8", "300kbit", "--temporal-layers")


def a_narrow_viewer_of_a_browser_gets_fewer_temporal_layers_of_vp9(network):
    return expect_fewer_layers(network, "vp9", "180kbit")


BEHAVIOURS = [
    a_narrow_viewer_of_a_browser_gets_fewer_temporal_layers_of_vp8,
    a_narrow_viewer_of_a_browser_gets_fewer_temporal_layers_of_vp9,
]

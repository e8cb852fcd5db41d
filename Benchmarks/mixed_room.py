"""One room whose participants have links from 200 kbit/s to 20 Mbit/s: which layer each gets, how soon, and how whole.

Seven participants send and check recorded layers without a codec, two are applications with the SDK, and one is Chromium. Each
is behind an emulated link that carries so much towards it. Needs root, chromium, chromium-driver, python3-selenium and the
GStreamer elements of libav.
"""
import contextlib
import json
import os
import subprocess
import tempfile
import time

from benchmark_program import build
from chromium_links import KEY, PORT, link, running
from emulated_link import EmulatedLinks, ends
from figures import ROOT, Failure, head, load_average, page_parser, row, say, write_page

# Width, height and bit/s.
LAYERS = ((160, 90, 90_000), (320, 180, 300_000), (640, 360, 1_000_000))
# What it is, kbit/s towards it, videos that it watches, and the width of the best layer that the link carries for all of them.
# Nil where the participant chooses by the size of its tiles.
PARTICIPANTS = (
    ("packets", 200, 1, 160), ("packets", 300, 2, 160), ("packets", 600, 1, 320), ("packets", 1000, 2, 320),
    ("packets", 2000, 1, 640), ("packets", 5000, 3, 640), ("packets", 20000, 9, 640), ("SDK", 1500, 3, 320),
    ("SDK", 4000, 2, 640), ("Chromium", 8000, 9, None))
# When those without recorded layers start, when all begin to watch, and for how long they do.
LATER, SETTLED, WATCHED = 3, 14, 40


def record(folder, program):
    """The bundled clip with numbered frames, encoded once for each layer."""
    done = subprocess.run(
        [program, "record-layers", "--file", os.path.join(ROOT, "media", "bigbuckbunny.mp4"), "--folder", folder,
         "--layers", *(f"{width}x{height}:{rate}" for width, height, rate in LAYERS)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"The layers could not be recorded: {done.stderr[-300:]}")
    files = []
    for width, _, _ in LAYERS:
        name = os.path.join(folder, f"layer-{width}")
        done = subprocess.run(["gst-launch-1.0", "-q", "filesrc", f"location={name}.mkv", "!", "matroskademux", "!",
                               "avmux_ivf", "!", "filesink", f"location={name}.ivf"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"A layer could not be unpacked: {done.stderr[-300:]}")
        files.append(f"{name}.ivf")
    return files


def command(number, programs, layers):
    kind, _, watch, _ = PARTICIPANTS[number]
    server = f"{ends(number)[0]}:{PORT}"
    settled = SETTLED if kind == "packets" else SETTLED - LATER
    if kind == "Chromium":
        return [os.path.join(ROOT, "Benchmarks", "peers", "chromium_watcher.py"), "--page",
                f"http://{server}/?room=mixed&join=1&size=320x180", "--seconds", str(WATCHED)]
    return [programs["benchmarks"], "participant", "--server", f"ws://{server}", "--service-id",
            KEY["CONNECTLIVE_SERVICE_ID"], "--service-secret", KEY["CONNECTLIVE_SERVICE_SECRET"], "--room", "mixed",
            "--watch", str(watch), "--watch-after", str(settled), "--seconds", str(settled + WATCHED),
            *(["--layers", *layers] if kind == "packets" else [])]


def measure(programs, layers):
    """The reports of each participant on its videos, and the ids of those that send recorded layers."""
    settings = [link([(0, rate)], rate, delay=20) for _, rate, _, _ in PARTICIPANTS]
    with contextlib.ExitStack() as stack:
        between = stack.enter_context(EmulatedLinks(settings))
        server = stack.enter_context(running(
            between.inside(between.near, programs["connectlive"], "serve", "--listen", f"0.0.0.0:{PORT}", "--open"),
            env=os.environ | KEY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        for line in server.stdout:
            if "Serving rooms" in line:
                break
        started = []
        for number, (kind, *_) in enumerate(PARTICIPANTS):
            # The first streams are the recorded ones.
            if len(started) == sum(each[0] == "packets" for each in PARTICIPANTS):
                time.sleep(LATER)
            started.append(stack.enter_context(running(
                between.inside(between.fars[number], *command(number, programs, layers)), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)))
        reports, recorded = [], set()
        for (kind, rate, _, _), process in zip(PARTICIPANTS, started):
            output, errors = process.communicate(timeout=SETTLED + WATCHED + 60)
            if process.returncode != 0:
                raise Failure(f"{kind}, {rate} kbit/s: {errors.strip()[-300:]}")
            lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
            recorded |= {line["own"] for line in lines if "own" in line}
            reports.append([line for line in lines if "own" not in line])
    return reports, recorded


def figures(videos, recorded, best):
    """Over the videos that a participant has watched. `recorded` has the participants that send recorded layers."""
    layered = [video for video in videos if video.get("participant") in recorded]
    reached = [reach(video, best or best_of(video.get("view"))) for video in layered]
    return {
        "videos": len(videos), "frames": min((video["frames"] for video in layered), default=0) / WATCHED,
        "first": max((video["firstFrame"] - video["since"] for video in videos if video["firstFrame"]), default=None),
        "widths": sorted({video["sizes"][-1]["width"] if video["sizes"] else 0 for video in layered}),
        "reached": None if None in reached else max(reached, default=None),
        "freezes": sum(video.get("freezeCount", len(video.get("freezes", []))) for video in videos) * 60 / WATCHED
        / max(1, len(videos)),
        "missing": sum(video.get("missing", 0) for video in videos),
        "harmed": sum(video.get("harmed", 0) for video in videos), "seams": sum(video.get("seams", 0) for video in videos)}


def best_of(view):
    """The width of the layer for a view: the smallest one that covers it."""
    width, height = view or (0, 0)
    return next((layer[0] for layer in LAYERS if layer[0] >= width and layer[1] >= height), LAYERS[-1][0])


def bests(videos, recorded):
    """Of the tiles of recorded videos."""
    widths = {best_of(video.get("view")) for video in videos if video.get("participant") in recorded}
    return ", ".join(map(str, sorted(widths)))


def reach(video, width):
    """Seconds from the subscription until the video first had this width. None if it ended with another."""
    if not video["sizes"] or video["sizes"][-1]["width"] != width:
        return None
    return next(change["at"] for change in video["sizes"] if change["width"] == width) - video["since"]


def page(reports, recorded):
    lines = [
        "Everyone is in one room, and watches so many videos of others. *Best* is the width of the best layer that the link "
        f"carries for all of them, and *reached* the time from the subscription until the last of them had it. Chromium's link "
        "carries the layers that cover its tiles. Seven send "
        f"recorded layers of {', '.join(f'{width}x{height} at {rate // 1000} kbit/s' for width, height, rate in LAYERS)} "
        "of the bundled clip, two the test pattern at 160x90 and 10 frames/s, Chromium its own pattern at 320x180. Everyone "
        "also hears Chromium, which takes 86 kbit/s of each link with headers. Packets "
        "are checked byte by byte against the recording, and decoded frames by their bar codes: *seams* counts frames "
        "that a decoder could not use, or that went back.", "",
        *head("participant", "link, kbit/s", "videos", "best", "got", "reached, s", "first frame, s", "frames/s of a recorded video, least",
              "freezes a minute and video", "packets missing", "harmed", "seams")]
    for (kind, rate, _, best), videos in zip(PARTICIPANTS, reports):
        found = figures(videos, recorded, best)
        lines.append(row(
            kind, str(rate), str(found["videos"]), str(best or bests(videos, recorded)), ", ".join(map(str, found["widths"])),
            "never" if found["reached"] is None else f"{found['reached']:.1f}",
            "" if found["first"] is None else f"{found['first']:.1f}", f"{found['frames']:.1f}", f"{found['freezes']:.1f}",
            *(("", "", "") if kind == "Chromium" else (str(found[key]) for key in ("missing", "harmed", "seams")))))
    return lines


def main(arguments, facts):
    options = page_parser("mixed", __doc__).parse_args(arguments)
    if os.geteuid() != 0:
        raise Failure("This benchmark needs root.")
    programs, before = {name: build(name) for name in ("benchmarks", "connectlive")}, load_average()
    with tempfile.TemporaryDirectory(prefix="mixed-") as folder:
        say("mixed: recording the layers")
        layers = record(folder, programs["benchmarks"])
        say("mixed: ten participants")
        reports, recorded = measure(programs, layers)
    for (kind, rate, _, best), videos in zip(PARTICIPANTS, reports):
        say(f"   {kind}, {rate}: {json.dumps(figures(videos, recorded, best))}")
    write_page(options.output, "mixed", "one room, many links", facts, page(reports, recorded), before)
    return []

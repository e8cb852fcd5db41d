"""Chromium and our publisher on the very same links, in turn: estimate, delivered rate, queue, and frames without a gap.

Each publishes the same film into our room server through an emulated link; a viewer on the server's side watches. Needs
root, chromium, chromium-driver and python3-selenium.
"""
import contextlib
import json
import math
import os
import re
import subprocess
import tempfile

from benchmark_program import build
from emulated_link import FAR, SAMPLED_EACH, EmulatedLink
from figures import ROOT, Failure, head, load_average, page_parser, row, say, write_file, write_page
from time_plot import Panel, against_time

SIZE, RATE, MOST = "960x540", 25, 2_500_000
PORT = 7880
KEY = {"CONNECTLIVE_SERVICE_ID": "links", "CONNECTLIVE_SERVICE_SECRET": "links"}
FREEZE = 0.25
SENDERS = ("chromium", "ours")


def link(rates, nominal, delay=50, jitter=0, loss=0.0, queue=0.3, tbf=False):
    """`queue` in seconds of the nominal rate."""
    return {
        "rates": rates, "delay": delay, "jitter": jitter, "loss": loss, "queue": int(queue * nominal * 125), "tbf": tbf,
        "seed": 1}


def generated(name):
    with open(os.path.join(ROOT, "Benchmarks", "generated-links", f"{name}.txt")) as file:
        pairs = [line.split() for line in file if not line.startswith("#")]
    return [(float(at), int(rate)) for at, rate in pairs]


RFC_8867_5_1 = [(0, 1000), (40, 2500), (60, 600), (80, 1000)]
SCENARIOS = {
    "RFC 8867 5.1": (link(RFC_8867_5_1, 1000), 100),
    "RFC 8867 5.1, tc tbf": (link(RFC_8867_5_1, 1000, tbf=True), 100),
    "2 s without delivery": (link([(0, 2000), (20, 0), (22, 2000)], 2000), 40),
    "5 % random loss": (link([(0, 1500)], 1500, loss=0.05), 40),
    "3G, walking": (link(generated("3g-walking"), 900, delay=60, jitter=2, queue=0.6), 60),
    "LTE, driving": (link(generated("lte-driving"), 2500, delay=35, jitter=2, queue=0.6), 60),
    "LTE, standing": (link(generated("lte-standing"), 4000, delay=30, jitter=2, queue=0.6), 60),
    "5G, at its edge": (link(generated("5g-at-its-edge"), 8000, delay=20, jitter=2, queue=0.6), 60),
}
# As in links.py: distinct for colour-blind readers.
STYLES = {"chromium": "stroke='#d55e00' stroke-width='1.5'", "ours": "stroke='#0072b2' stroke-width='1.5'"}
LINK = "fill='#e3e3e3' stroke='#b5b5b5'"
# Of the plots, in seconds.
STEP = 0.5


def make_films(folder):
    """The bundled clip, as raw frames for Chromium and as a nearly lossless film for us."""
    source = os.path.join(ROOT, "media", "bigbuckbunny.mp4")
    films = {"chromium": os.path.join(folder, "film.y4m"), "ours": os.path.join(folder, "film.mkv")}
    width, height = SIZE.split("x")
    raw = ["filesrc", f"location={source}", "!", "qtdemux", "!", "h264parse", "!", "avdec_h264", "!", "videoconvert", "!",
           "videoscale", "!", f"video/x-raw,format=I420,width={width},height={height}", "!"]
    for command in (["y4menc", "!", "filesink", f"location={films['chromium']}"],
                    ["vp8enc", "end-usage=cq", "cq-level=4", "min-quantizer=2", "max-quantizer=8", "deadline=1", "!",
                     "matroskamux", "!", "filesink", f"location={films['ours']}"]):
        done = subprocess.run(["gst-launch-1.0", "-q", *raw, *command], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"The film could not be made: {done.stderr[-300:]}")
    return films


@contextlib.contextmanager
def running(command, **options):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def measure(sender, settings, seconds, films, programs):
    # Until media begins.
    watched = seconds + 8
    with EmulatedLink(settings) as between:
        serve = between.inside(between.far, programs["connectlive"], "serve", "--listen", f"{FAR}:{PORT}", "--open")
        key = os.environ | KEY
        with running(serve, env=key, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
            for line in server.stdout:
                if "Serving rooms" in line:
                    break
            view = between.inside(between.far, programs["connectlive"], "view", "--room", "links", "--no-window", "--server",
                                  f"ws://{FAR}:{PORT}")
            with running(view, env=key, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                if sender == "chromium":
                    command = [os.path.join(ROOT, "Benchmarks", "peers", "chromium_sender.py"), "--page",
                               f"http://{FAR}:{PORT}/?room=links&join=1&size={SIZE}", "--film", films[sender]]
                else:
                    command = [programs["benchmarks"], "send", "--file", films[sender], "--server", f"ws://{FAR}:{PORT}",
                               "--service-id", KEY["CONNECTLIVE_SERVICE_ID"], "--service-secret",
                               KEY["CONNECTLIVE_SERVICE_SECRET"]]
                command += ["--bitrate", str(MOST), "--seconds", str(watched)]
                done = subprocess.run(between.inside(between.near, *command), capture_output=True, text=True,
                                      timeout=watched + 60)
                record = between.end()
    if done.returncode != 0 or not record["began"]:
        raise Failure(f"{sender}: {done.stderr.strip()[-300:] or 'no media came'}")
    samples = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    estimates = [(sample["at"] - record["began"], sample["bitsPerSecond"] / 1000)
                 for sample in samples if sample.get("bitsPerSecond")]
    return figures(record, [point for point in estimates if 0 <= point[0] <= seconds], settings, seconds)


def carried(settings, begin, end, most=MOST / 1000):
    """Bytes that the link carries, counting no more than `most` kbit/s: those of the film."""
    rates, total = settings["rates"], 0.0
    for index, (at, rate) in enumerate(rates):
        until = rates[index + 1][0] if index + 1 < len(rates) else end
        total += max(0.0, min(until, end) - max(at, begin)) * min(rate, most) * 125
    return total


def figures(record, estimates, settings, seconds):
    packets = record["packets"]
    delivered = [(left, size, media) for _, size, left, media in packets if left is not None and left <= seconds]
    queue = record.get("queue") or [(came, (left - came) * 1000) for came, _, left, _ in packets if left is not None]
    waits = sorted(wait for came, wait in queue if came <= seconds)
    dropped = record.get("dropped", sum(left is None for _, _, left, _ in packets))
    # A frame counts when its last packet has come.
    ends = [left for left, _, media in delivered if media and media[2]]
    gaps = [after - before for before, after in zip(ends, ends[1:])]
    steps = [index * STEP for index in range(int(seconds / STEP))]
    return {
        "estimate": [next((rate for at, rate in reversed(estimates) if at < step + STEP), 0) for step in steps],
        "received": [sum(size for left, size, _ in delivered if step <= left < step + STEP) / 125 / STEP for step in steps],
        "queue": [max([wait for came, wait in queue if step <= came < step + STEP], default=0) for step in steps],
        "use": sum(size for _, size, _ in delivered) / carried(settings, 0, seconds),
        "queueMedian": waits[len(waits) // 2], "queueHigh": waits[int(len(waits) * 0.95)],
        "dropped": dropped / (len(packets) + record.get("dropped", 0)),
        "freezes": sum(gap > FREEZE for gap in gaps) * 60 / seconds,
    }


def page(found, folder):
    lines = [
        f"Both publish the same film ({SIZE}, {RATE} frames/s, VP8, one size, at most {MOST / 1e6:g} Mbit/s) into our room "
        "server, in turn, through the same emulated link: headless Chromium through the room page, ours as `benchmarks "
        "send`. The server's transport-wide feedback is the same. A viewer watches on the server's side. `emulated_link.py` "
        "carries the packets between two network namespaces, and records when each came and left the queue. Behind `tc tbf`, "
        f"the kernel holds them in its queue, which is sampled each {SAMPLED_EACH * 1000:.0f} ms.", "",
        "*Use* is what left the queue of what the link carried, up to the film's most. A *freeze* is a gap of more than "
        f"{FREEZE * 1000:.0f} ms between the ends of frames that left the queue.", "",
        *head("link", "", "Chromium", "ours", "ours / Chromium")]
    names = list(dict.fromkeys(name for name, _ in found))
    for name in names:
        for label, key, digits in (("use", "use", 2), ("queue, median, ms", "queueMedian", 0),
                                   ("queue, 95th percentile, ms", "queueHigh", 0), ("packets dropped", "dropped", 3),
                                   ("freezes a minute", "freezes", 1)):
            theirs, ours = found[name, "chromium"][key], found[name, "ours"][key]
            ratio = f"{ours / theirs:.2f}" if theirs else ""
            lines.append(row(name if key == "use" else "", label, f"{theirs:.{digits}f}", f"{ours:.{digits}f}", ratio))
    for name in names:
        short = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
        plot = write_file(folder, f"chromium-{short}.svg", drawn(name, found))
        lines += ["", f"## {name}", "", f"![Estimates, received rates and queues: {name}]({plot})"]
    return lines


def drawn(name, found):
    settings, seconds = SCENARIOS[name]
    link = [carried(settings, step * STEP, (step + 1) * STEP, math.inf) / 125 / STEP for step in range(int(seconds / STEP))]

    def lines(key):
        return [("Chromium" if sender == "chromium" else "ours", STYLES[sender], found[name, sender][key])
                for sender in SENDERS]

    # More than the film needs may go unused.
    most = min(max(link), 1.5 * MOST / 1000)
    return against_time(name, STEP, [
        Panel("estimate, kbit/s", 150, lines("estimate"), ("link", LINK, link), most=most),
        Panel("received, kbit/s", 150, lines("received"), ("link", LINK, link), most=most),
        Panel("queue, ms", 90, lines("queue"))])


def main(arguments, facts):
    parser = page_parser("chromium", __doc__)
    parser.add_argument("--only", help="one scenario")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        raise Failure("This benchmark needs root.")
    programs = {name: build(name) for name in ("benchmarks", "connectlive")}
    before, found = load_average(), {}
    with tempfile.TemporaryDirectory(prefix="links-") as folder:
        films = make_films(folder)
        for name, (settings, seconds) in SCENARIOS.items():
            if options.only in (None, name):
                for sender in SENDERS:
                    say(f"chromium: {name}, {sender}")
                    found[name, sender] = measure(sender, settings, seconds, films, programs)
                    say(json.dumps({key: value for key, value in found[name, sender].items() if not isinstance(value, list)}))
    write_page(options.output, "chromium", "publishing beside Chromium", facts, page(found, options.output), before)
    return []

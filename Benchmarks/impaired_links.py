"""Our publisher on links that are impaired in one way each, over real sockets: estimates beside libwebrtc's bands, use and queue.

The simulation checks the same bands on virtual time (docs/congestion-control.md). Needs root.
"""
import os
import tempfile

from benchmark_program import build
from chromium_links import FREEZE, MOST, STEP, link, make_films, measure
from figures import Failure, head, load_average, page_parser, row, say, write_page

# The link, for how many seconds, and the band of the estimate in kbit/s at a second, if libwebrtc has one.
LINKS = {
    "600 kbit/s, round trip 100 ms": (link([(0, 600)], 600), 20, (10, 450, 700)),
    "2 Mbit/s, round trip 50 ms": (link([(0, 2000)], 2000, delay=25), 32, (30, 1000, 2600)),
    "500 kbit/s, then 5 Mbit/s": (link([(0, 500), (5, 5000)], 1000), 20, (9, 1200, 5000)),
    "500 kbit/s, round trip 200 ms": (link([(0, 500)], 500, delay=100), 27, (25, 350, 550)),
    "800 kbit/s, round trip 200 ms": (link([(0, 800)], 800, delay=100), 22, (20, 600, 900)),
    "1 Mbit/s, round trip 300 ms": (link([(0, 1000)], 1000, delay=150), 30, None),
    "1 Mbit/s, 10 % random loss": (link([(0, 1000)], 1000, loss=0.1), 30, (25, 200, 1100)),
    "1 Mbit/s, 5 % loss in bursts of 4": (link([(0, 1000)], 1000, loss=0.05) | {"burst": 4}, 30, None),
    "1 Mbit/s, queue of 3 packets": (link([(0, 1000)], 1000) | {"queue": 3 * 1250}, 30, (25, 200, 1100)),
    "1 Mbit/s, jitter of 30 ms": (link([(0, 1000)], 1000, jitter=30), 30, None),
    "1 Mbit/s, 2 % reordered by 20 ms": (link([(0, 1000)], 1000) | {"reordered": 0.02}, 30, None),
    "2 Mbit/s, then 500 kbit/s, queue of 1 s": (link([(0, 2000), (15, 500)], 2000, queue=1), 30, None),
}


def page(found):
    lines = [
        f"`benchmarks send` publishes a film of at most {MOST / 1e6:g} Mbit/s through `emulated_link.py`. The band is "
        "libwebrtc's for that second, and the estimate is ours then. *Use* is what left the queue of what the link carried, "
        f"up to the film's most. A *freeze* is a gap of more than {FREEZE * 1000:.0f} ms between frames that left the queue.",
        "", *head("link", "band, kbit/s", "estimate, kbit/s", "use", "queue, median, ms", "queue, 95th percentile, ms",
                  "packets dropped", "freezes a minute")]
    for name, result in found.items():
        _, seconds, band = LINKS[name]
        at = band[0] if band else seconds - 2
        lines.append(row(name, f"{band[1]} to {band[2]} at {at} s" if band else "",
                         f"{result['estimate'][int(at / STEP)]:.0f}", f"{result['use']:.2f}", f"{result['queueMedian']:.0f}",
                         f"{result['queueHigh']:.0f}", f"{result['dropped']:.3f}", f"{result['freezes']:.1f}"))
    return lines


def main(arguments, facts):
    parser = page_parser("impairments", __doc__)
    parser.add_argument("--only", help="one link")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        raise Failure("This benchmark needs root.")
    programs = {name: build(name) for name in ("benchmarks", "connectlive")}
    before, found = load_average(), {}
    with tempfile.TemporaryDirectory(prefix="impaired-") as folder:
        films = make_films(folder)
        for name, (settings, seconds, _) in LINKS.items():
            if options.only in (None, name):
                say(f"impairments: {name}")
                found[name] = measure("ours", settings, seconds, films, programs)
    write_page(options.output, "impairments", "impaired links", facts, page(found), before)
    return []

"""Plots simulated calls against time: estimates, rates, queues and losses on links that change.

The calls are the scenarios of Tests/CongestionControlTests, on virtual time, so the same commit makes the same plots on each
machine.
"""
import json
import os
import re
import subprocess
import tempfile

from figures import ROOT, Failure, head, page_parser, row, say, write_file, write_page
from time_plot import Panel, against_time, trade_offs

LINK = "fill='#e3e3e3' stroke='#b5b5b5'"
# Distinct for colour-blind readers (Okabe and Ito).
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
SHADE = "#555"
USE, QUEUE = "use of the link up to 10 Mbit/s", "queue, 95th percentile"
OWN, PLAIN = "ours", "plain GoogCC"


def line(color, width=1.5, dash=""):
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return f"stroke='{color}' stroke-width='{width}'{dashes}"


def calls(test_options):
    command = ["swift", "test", *test_options, "--filter", "^CongestionControlTests.LinkSeries/"]
    with tempfile.NamedTemporaryFile("r", prefix="links-", suffix=".json") as series:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT,
                              env={**os.environ, "CONNECTLIVE_LINK_SERIES": series.name})
        found = [json.loads(text) for text in series]
    if done.returncode != 0 or not found:
        raise Failure(f"The scenarios did not run: {done.stdout.strip()[-300:]} {done.stderr.strip()[-300:]}")
    return sorted(found, key=lambda call: (order(call["name"]), call["name"], call["plain"], call["direction"] == "back"))


def order(name):
    """Of the page: GoogCC's own test, RFC 8867, the outage, links of phones."""
    kinds = ("unit:", "RFC 8867", "2000 kbit/s, nothing")
    return next((index for index, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))


def title(call):
    if not any(other != call["direction"] for other in call["directions"]):
        return call["name"].removeprefix("unit: ")
    return f"{call['name']} ({call['direction']})"


def short(call):
    """For the name of a file."""
    name = call["name"]
    if name.startswith("RFC 8867"):
        section = name.split()[2].rstrip(":").replace(".", "-")
        queue = re.search(r"a queue of (\d+)", name)
        parts = ["rfc8867", section, *([f"{queue[1]}ms"] if queue else [])]
        return "-".join([*parts, *([call["direction"]] if len(call["directions"]) > 1 else [])])
    if name.startswith("unit:"):
        return "steps"
    if name.startswith("2000 kbit/s, nothing"):
        return "outage"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def plot(call, plain=None):
    """`plain` is the same call with plain GoogCC."""
    flows = call["flows"]
    if len(flows) == 1:
        lines = [("sent", line(COLORS[1], 1), flows[0]["sent"]), ("received", line(COLORS[2]), flows[0]["received"]),
                 ("estimate", line(COLORS[0], 2), flows[0]["estimate"])]
    else:
        lines = [(f"flow {index + 1}", line(color, 1.2), flow["received"])
                 for index, (flow, color) in enumerate(zip(flows, COLORS))]
        lines += [("" if index else "estimates", line(color if index else COLORS[0], 1, "2 2"), flow["estimate"])
                  for index, (flow, color) in enumerate(zip(flows, COLORS)) if len(flows) <= 2]
    if plain:
        lines.insert(0, (PLAIN, line(COLORS[3], 1.5), plain["flows"][0]["estimate"]))
    if any(call["tcp"]):
        lines.append(("TCP", line(SHADE, 1, "5 2"), call["tcp"]))
    # An exploration that measured too much, or an unused link, would make the rest small.
    highest = max(max(values) for _, _, values in lines)
    label = "rate, kbit/s" if len(flows) == 1 else "received, kbit/s"
    rates = Panel(label, 190, lines, ("link", LINK, call["link"]),
                  most=min(max(max(call["link"]), highest), 1.5 * highest))
    def both(key):
        own = ("", line(SHADE, 1.2), call[key])
        return [("", line(COLORS[3], 1), plain[key]), own] if plain else [own]

    return against_time(title(call), call["step"], [
        rates, Panel("queue, ms", 80, both("queue")), Panel("loss, %", 50, both("loss"))])


def table(shown):
    lines = head("call", "value", "measured", "goal")
    for call in shown:
        if call["direction"] == "back":
            continue
        for index, value in enumerate(call["values"]):
            goal = value["goal"]
            words = "" if goal is None else f"{goal[0]:g} to {goal[1]:g}, " + (
                "met" if goal[0] <= value["value"] <= goal[1] else "missed")
            measured = f"{value['value']:.0f}" if value["value"] >= 10 else f"{value['value']:.2f}"
            lines.append(row("" if index else call["name"].removeprefix("unit: "), value["name"], measured, words))
    return lines


def kind(call):
    return call["name"].rpartition(", ")[0]


def values(call):
    return {value["name"]: value["value"] for value in call["values"]}


def by_link(phones):
    """The calls of each kind of link, by the control."""
    groups = {}
    for call in phones:
        controls = groups.setdefault(kind(call), {OWN: [], PLAIN: []})
        controls[PLAIN if call["plain"] else OWN].append(values(call))
    return groups


def trade_off(phones):
    panels = []
    for name, controls in by_link(phones).items():
        panels.append((name, [(label, color, [(found[QUEUE], found[USE]) for found in controls[label]])
                              for label, color in ((OWN, COLORS[0]), (PLAIN, COLORS[3]))]))
    return trade_offs("queue, 95th percentile, ms", "use of the link", panels, ("goal", 0.85))


def comparison(phones):
    """A row for each value, as means over the seeds."""
    lines = head("link", "mean of", OWN, PLAIN)
    for name, controls in by_link(phones).items():
        for index, value in enumerate(controls[OWN][0]):
            means = [sum(found[value] for found in controls[label]) / len(controls[label]) for label in (OWN, PLAIN)]
            lines.append(row("" if index else name, value, *(f"{mean:.0f}" if mean >= 10 else f"{mean:.2f}"
                                                            for mean in means)))
    return lines


def main(arguments, facts):
    parser = page_parser("links", __doc__)
    parser.add_argument("--built", action="store_true", help="run the tests as they are built")
    options = parser.parse_args(arguments)
    say("links: running the scenarios")
    every = calls(["--skip-build"] if options.built else [])
    for call in every:
        call["directions"] = [other["direction"] for other in every if other["name"] == call["name"]]
    phones = [call for call in every if order(call["name"]) == 3]
    others = [call for call in every if call not in phones]
    first = phones[0]["name"].rpartition(" ")[2]
    shown = [(call, None) for call in others] + [
        (call, next(other for other in phones if other["plain"] and other["name"] == call["name"]))
        for call in phones if not call["plain"] and call["name"].endswith(f"seed {first}")]
    lines = [
        "Grey is the rate of the link. Below it are the queue of the bottleneck (the longest wait in each of 200 intervals) "
        "and the loss. *Sent* counts probes and padding too. On links of phones, plain GoogCC is drawn beside ours. "
        "[congestion-control.md](../../docs/congestion-control.md) describes the calls. Their values are below.", ""]
    for call, plain in shown:
        name = write_file(options.output, f"links-{short(call)}.svg", plot(call, plain))
        lines += [f"![{title(call)}]({name})", ""]
    name = write_file(options.output, "links-phones.svg", trade_off(phones))
    seeds = len({call["name"] for call in phones}) // len(by_link(phones))
    lines += [
        "## Ours and plain GoogCC on links of phones", f"The generator of these links is `CellularLink`. The constants of "
        f"the control were chosen on other seeds than these {seeds}, from {first} on. Plain GoogCC is our control without its "
        "[differences from libwebrtc](../../docs/congestion-control.md#differences-from-libwebrtc).", "",
        *comparison(phones), "",
        "Up and to the left is better. A small point is a call, a large one the median. The line joins the calls of both "
        "controls that no other one exceeds in use with a shorter queue (Pareto).", "",
        f"![Use against queue]({name})", "", "## Values", *table(others)]
    keep = ("made by", "date", "commit")
    write_page(options.output, "links", "simulated links", [fact for fact in facts if fact[0] in keep], lines)
    return []

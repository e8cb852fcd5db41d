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
from time_plot import Panel, against_time, scatter

LINK = "fill='#e3e3e3' stroke='#b5b5b5'"
# Distinct for colour-blind readers (Okabe and Ito).
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
SHADE = "#555"
USE, QUEUE = "use of the link up to 10 Mbit/s", "queue, 95th percentile"


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
    return sorted(found, key=lambda call: (order(call["name"]), call["name"], call["direction"] == "back"))


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


def plot(call):
    flows = call["flows"]
    if len(flows) == 1:
        lines = [("sent", line(COLORS[1], 1), flows[0]["sent"]), ("received", line(COLORS[2]), flows[0]["received"]),
                 ("estimate", line(COLORS[0], 2), flows[0]["estimate"])]
    else:
        lines = [(f"flow {index + 1}", line(color, 1.2), flow["received"])
                 for index, (flow, color) in enumerate(zip(flows, COLORS))]
        lines += [("" if index else "estimates", line(color if index else COLORS[0], 1, "2 2"), flow["estimate"])
                  for index, (flow, color) in enumerate(zip(flows, COLORS)) if len(flows) <= 2]
    if any(call["tcp"]):
        lines.append(("TCP", line(SHADE, 1, "5 2"), call["tcp"]))
    # An exploration that measured too much, or an unused link, would make the rest small.
    highest = max(max(values) for _, _, values in lines)
    label = "rate, kbit/s" if len(flows) == 1 else "received, kbit/s"
    rates = Panel(label, 190, lines, ("link", LINK, call["link"]),
                  most=min(max(max(call["link"]), highest), 1.5 * highest))
    return against_time(title(call), call["step"], [
        rates, Panel("queue, ms", 80, [("", line(SHADE, 1.2), call["queue"])]),
        Panel("loss, %", 50, [("", line(SHADE, 1.2), call["loss"])])])


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


def trade_off(phones):
    groups = {}
    for call in phones:
        values = {value["name"]: value["value"] for value in call["values"]}
        groups.setdefault(call["name"].rpartition(", ")[0], []).append((values[QUEUE], values[USE]))
    most = max(x for points in groups.values() for x, _ in points)
    return scatter(
        "Links of phones: ten of each, and their medians", "queue, 95th percentile, ms", "use of the link",
        [(name, color, points) for color, (name, points) in zip(COLORS, groups.items())], most, 1,
        ("goal", 0.85))


def main(arguments, facts):
    parser = page_parser("links", __doc__)
    parser.add_argument("--built", action="store_true", help="run the tests as they are built")
    options = parser.parse_args(arguments)
    say("links: running the scenarios")
    every = calls(["--skip-build"] if options.built else [])
    for call in every:
        call["directions"] = [other["direction"] for other in every if other["name"] == call["name"]]
    phones = [call for call in every if order(call["name"]) == 3]
    shown = [call for call in every if call not in phones or call["name"].endswith("seed 1")]
    lines = [
        "Grey is the rate of the link. Below it are the queue of the bottleneck (the longest wait in each of 200 intervals) "
        "and the loss. *Sent* counts probes and padding too. [congestion-control.md](../../docs/congestion-control.md) "
        "describes the calls. Their values are below.", ""]
    for call in shown:
        name = write_file(options.output, f"links-{short(call)}.svg", plot(call))
        lines += [f"![{title(call)}]({name})", ""]
    name = write_file(options.output, "links-phones.svg", trade_off(phones))
    lines += ["## Use against queue", "Up and to the left is better. The generator of these links is `CellularLink`; seeds "
              "1 to 10.", "", f"![Use against queue]({name})", "", "## Values", *table(shown)]
    keep = ("made by", "date", "commit")
    write_page(options.output, "links", "simulated links", [fact for fact in facts if fact[0] in keep], lines)
    return []

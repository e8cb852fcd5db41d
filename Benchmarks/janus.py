"""The room server beside Debian's Janus, with one load generator for both.

Each server runs in a network namespace of its own, alone on core 0. The load generator runs on core 1, in a namespace
joined by a virtual cable. Needs root, two cores, and Debian's package janus; `calls` also needs linux-perf, and
`instructions` valgrind.

Each part can run alone: its numbers go to out/bench-janus/PART.json, and the page is made from all that is there.
"""
import datetime
import json
import os
import signal
import sys

from benchmark_program import build
from figures import RESULTS, ROOT, Failure, load_average, page_parser, say, write_page
from janus_page import page
from janus_parts import PARTS, Bench
from joined_namespaces import check_machine
from room_servers import janus_version

# Rounds can differ in these, so each keeps its own.
ROUND_FACTS = ("made by", "commit")


def parse(arguments):
    parser = page_parser("janus", __doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)} (all); none: only the page")
    parser.add_argument("--rounds", type=int, default=1, help="of each part (1)")
    parser.add_argument("--add", action="store_true", help="keep the rounds that have been measured before")
    parser.add_argument("--servers", default="ours,best,default", help="some of ours, best, default (all)")
    parser.add_argument("--seconds", type=int, default=5, help="of each step (5)")
    parser.add_argument("--subscribers", default="1,20,100,200,400", help="of one room, one step after the other")
    parser.add_argument("--quick", action="store_true", help="2 seconds, few rooms and subscribers, into out/bench-janus-quick")
    parser.set_defaults(output=None)
    options = parser.parse_args(arguments)
    options.numbers = os.path.join(ROOT, "out", "bench-janus-quick" if options.quick else "bench-janus")
    options.output = options.output or (options.numbers if options.quick else RESULTS)
    if options.quick:
        options.seconds, options.subscribers = 2, "1,20,100"
    options.parts = [] if options.parts == "none" else options.parts.split(",")
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    return options


def numbers_of(name, folder):
    path = os.path.join(folder, f"{name}.json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def save(name, folder, content):
    with open(os.path.join(folder, f"{name}.json"), "w") as file:
        json.dump(content, file, indent=1)


def steps_in(results):
    """All steps of a server, which are in a list or in a table by shape."""
    shapes = [results] if "steps" in results else results.values()
    return [step for shape in shapes for step in shape["steps"]]


def problems_in(name, results):
    """Our server loses and changes nothing, except above the load it can bear."""
    ours = steps_in(results["ours"]) if "ours" in results else []
    found = [f"{name}: our server lost or changed {wrong} packets at {step['subscribers']} subscribers."
             for step in ours if (wrong := step["missing"] + step["wrong"] + step["refused"]) and step["serverCore"] < 0.9]
    shapes = [results.get("ours", {})]
    shapes += [shape for shape in shapes[0].values() if isinstance(shape, dict)]
    return found + [f"{name}: ours failed: {shape['problem']}" for shape in shapes if "problem" in shape]


def measure(name, bench, options, facts):
    """Measures the rounds of a part, saves each, and returns the problems."""
    content = numbers_of(name, options.numbers) if options.add else None
    content, problems = content or {"rounds": []}, []
    for number in range(1, options.rounds + 1):
        say(f"janus: {name}, round {number} of {options.rounds}")
        now = datetime.datetime.now(datetime.timezone.utc)
        load = load_average()
        results = PARTS[name](bench)
        content["rounds"].append({
            "facts": {**{key: facts[key] for key in ROUND_FACTS}, "date": now.strftime("%Y-%m-%d %H:%M UTC"), "load": load},
            "results": results})
        save(name, options.numbers, content)
        took = (datetime.datetime.now(datetime.timezone.utc) - now).seconds
        say(f"janus: {name}, round {number} took {took} s")
        problems += problems_in(name, results)
    return problems


def main(arguments, facts):
    options = parse(arguments)
    # Servers and namespaces do not outlive this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    check_machine()
    version = janus_version()
    os.makedirs(options.numbers, exist_ok=True)
    problems = []
    if options.parts:
        bench = Bench(build("benchmarks"), options)
        for name in options.parts:
            problems += measure(name, bench, options, dict(facts))
    contents = {name: content for name in PARTS if (content := numbers_of(name, options.numbers))}
    if not contents:
        raise Failure("Nothing has been measured.")
    shown = [fact for fact in facts if fact[0] not in ROUND_FACTS] + [("Janus", version)]
    write_page(options.output, "janus", "rooms beside Janus", shown, page(contents, options.output))
    return problems

"""The room server beside Debian's Janus, with one load generator for both.

Each server runs in a network namespace of its own, alone on core 0. The load generator runs on core 1, in a namespace
joined by a virtual cable. Needs root, two cores, and Debian's package janus; `calls` also needs linux-perf, and
`instructions` valgrind. BENCHMARKS_PROGRAM names a built `benchmarks`; otherwise it is built in release.

Each part can run alone: its numbers go to out/bench-janus/PART.json, and the page is made from all that is there.
"""
import argparse
import datetime
import json
import os
import shutil
import signal
import sys

from benchmark_program import path as build
from janus_page import page
from janus_parts import PARTS, Bench
from room_servers import janus_version


def parse(arguments):
    parser = argparse.ArgumentParser(prog="run janus", description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)} (all); none: only the page")
    parser.add_argument("--rounds", type=int, default=1, help="of each part (1)")
    parser.add_argument("--add", action="store_true", help="keep the rounds that have been measured before")
    parser.add_argument("--servers", default="ours,best,default", help="some of ours, best, default (all)")
    parser.add_argument("--seconds", type=int, default=5, help="of each step (5)")
    parser.add_argument("--subscribers", default="1,20,100,200,400", help="of one room, one step after the other")
    parser.add_argument("--quick", action="store_true", help="2 seconds, few rooms and subscribers, into out/bench-janus-quick")
    parser.add_argument("--output", help="folder of the page (Benchmarks/results; with --quick, that of the numbers)")
    options = parser.parse_args(arguments)
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


def say(text):
    print(f"janus: {text}", file=sys.stderr, flush=True)


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


def measure(name, bench, options, facts, folder):
    """Measures the rounds of a part, saves each, and returns the problems."""
    content = numbers_of(name, folder) if options.add else None
    content, problems = content or {"rounds": []}, []
    for number in range(1, options.rounds + 1):
        say(f"{name}, round {number} of {options.rounds}")
        now = datetime.datetime.now(datetime.timezone.utc)
        load = " ".join(open("/proc/loadavg").read().split()[:3])
        results = PARTS[name](bench)
        content["rounds"].append({
            "facts": {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": facts["commit"], "load": load},
            "results": results})
        save(name, folder, content)
        took = (datetime.datetime.now(datetime.timezone.utc) - now).seconds
        say(f"{name}, round {number} took {took} s")
        problems += problems_in(name, results)
    return problems


def main(arguments, root, facts):
    options = parse(arguments)
    # Servers and namespaces do not outlive this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    version = janus_version()
    if version is None or shutil.which("ip") is None or os.geteuid() != 0 or os.cpu_count() < 2:
        return ["janus: needs root, two cores, ip, and Debian's janus: apt-get install --no-install-recommends janus."]
    folder = os.path.join(root, "out", "bench-janus-quick" if options.quick else "bench-janus")
    os.makedirs(folder, exist_ok=True)
    problems = []
    if options.parts:
        program = os.environ.get("BENCHMARKS_PROGRAM") or build(root, "benchmarks")
        if program is None:
            return ["janus: the benchmarks do not build."]
        bench = Bench(program, options)
        for name in options.parts:
            problems += measure(name, bench, options, dict(facts), folder)
    contents = {name: content for name in PARTS if (content := numbers_of(name, folder))}
    if not contents:
        return problems + ["janus: nothing has been measured."]
    output = options.output or (folder if options.quick else os.path.join(root, "Benchmarks", "results"))
    os.makedirs(output, exist_ok=True)
    today = datetime.date.today().isoformat()
    shown = [fact for fact in facts if fact[0] != "commit"] + [("Janus", version)]
    text = page(contents, shown, output, f"{today}-")
    file_name = os.path.join(output, f"{today}-janus.md")
    with open(file_name, "w") as file:
        file.write(text)
    say(f"wrote {file_name}")
    return problems

"""The pipelines that ship and need no device: rate and latency as planned, beside those that are measured.

Each runs by itself, with the test pattern in place of cameras, and publishes into a room of its own.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile

import benchmark_program

FILES = ["test-pattern-latency.yaml", "webcam-to-room.yaml", "two-cameras-to-room.yaml"]
# A value that differs from the plan by more than half is marked, unless it is within this many milliseconds.
SLACK_MS = 15


def start_server(program, folder):
    server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={**os.environ, "XDG_RUNTIME_DIR": folder})
    for line in server.stdout:
        if "In a browser" in line:
            return server
    raise SystemExit("The server did not start.")


def run(program, root, name, seconds, folder):
    path = os.path.join(root, "pipelines", name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    values = {"source": "test-pattern", "second-source": "test-pattern", "camera": "", "second-camera": "",
              "room": name.partition(".")[0]}
    settings = [word for key, value in values.items() if "${" + key in text for word in ("--set", f"{key}={value}")]
    command = [program, "run", path, *settings, "--seconds", str(seconds), "--report", "report.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds + 60,
                          env={**os.environ, "XDG_RUNTIME_DIR": folder})
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr.strip()[-300:]}")
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        return json.load(file)["outputs"]


def rows(name, outputs):
    for output in outputs:
        for port in output["inputs"]:
            planned, measured = port["plannedLatencyMs"], port.get("latencyMs")
            rates = [port[side].get("framesPerSecond") for side in ("planned", "measured")]
            rate = f"{rates[0]:.1f} | {rates[1]:.1f}" if all(rates) else " | "
            mark = "" if measured is not None and abs(measured - planned) <= max(SLACK_MS, planned / 2) else " (!)"
            latency = "not measured" if measured is None else f"{measured:.1f}"
            yield (f"| {name} | {output['name']}.{port['port']} | {rate} | {planned:.1f} | {latency}{mark} | "
                   f"{port['dropped']} of {port['frames'] + port['dropped']} |")


def main(arguments, root, facts):
    parser = argparse.ArgumentParser(prog="run pipelines", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=10, help="that each runs")
    parser.add_argument("--program", help="the connectlive to measure (default: built in release)")
    parser.add_argument("--output", default=os.path.join(root, "Benchmarks", "results"), help="folder of the page")
    options = parser.parse_args(arguments)
    program = options.program or benchmark_program.path(root, "connectlive")
    if program is None:
        return ["The program does not build."]
    lines = ["| pipeline | output | frames/s planned | measured | latency ms planned | measured | dropped |",
             "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="pipelines-") as folder:
        server = start_server(os.path.abspath(program), folder)
        try:
            for name in FILES:
                print(name, file=sys.stderr, flush=True)
                lines += rows(name, run(os.path.abspath(program), root, name, options.seconds, folder))
        finally:
            server.kill()
            server.wait()
    head = ["# Benchmarks: shipped pipelines", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts),
            "", f"Made by `Benchmarks/run pipelines`: {options.seconds} s each. (!) marks a latency that is off its plan by "
            f"more than half, and by more than {SLACK_MS} ms.", ""]
    os.makedirs(options.output, exist_ok=True)
    path = os.path.join(options.output, f"{datetime.date.today().isoformat()}-pipelines.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(head + lines) + "\n")
    print(f"wrote {path}", file=sys.stderr)
    return []

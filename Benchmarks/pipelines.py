"""The pipelines that ship and need no device: rate and latency as planned, beside those that are measured.

Each runs by itself, with the test pattern in place of cameras, and publishes into a room of its own.
"""
import json
import os
import subprocess
import tempfile

from benchmark_program import build
from figures import ROOT, Failure, load_average, page_parser, say, write_page

FILES = ["test-pattern-latency.yaml", "webcam-to-room.yaml", "two-cameras-to-room.yaml"]
# A value that differs from the plan by more than half is marked, unless it is within this many milliseconds.
SLACK_MS = 15


def start_server(program, folder):
    server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={**os.environ, "XDG_RUNTIME_DIR": folder})
    for line in server.stdout:
        if "In a browser" in line:
            return server
    raise Failure("The server did not start.")


def run(program, name, seconds, folder):
    path = os.path.join(ROOT, "pipelines", name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    values = {"source": "test-pattern", "second-source": "test-pattern", "camera": "", "second-camera": "",
              "room": name.partition(".")[0]}
    settings = [word for key, value in values.items() if "${" + key in text for word in ("--set", f"{key}={value}")]
    command = [program, "run", path, *settings, "--seconds", str(seconds), "--report", "report.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds + 60,
                          env={**os.environ, "XDG_RUNTIME_DIR": folder})
    if done.returncode != 0:
        raise Failure(f"{name}: {done.stderr.strip()[-300:]}")
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


def main(arguments, facts):
    parser = page_parser("pipelines", __doc__)
    parser.add_argument("--seconds", type=int, default=10, help="that each runs")
    parser.add_argument("--program", help="the connectlive to measure (default: built in release)")
    options = parser.parse_args(arguments)
    program = os.path.abspath(options.program or build("connectlive"))
    load = load_average()
    lines = ["| pipeline | output | frames/s planned | measured | latency ms planned | measured | dropped |",
             "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="pipelines-") as folder:
        server = start_server(program, folder)
        try:
            for name in FILES:
                say(name)
                lines += rows(name, run(program, name, options.seconds, folder))
        finally:
            server.kill()
            server.wait()
    write_page(
        options.output, "pipelines", "shipped pipelines", facts,
        [f"{options.seconds} s each. (!) marks a latency that is off its plan by more than half, and by more than "
         f"{SLACK_MS} ms.", "", *lines], load)
    return []

"""Compares our runner with gst-launch-1.0 on the same elements, and writes one page of tables.

Ours is the program `media-benchmarks`, which links the Media layer and nothing else. It also writes the line for
gst-launch, from the very plan that it runs: same elements, same properties, same number of buffers. What is ours alone
are the tee behind each output, the probes of the nodes, and starting Swift and planning.
"""
import glob
import os
import re
import resource
import select
import subprocess
import tempfile
import time

from benchmark_program import build
from figures import ROOT, load_average, page_parser, ratios, say, spread, write_page

CLIP = os.path.join("media", "bigbuckbunny.mp4")
SHAPES = {
    "raw": ("raw 640x480 frames into a fakesink, no codec", 300),
    "vp8": ("the same, encoded as VP8 with our settings", 300),
    "nv12": ("raw 1280x720 NV12 frames encoded as H.264 with our settings", 300),
    "passing": ("1280x720 H.264 from a file into RTP packets, not decoded", 18_000),
    "file": ("the clip (720p, H.264) decoded and encoded as H.264 with our settings", 133),
}
LIMIT = 1.02


def stream(frames, folder):
    """A file with an H.264 stream, without a container: a second again and again."""
    path = os.path.join(folder, "stream.h264")
    if not os.path.exists(path):
        second = os.path.join(folder, "second.h264")
        subprocess.run(
            ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=30", "horizontal-speed=2", "!",
             "video/x-raw,format=I420,width=1280,height=720,framerate=30/1", "!", "x264enc", "tune=zerolatency",
             "bitrate=2500", "key-int-max=60", "!", "video/x-h264,profile=constrained-baseline,stream-format=byte-stream",
             "!", "filesink", f"location={second}"], check=True, cwd=ROOT)
        with open(second, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            for _ in range(frames // 30):
                file.write(data)
    return path


def ours(program, shape, frames, clip, *options):
    return [program, "run", shape, str(frames), clip, *options]


def theirs(program, shape, frames, clip, *options):
    line = subprocess.run(
        [program, "line", shape, str(frames), clip, *options], capture_output=True, text=True, check=True, cwd=ROOT,
        timeout=60)
    return ["gst-launch-1.0", *line.stdout.splitlines()]


def instructions(command, folder):
    """Of the whole process, start to end."""
    path = os.path.join(folder, "callgrind.out")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", *command], capture_output=True, text=True,
        cwd=ROOT, timeout=900)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        raise RuntimeError(f"{' '.join(command)} under callgrind: {done.stderr.strip()[-300:]}")
    with open(path, errors="replace") as file:
        text = file.read()
    return int(collected.group(1)), encoder_calls(text)


def encoder_calls(text):
    """The number of frames that reached the encoder, None without an encoder: proof that both sides did the same."""
    total = 0
    for name in ("vpx_codec_encode", "x264_encoder_encode"):
        numbers = set(re.findall(rf"cfn=\((\d+)\)(?: {name}(?:'\d+|_\d+)?)?\n", text)) if name in text else set()
        known = re.findall(rf"\((\d+)\) {name}(?:_\d+)?\n", text)
        for number in known:
            if number in numbers:
                total += sum(int(calls) for calls in re.findall(rf"cfn=\({number}\)[^\n]*\ncalls=(\d+) ", text))
    return total or None


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_frame(command):
    """Seconds from starting the process to the first byte of an encoded frame on its standard output."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        ready, _, _ = select.select([process.stdout], [], [], 60)
        if not ready or not os.read(process.stdout.fileno(), 1):
            raise RuntimeError(f"{' '.join(command)} gave no frame")
        return time.monotonic() - begin
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def milliseconds(seconds, digits=1):
    return spread([1000 * value for value in seconds], digits)


def stripped(program, folder):
    """A copy without debugging data, which valgrind may fail to read, beside copies of the program's libraries."""
    for path in [program, *glob.glob(os.path.join(os.path.dirname(program), "*.so"))]:
        subprocess.run(["strip", "--strip-all", "-o", os.path.join(folder, os.path.basename(path)), path], check=True)
    return os.path.join(folder, os.path.basename(program))


def measure(program, pairs, shapes):
    results = {}
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        countable = stripped(program, folder)
        for shape in shapes:
            frames = SHAPES[shape][1]
            clip = stream(frames, folder) if shape == "passing" else CLIP
            mine, other = ours(program, shape, frames, clip), theirs(program, shape, frames, clip)
            result = {"ours": {}, "theirs": {}}
            # Reading the clip's headers times out after 5 s, which is too short under valgrind; the times include it.
            counted = {"ours": ours(countable, shape, frames, clip, *(["--known-clip"] if shape == "file" else [])),
                       "theirs": other}
            sides = (("ours", mine, ours(program, shape, frames, clip, "--pipe")),
                     ("theirs", other, theirs(program, shape, frames, clip, "--pipe")))
            say(f"{shape}: {pairs} pairs")
            for name in ("ours", "theirs"):
                result[name]["seconds"], result[name]["first"] = [], []
            for _ in range(pairs):
                for name, command, piped in sides:
                    result[name]["seconds"].append(processor_seconds(command))
                    result[name]["first"].append(first_frame(piped))
            for name in counted:
                say(f"{shape}: instructions, {name}")
                try:
                    result[name]["instructions"], result[name]["encoded"] = instructions(counted[name], folder)
                except (RuntimeError, subprocess.TimeoutExpired) as problem:
                    result[name]["problem"] = str(problem)
            results[shape] = result
    return results


def comparison(results):
    lines = [
        "## Overhead against gst-launch-1.0",
        "",
        "Whole processes, start to end. Queues wait instead of dropping on both sides, nothing is paced, so that both "
        "handle every frame; the line for gst-launch is written from the plan that ours runs. Encoder calls, one of them "
        "to flush, are counted by callgrind too; ours looks "
        "into the clip while it plans, which is in the times and not in the instructions. The test pattern is videotestsrc without our bar code.",
        "",
        "| graph | frames | instructions, ours | gst-launch | **ratio** | encoder calls, ours and gst-launch |",
        "|---|---|---|---|---|---|",
    ]
    for shape, result in results.items():
        mine, other = result["ours"], result["theirs"]
        if "instructions" not in mine or "instructions" not in other:
            lines.append(f"| {SHAPES[shape][0]} | {SHAPES[shape][1]} | not counted | | | |")
            continue
        encoded = "" if mine["encoded"] is None else f"{mine['encoded']}, {other['encoded']}"
        lines.append(
            f"| {SHAPES[shape][0]} | {SHAPES[shape][1]} | {mine['instructions'] / 1e6:.1f} million | "
            f"{other['instructions'] / 1e6:.1f} million | **{mine['instructions'] / other['instructions']:.4f}** | "
            f"{encoded} |")
    lines += [
        "",
        "Processor time and start, alternating pairs, median (min to max). The first frame is the first byte that a sink "
        "writes into a pipe, counted from starting the process.",
        "",
        "| graph | pairs | processor ms, ours | gst-launch | ratio of a pair | first frame after ms, ours | gst-launch | "
        "**later by ms** |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shape, result in results.items():
        mine, other = result["ours"], result["theirs"]
        later = [a - b for a, b in zip(mine["first"], other["first"])]
        lines.append(
            f"| {shape} | {len(later)} | {milliseconds(mine['seconds'], 0)} | "
            f"{milliseconds(other['seconds'], 0)} | {spread(ratios(mine['seconds'], other['seconds']), 2)} | "
            f"{milliseconds(mine['first'])} | {milliseconds(other['first'])} | **{milliseconds(later)}** |")
    return lines + [""]


def wrong(results):
    problems = []
    for shape, result in results.items():
        mine, other = result["ours"], result["theirs"]
        for side in (mine, other):
            if "problem" in side:
                problems.append(f"{shape}: {side['problem']}")
        if mine.get("encoded") != other.get("encoded"):
            problems.append(f"{shape}: {mine.get('encoded')} frames encoded by ours, {other.get('encoded')} by gst-launch")
        if "instructions" in mine and "instructions" in other:
            ratio = mine["instructions"] / other["instructions"]
            if ratio > LIMIT:
                problems.append(f"{shape}: {ratio:.4f} times the instructions of gst-launch, more than {LIMIT}")
    return problems


def main(arguments, facts):
    parser = page_parser("media", __doc__)
    parser.add_argument("--pairs", type=int, default=10, help="timed runs of each side")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="graphs to compare")
    options = parser.parse_args(arguments)
    program = build("media-benchmarks")
    load = load_average()
    results = measure(program, options.pairs, options.shapes.split(","))
    write_page(options.output, "media-graph", "the media graph", facts, [
        "Instructions hardly depend on what else the machine does; times do.", "", *comparison(results),
    ], load)
    return wrong(results)

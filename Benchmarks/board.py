"""Publishes a camera within 30 % of one processor core, like that of a weak board, and shows what a viewer receives.

Recorded cameras publish at the same time, each with a tone and in a control group of its own: one whose own 720p H.264
passes through, one with raw 480p frames that are encoded, and one whose frames are too many to encode all of them. The room
server and the viewers run outside of the groups.
"""
import base64
import contextlib
import json
import os
import subprocess
import tempfile
import time

from benchmark_program import build
from figures import ROOT, Failure, head, load_average, page_parser, row, say, write_page

SHARE = 30
# Seconds of sound in a packet of our Opus encoder.
PACKET = 0.02
# Seconds by which the receiver's estimate of the sender's clock may have moved.
TOLERANCE = 0.1
CLIP = os.path.join("media", "bigbuckbunny.mp4")
CASES = {
    "passing": ("720p H.264 of the camera, passed through", 1280, 720, 30, "H264"),
    "encoded": ("480p YUYV of the camera, encoded as H.264", 640, 480, 30, "YUYV"),
    "overloaded": ("1080p YUYV of the camera, encoded as H.264, which is more than the share", 1920, 1080, 30, "YUYV"),
}


def frames(case, folder):
    """Of the clip: a second of H.264 with one keyframe, or a few raw frames."""
    _, width, height, rate, code = CASES[case]
    encoder = [] if code != "H264" else [
        "!", "x264enc", "tune=zerolatency", "bitrate=2500", f"key-int-max={rate}", "!",
        "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au"]
    shape = f"video/x-raw,format={'I420' if encoder else 'YUY2'},width={width},height={height},framerate={rate}/1"
    path = os.path.join(folder, f"{case}-%03d.frame")
    subprocess.run(
        ["gst-launch-1.0", "-q", "filesrc", f"location={os.path.join(ROOT, CLIP)}", "!", "decodebin", "!", "videoconvert",
         "!", "videoscale", "!", "videorate", "!", shape, *encoder, "!", "multifilesink", f"location={path}"], check=True)
    names = sorted(name for name in os.listdir(folder) if name.startswith(case) and name.endswith(".frame"))
    for name in names[:rate if encoder else 8]:
        with open(os.path.join(folder, name), "rb") as file:
            yield file.read()


def camera(case, folder):
    """The path of a recorded camera."""
    _, width, height, rate, code = CASES[case]
    size = f"{width}x{height}"
    fixture = {"version": 1, "driver": "uvcvideo", "card": case, "bus": "usb-1",
               "formats": [{"format": code, "sizes": [{"size": size, "rates": [str(rate)]}]}]}
    fixture["frames"] = [{"format": code, "size": size, "data": base64.b64encode(data).decode()}
                         for data in frames(case, folder)]
    path = os.path.join(folder, f"{case}.fixture.json")
    with open(path, "w") as file:
        json.dump(fixture, file)
    return path


def write(folder, name, chains):
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w") as file:
        json.dump({"chains": chains}, file)
    return path


def publisher(case, folder):
    _, width, height, rate, code = CASES[case]
    source = {"node": "camera", "device": f"fixture:{camera(case, folder)}", "width": width, "height": height, "fps": rate}
    encoder = [] if code == "H264" else ["h264-encoder"]
    return write(folder, f"publish-{case}", [
        [source, *encoder, {"node": "publish", "room": case}],
        [{"node": "element:audiotestsrc", "is-live": True}, "opus-encoder", {"to": "publish.audio"}]])


def viewer(case, folder):
    return write(folder, f"view-{case}", [
        [{"node": "subscribe", "room": case, "codec": "h264"},
         {"node": "recorder", "path": os.path.join(folder, f"{case}.mkv")}],
        [{"from": "subscribe.audio"}, {"to": "recorder.audio"}]])


class Group:
    """A control group with a share of a core, of version 2 or 1."""

    def __init__(self, name):
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            self.folder, limit = f"/sys/fs/cgroup/{name}", {"cpu.max": f"{SHARE * 1000} 100000"}
        else:
            self.folder = f"/sys/fs/cgroup/cpu/{name}"
            limit = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": f"{SHARE * 1000}"}
        try:
            os.mkdir(self.folder)
            for file, value in limit.items():
                with open(os.path.join(self.folder, file), "w") as target:
                    target.write(value)
        except OSError as problem:
            raise Failure(f"The control group {self.folder} cannot be made: {problem}") from problem

    def enter(self):
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    def throttled(self):
        """The share of periods in which the group ran out of time, in percent."""
        with open(os.path.join(self.folder, "cpu.stat")) as file:
            counts = dict(line.split() for line in file)
        return 100 * int(counts["nr_throttled"]) / max(int(counts["nr_periods"]), 1)

    def remove(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)


def packets(path, stream):
    """The times of a recording's packets in seconds."""
    said = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0", path],
        capture_output=True, text=True, check=True).stdout
    return sorted(float(line.strip(",")) for line in said.split() if line.strip(",") not in ("", "N/A"))


def received(path):
    sound, video = packets(path, "a:0"), packets(path, "v:0")
    if len(sound) < 2 or len(video) < 2:
        raise Failure(f"{path} has no audio or no video")
    steps = [later - earlier for earlier, later in zip(sound, sound[1:])]
    return {
        "seconds": sound[-1] - sound[0], "sound": len(sound),
        # Single steps vary with the clock that the receiver estimates; the sum shows what is missing.
        "missing": max(0, sound[-1] - sound[0] - (len(sound) - 1) * PACKET), "gap": max(steps),
        "rate": (len(video) - 1) / (video[-1] - video[0]),
        "pause": max(later - earlier for earlier, later in zip(video, video[1:])),
    }


def run(program, seconds, folder):
    environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_CONFIG_HOME=folder)
    results, processes, groups = {}, [], {}

    def start(*arguments, group=None):
        log = open(os.path.join(folder, f"{len(processes)}.log"), "w+")
        processes.append(subprocess.Popen(
            [program, *arguments], stdout=log, stderr=log, env=environment, preexec_fn=group and group.enter))
        return processes[-1]

    try:
        server = start("serve", "--listen", "127.0.0.1:0")
        time.sleep(2)
        if server.poll() is not None:
            raise Failure("the server did not start")
        graphs = {case: publisher(case, folder) for case in CASES}
        reports = {case: os.path.join(folder, f"{case}.report.json") for case in CASES}
        for case in CASES:
            groups[case] = Group(f"connectlive-board-{os.getpid()}-{case}")
            start("run", graphs[case], "--seconds", str(seconds + 30), "--report", reports[case], group=groups[case])
        time.sleep(15)
        for case in CASES:
            start("run", viewer(case, folder), "--seconds", str(seconds))
        for process in processes[1:]:
            process.wait(seconds + 120)
        for case in CASES:
            throttled = groups[case].throttled()
            with open(reports[case]) as file:
                video = next(port for output in json.load(file)["outputs"] for port in output["inputs"]
                             if port["port"] == "video")
            results[case] = {**received(os.path.join(folder, f"{case}.mkv")), "throttled": throttled,
                             "dropped": video["dropped"] / (video["dropped"] + video["frames"])}
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait()
        for group in groups.values():
            group.remove()
    return results


def table(results):
    lines = head("camera", "throttled periods", "dropped before the encoder", "frames/s at the viewer", "longest pause of the video",
                 "packets of sound", "**sound missing**", "longest step of the sound")
    for case, found in results.items():
        lines.append(row(
            CASES[case][0], f"{found['throttled']:.0f} %", f"{100 * found['dropped']:.0f} %", f"{found['rate']:.1f} of {CASES[case][3]}",
            f"{found['pause'] * 1000:.0f} ms", str(found["sound"]), f"**{found['missing'] * 1000:.0f} ms**",
            f"{found['gap'] * 1000:.0f} ms"))
    return lines


def main(arguments, facts):
    parser = page_parser("board", __doc__)
    parser.add_argument("--seconds", type=int, default=600, help="of viewing")
    options = parser.parse_args(arguments)
    program = build("connectlive")
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        say(f"publishing for {options.seconds} s")
        results = run(program, options.seconds, folder)
    write_page(options.output, "board", "a weak board", facts, [
        f"Each publisher has {SHARE} % of one core (a control group's cpu.max), for {options.seconds} s. A tone is sent "
        "beside the camera. The viewer records what arrives; times are those of the recording.",
        "", *table(results)], load)
    return [f"{case}: {found['missing']:.2f} s of sound are missing" for case, found in results.items()
            if found["missing"] > TOLERANCE]

"""Compares capturing a V4L2 camera with GStreamer's v4l2src and with ffmpeg, in the guest of `make guest`.

The camera is vivid, the kernel's own virtual one. The guest counts instructions instead of time (qemu's icount): its clock
advances by 1 ns with each instruction, so that the processor time of a process is the number of its instructions in user
space and kernel, whatever else the host does. Each program runs alone for a while, and its start is not counted.
"""
import json
import os
import select
import subprocess
import sys
import tempfile
import time

from benchmark_program import build
from figures import Failure, ROOT, head, page_parser, row, say, spread, write_page

SIZE, RATE = (640, 360), 15
ROUNDS = 9
# The settings of our H.264 encoder; see VideoEncoderTable.swift.
X264 = ("tune=zerolatency speed-preset=superfast bitrate=600 key-int-max=120 bframes=0 threads=1 vbv-buf-capacity=600 "
        "option-string=scenecut=0").split()
RAW = f"video/x-raw,format=NV12,width={SIZE[0]},height={SIZE[1]},framerate={RATE}/1"
SHAPES = {
    "frames": "NV12 frames to a sink that discards them",
    "h264": "NV12 frames encoded as H.264 with our settings, and discarded",
    "rtp": "the same, in RTP packets over UDP",
}
# Without RTX and SRTP, like the two programs beside it. Nobody listens.
PACKET, PORT = 1180, 5004


def graph(shape):
    camera = {"node": "camera", "device": "/dev/video0", "width": SIZE[0], "height": SIZE[1], "fps": RATE}
    middle = [] if shape == "frames" else [{"node": "h264-encoder", "bitrate": 600000, "keyframe-interval": 120}]
    # An element, because a sink that reads nothing leaves the format to the camera.
    end = [{"node": "element:fakesink", "sync": False}]
    if shape == "rtp":
        end = [{"node": "element:rtph264pay", "mtu": PACKET, "aggregate-mode": "zero-latency"},
               {"node": "element:udpsink", "host": "127.0.0.1", "port": PORT, "sync": False}]
    return {"chains": [[camera, *middle, *end]]}


def commands(shape, program, folder):
    path = os.path.join(folder, f"{shape}.json")
    with open(path, "w") as file:
        json.dump(graph(shape), file)
    encoder = [] if shape == "frames" else ["!", "x264enc", *X264]
    sink = ["fakesink", "sync=false"]
    if shape == "rtp":
        sink = ["rtph264pay", f"mtu={PACKET}", "aggregate-mode=zero-latency", "!", "udpsink", "host=127.0.0.1",
                f"port={PORT}", "sync=false"]
    muxer = ["-f", "rtp", f"rtp://127.0.0.1:{PORT}?pkt_size={PACKET}"] if shape == "rtp" else ["-f", "null", "-"]
    coded = ["-c:v", "libx264", "-preset", "superfast", "-tune", "zerolatency", "-b:v", "600k", "-g", "120", "-threads",
             "1"] if shape != "frames" else ["-c:v", "copy"]
    return {
        "ours": [program, "run", path],
        "gst-launch": ["gst-launch-1.0", "-q", "v4l2src", "device=/dev/video0", "!", RAW, *encoder, "!", *sink],
        "ffmpeg": ["ffmpeg", "-nostdin", "-loglevel", "error", "-f", "v4l2", "-input_format", "nv12", "-video_size",
                   f"{SIZE[0]}x{SIZE[1]}", "-framerate", str(RATE), "-i", "/dev/video0", *coded, *muxer],
    }


def opening(program, folder, target):
    """Commands whose sinks write NV12 frames to the descriptor `target`."""
    ours = graph("frames")
    ours["chains"][0][-1] = {"node": "element:fdsink", "fd": target, "sync": False}
    path = os.path.join(folder, "opening.json")
    with open(path, "w") as file:
        json.dump(ours, file)
    launch, ffmpeg = (commands("frames", program, folder)[name] for name in ("gst-launch", "ffmpeg"))
    return {
        "ours": [program, "run", path],
        "gst-launch": [*launch[:-2], "fdsink", f"fd={target}", "sync=false"],
        "ffmpeg": [*ffmpeg[:-3], "-f", "rawvideo", f"pipe:{target}"],
    }


def first_frames(program, folder):
    """Seconds from starting each program to the first byte of a frame, in rounds."""
    results = {}
    for _ in range(ROUNDS):
        reader, writer = os.pipe()
        for name, command in opening(program, folder, writer).items():
            begin = time.monotonic()
            process = subprocess.Popen(
                command, pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ready, _, _ = select.select([reader], [], [], 60)
            results.setdefault(name, []).append(time.monotonic() - begin)
            process.kill()
            process.wait()
            if not ready:
                raise TimeoutError(f"{name} gave no frame within 60 s")
            while select.select([reader], [], [], 0)[0]:
                os.read(reader, 1 << 20)
        os.close(reader)
        os.close(writer)
    return results


def processor_time(process):
    """Seconds of all threads, also of those that have ended: clock_getcpuclockid(3) of the process."""
    return time.clock_gettime(~process.pid << 3 | 2)


def inside(program, seconds):
    """In the guest: prints one line of JSON."""
    subprocess.run(["modprobe", "-d", os.environ["GUEST_MODULES"], "vivid", "node_types=0x1", "num_inputs=1",
                    "input_types=0"], check=True)
    # GStreamer's registry, which is made once.
    subprocess.run(["gst-inspect-1.0", "fakesink"], check=True, stdout=subprocess.DEVNULL)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            for name, command in commands(shape, program, folder).items():
                with open(os.path.join(folder, "log"), "w+") as log:
                    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                    time.sleep(seconds)
                    begin = processor_time(process), time.monotonic()
                    time.sleep(seconds)
                    end = processor_time(process), time.monotonic()
                    if process.poll() is not None:
                        log.seek(0)
                        print(json.dumps({"problem": f"{name}: {log.read()[-600:]}"}))
                        return
                    process.terminate()
                    process.wait()
                if end[0] == begin[0]:
                    print(json.dumps({"problem": f"{name} did nothing in {seconds} s"}))
                    return
                results.setdefault(shape, {})[name] = (end[0] - begin[0]) / (end[1] - begin[1]) / RATE
        try:
            first = first_frames(program, folder)
        except TimeoutError as problem:
            print(json.dumps({"problem": str(problem)}))
            return
    print(json.dumps({"cost": results, "first": first}))


def main(arguments, facts):
    parser = page_parser("capture", __doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of each program, in the guest's time")
    options = parser.parse_args(arguments)
    program = build("connectlive")
    say("booting the guest")
    done = subprocess.run(
        [os.path.join(ROOT, "Tests", "guest", "run"), "--count", "--seconds", "3000", sys.executable, __file__, program,
         str(options.seconds)], capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    results = json.loads(lines[-1]) if lines else {"problem": done.stderr[-600:]}
    if "problem" in results:
        raise Failure(results["problem"])
    lines = [
        f"A camera of {SIZE[0]}x{SIZE[1]} at {RATE} frames/s in NV12, made up by the kernel's vivid, in the guest of "
        "`make guest`. Instructions of a process for each frame, in user space and kernel, in millions, over "
        f"{options.seconds} s after its start. They are counted by the guest's processor, so a repetition gives the same.",
        "", *head("pipeline", "ours", "gst-launch-1.0", "ffmpeg", "**ours / gst-launch**", "ours / ffmpeg")]
    for shape, found in results["cost"].items():
        ours, launch, other = (found[name] * 1e3 for name in ("ours", "gst-launch", "ffmpeg"))
        lines.append(row(SHAPES[shape], f"{ours:.2f}", f"{launch:.2f}", f"{other:.2f}", f"**{ours / launch:.3f}**",
                         f"{ours / other:.3f}"))
    lines += [
        "", "The first row is the fixed price of the node: four threads that wake for each frame (the driver's reader, the "
        "camera's own pipeline, the head that replaces the camera while it is away, the graph), the check of the frame, and "
        "the statistics. gst-launch hands the driver's buffer to a sink that discards it.",
        "", "From starting the process to the first byte of an NV12 frame in a pipe, in the guest's time, median (least to "
        f"most) of {ROUNDS} rounds. One frame takes {1000 / RATE:.0f} ms.",
        "", *head("program", "first frame after ms")]
    lines += [row(name, spread([1000 * value for value in values], 0)) for name, values in results["first"].items()]
    write_page(options.output, "capture", "capturing a camera", facts, lines)
    return []


if __name__ == "__main__":
    inside(sys.argv[1], int(sys.argv[2]))

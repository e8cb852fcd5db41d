#!/usr/bin/python3
"""A webrtcbin pair over loopback in one process: time to the first decoded frame, and latency of every frame.

The source, the encoder and the decoder are set as the benchmarks of this package set their own: a live test pattern,
VP8 in real time at 1000 kbit/s behind a capture queue of two frames, one decoder thread. What differs is everything
between encoder and decoder: webrtcbin with its own jitter buffer, ICE, DTLS and SRTP (AES128_CM_SHA1_80 is the only
profile that GStreamer 1.22 offers).

Latency runs from the capture timestamp of a frame (base time + presentation time, as the live source stamped it) to
the moment the sink hands the decoded frame over, both on CLOCK_MONOTONIC, matched by RTP timestamp. With the clock
(the default) the sink shows a frame when its time has come, which is where the jitter buffer's latency is felt; with
--as-decoded it hands it over at once.

Prints one line of JSON. Exits 0 when frames were decoded, 1 when not. Nothing outlives the process, and a watchdog
ends it when GStreamer hangs.
"""
import argparse
import ctypes
import json
import os
import statistics
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

CLOCK_RATE = 90_000
# The result of VideoBitrate.default for 640x480 at 30 frames/s.
BITRATE = 1_000_000
# The settings of VideoEncoderNode for VP8; `Benchmarks/run` compares the two.
ENCODER = {
    "deadline": 1, "cpu-used": -8, "threads": 1, "end-usage": "cbr", "lag-in-frames": 0, "dropframe-threshold": 0,
    "error-resilient": 0, "keyframe-max-dist": 3000, "min-quantizer": 2, "max-quantizer": 56, "undershoot": 100,
    "overshoot": 15, "buffer-initial-size": 500, "buffer-optimal-size": 600, "buffer-size": 1000,
    "max-intra-bitrate": 600, "static-threshold": 1, "token-partitions": "2",
}


def now():
    """Nanoseconds of the clock that GStreamer's pipelines run on."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def listen_on_loopback(webrtc):
    """Keeps libnice off every address but 127.0.0.1, which it would not gather by itself."""
    ice = webrtc.get_property("ice-agent")
    # webrtcbin keeps a floating reference, which Python has just claimed: adds another one, never released.
    gobject = ctypes.CDLL("libgobject-2.0.so.0")
    gobject.g_object_ref.argtypes = [ctypes.c_void_p]
    gobject.g_object_ref.restype = ctypes.c_void_p
    gobject.g_object_ref(hash(ice))
    agent = ice.get_property("agent")
    nice = ctypes.CDLL("libnice.so.10")
    nice.nice_address_new.restype = ctypes.c_void_p
    nice.nice_address_set_from_string.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    nice.nice_agent_add_local_address.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    nice.nice_address_free.argtypes = [ctypes.c_void_p]
    address = nice.nice_address_new()
    nice.nice_address_set_from_string(address, b"127.0.0.1")
    # PyGObject's hash of an object is the address of the object in C.
    nice.nice_agent_add_local_address(hash(agent), address)
    nice.nice_address_free(address)


class Pair:
    def __init__(self, options):
        self.options = options
        self.loop = GLib.MainLoop()
        self.failure = None
        self.offered_at = None
        self.first_at = None
        self.rtp_of = {}
        self.latencies = []
        self.processor_before = 0.0
        self.frames_captured = 0
        self.frames_decoded = 0
        self.packets = 0
        encoder = " ".join(f"{name}={value}" for name, value in ENCODER.items())
        size = f"video/x-raw,format=I420,width={options.width},height={options.height},framerate={options.fps}/1"
        self.sender = Gst.parse_launch(
            f"videotestsrc name=source is-live=true pattern=smpte75 horizontal-speed=2 ! {size} "
            "! queue leaky=downstream max-size-buffers=2 max-size-bytes=0 max-size-time=0 "
            f"! vp8enc target-bitrate={BITRATE} {encoder} "
            # Without an offset the RTP timestamp is the capture time in units of 1/90000 s.
            "! rtpvp8pay picture-id-mode=15-bit mtu=1180 timestamp-offset=0 pt=96 "
            "! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000 "
            "! webrtcbin name=webrtc bundle-policy=max-bundle"
        )
        self.receiver = Gst.parse_launch("webrtcbin name=webrtc bundle-policy=max-bundle")
        self.offerer = self.sender.get_by_name("webrtc")
        self.answerer = self.receiver if self.receiver.get_name() == "webrtc" else self.receiver.get_by_name("webrtc")
        if not isinstance(self.receiver, Gst.Pipeline):
            pipeline = Gst.Pipeline.new("receiver")
            pipeline.add(self.receiver)
            self.receiver = pipeline
        if options.latency is not None:
            self.answerer.set_property("latency", options.latency)
        for webrtc in (self.offerer, self.answerer):
            listen_on_loopback(webrtc)
        self.offerer.connect("on-ice-candidate", self.trickle, self.answerer)
        self.answerer.connect("on-ice-candidate", self.trickle, self.offerer)
        self.offerer.connect("on-negotiation-needed", self.negotiate)
        self.answerer.connect("pad-added", self.receive)
        capture = self.sender.get_by_name("source").get_static_pad("src")
        capture.add_probe(Gst.PadProbeType.BUFFER, self.captured)
        for pipeline in (self.sender, self.receiver):
            bus = pipeline.get_bus()
            bus.add_signal_watch()
            bus.connect("message::error", self.failed)
        # Only for the receiver: a sender that knows its source's latency delays every frame by one frame interval.
        self.receiver.get_bus().connect("message::latency", lambda *_: self.receiver.recalculate_latency())

    # Negotiation. Candidates may arrive before their descriptions, and wait for them.

    def trickle(self, _, line, candidate, other):
        GLib.idle_add(lambda: self.deliver(other, line, candidate))

    def deliver(self, other, line, candidate):
        if other.get_property("remote-description") is None:
            return True
        other.emit("add-ice-candidate", line, candidate)
        return False

    def negotiate(self, webrtc):
        if self.offered_at is not None:
            return
        self.offered_at = now()
        webrtc.emit("create-offer", None, Gst.Promise.new_with_change_func(self.offered))

    def offered(self, promise):
        # The description is part of the reply, which must be kept as long.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        self.offerer.emit("set-local-description", offer, None)
        self.answerer.emit(
            "set-remote-description", self.copy(offer, GstWebRTC.WebRTCSDPType.OFFER),
            Gst.Promise.new_with_change_func(self.offer_taken))

    def offer_taken(self, _):
        self.answerer.emit("create-answer", None, Gst.Promise.new_with_change_func(self.answered))

    def answered(self, promise):
        reply = promise.get_reply()
        answer = reply.get_value("answer")
        self.answerer.emit("set-local-description", answer, None)
        self.offerer.emit(
            "set-remote-description", self.copy(answer, GstWebRTC.WebRTCSDPType.ANSWER), None)

    @staticmethod
    def copy(description, kind):
        _, message = GstSdp.SDPMessage.new_from_text(description.sdp.as_text())
        return GstWebRTC.WebRTCSessionDescription.new(kind, message)

    # Frames.

    def captured(self, pad, info):
        self.frames_captured += 1
        return Gst.PadProbeReturn.OK

    def receive(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        on_the_clock = "false" if self.options.as_decoded else "true"
        tail = Gst.parse_bin_from_description(
            "rtpvp8depay name=depay ! vp8dec threads=1 ! videoconvert ! video/x-raw,format=I420 "
            f"! appsink name=sink emit-signals=true max-buffers=0 sync={on_the_clock}", True)
        tail.get_by_name("depay").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.packet)
        tail.get_by_name("sink").connect("new-sample", self.frame)
        self.receiver.add(tail)
        pad.link(tail.get_static_pad("sink"))
        tail.sync_state_with_parent()

    def packet(self, _, info):
        buffer = info.get_buffer()
        self.packets += 1
        self.rtp_of[buffer.pts] = int.from_bytes(buffer.extract_dup(4, 4), "big")
        return Gst.PadProbeReturn.OK

    def frame(self, sink):
        shown = now()
        sample = sink.emit("pull-sample")
        timestamp = self.rtp_of.pop(sample.get_buffer().pts, None)
        self.frames_decoded += 1
        if self.first_at is None:
            self.first_at = shown
            self.processor_before = time.process_time()
            GLib.timeout_add(int(self.options.seconds * 1000), self.loop.quit)
        # The first second holds the keyframe and the frames that waited for the connection.
        if timestamp is not None and shown - self.first_at > self.options.warm_up * 1e9:
            captured = self.sender.get_base_time() + timestamp * 1_000_000_000 // CLOCK_RATE
            self.latencies.append((shown - captured) / 1e6)
        return Gst.FlowReturn.OK

    # Life.

    def failed(self, _, message):
        error, details = message.parse_error()
        self.failure = f"{error.message} ({details})"
        self.loop.quit()

    def run(self):
        GLib.timeout_add(15_000, self.give_up)
        self.receiver.set_state(Gst.State.PLAYING)
        self.sender.set_state(Gst.State.PLAYING)
        self.loop.run()
        used = time.process_time() - self.processor_before
        processor = used / ((now() - self.first_at) / 1e9) if self.first_at else 0.0
        threads = len(os.listdir("/proc/self/task"))
        self.sender.set_state(Gst.State.NULL)
        self.receiver.set_state(Gst.State.NULL)
        return self.report(processor, threads)

    def give_up(self):
        if self.first_at is None:
            self.failure = self.failure or "no frame was decoded within 15 s"
            self.loop.quit()
        return False

    def report(self, processor, threads):
        ordered = sorted(self.latencies)

        def at(fraction):
            return round(ordered[min(len(ordered) - 1, int(len(ordered) * fraction))], 3) if ordered else None

        latency = self.answerer.get_property("latency")
        return {
            "peer": "webrtcbin",
            "gstreamer": Gst.version_string().removeprefix("GStreamer "),
            "srtpProfile": "AES128_CM_SHA1_80",
            "latencySettingMs": latency,
            "shows": "as decoded" if self.options.as_decoded else "on the clock",
            "width": self.options.width,
            "height": self.options.height,
            "framesPerSecond": self.options.fps,
            "bitsPerSecond": BITRATE,
            "firstFrameMs": round((self.first_at - self.offered_at) / 1e6, 3) if self.first_at else None,
            "latencyMsMin": at(0),
            "latencyMsP50": round(statistics.median(ordered), 3) if ordered else None,
            "latencyMsP95": at(0.95),
            "latencyMsMax": at(1),
            "latencySamples": len(ordered),
            "framesCaptured": self.frames_captured,
            "framesDecoded": self.frames_decoded,
            "packets": self.packets,
            "cpuSecondsPerSecond": round(processor, 4),
            "threads": threads,
            "error": self.failure,
        }


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--print-encoder", action="store_true", help="say how the encoder is set, and do no more")
    parser.add_argument("--latency", type=int, metavar="MS", help="jitter buffer of the receiver; default: 200")
    parser.add_argument("--as-decoded", action="store_true", help="hand frames over without waiting for the clock")
    parser.add_argument("--seconds", type=float, default=10, help="how long frames are watched after the first")
    parser.add_argument("--warm-up", type=float, default=1, help="seconds after the first frame that do not count")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--fps", type=int, default=30)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    if options.print_encoder:
        print(json.dumps(ENCODER))
        return
    watchdog = threading.Timer(options.seconds + 30, lambda: os._exit(3))
    watchdog.daemon = True
    watchdog.start()
    Gst.init(None)
    result = Pair(options).run()
    print(json.dumps(result), flush=True)
    # Skips the interpreter's shutdown, which may wait for GStreamer's threads.
    os._exit(0 if result["framesDecoded"] and not result["error"] else 1)


main()

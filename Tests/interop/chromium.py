#!/usr/bin/python3
"""Opens the room page in a real headless Chromium with a fake camera and microphone; reports its video and audio.

Needs Debian's chromium, chromium-driver and python3-selenium. Starts no server. The last line that it prints is JSON; exits 0 when
all expectations are met, else 1 with the reason in "sentence". Leaves no process and no file behind.

    chromium.py --page 'http://127.0.0.1:7880/?room=R&join=1' --seconds 10 \
        --expect-video-from-others 1 --expect-audio --expect-publishing 5 --screenshot out.png
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

import descendants
import devices
import playback
import returning
from expectations import observe

# Runs before the page's own code: keeps every peer connection, so that its statistics can be queried.
REMEMBER_PEERS = """
window.testPeers = [];
window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...given) { super(...given); window.testPeers.push(this); }
};
window.testSockets = [];
window.WebSocket = class extends WebSocket {
    constructor(...given) { super(...given); this.testBegan = performance.now(); window.testSockets.push(this); }
};
"""

# Runs after that: lets media through TURN servers alone.
RELAY_ALONE = """
window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(configuration, ...more) { super({ ...configuration, iceTransportPolicy: 'relay' }, ...more); }
};
"""

# Lets Chromium log each packet as text2pcap reads it.
RTP_DUMP = ["--enable-logging=stderr", "--vmodule=srtp_session=3",
            "--force-fieldtrials=WebRTC-Debugging-RtpDump/Enabled/"]

# Video without simulcast is encoded in three temporal layers.
TEMPORAL_LAYERS = """
const addTransceiver = RTCPeerConnection.prototype.addTransceiver;
RTCPeerConnection.prototype.addTransceiver = function(track, { sendEncodings, ...init } = {}) {
    const layered = sendEncodings?.length === 1 ? [{ ...sendEncodings[0], scalabilityMode: 'L1T3' }] : sendEncodings;
    return addTransceiver.call(this, track, { ...init, ...layered && { sendEncodings: layered } });
};
"""

# The server reports so many losses of what the page sends.
REPORT_LOSS = """
const getStats = RTCRtpSender.prototype.getStats;
RTCRtpSender.prototype.getStats = async function() {
    return new Map([...await getStats.call(this)].map(([id, report]) =>
        [id, report.type === 'remote-inbound-rtp' ? { ...report, fractionLost: %f } : report]));
};
"""

# Each receiver of video has a least delay, to which the page's own targets are added.
DELAY_VIDEO = """
const property = Object.getOwnPropertyDescriptor(RTCRtpReceiver.prototype, 'jitterBufferTarget');
const targets = new WeakMap();
Object.defineProperty(RTCRtpReceiver.prototype, 'jitterBufferTarget', {
    get() { return targets.get(this) ?? null; },
    set(target) {
        targets.set(this, target);
        property.set.call(this, this.track.kind === 'video' ? (target ?? 0) + %d : target);
    },
});
window.testDelay = () => {
    for (const peer of window.testPeers) for (const receiver of peer.getReceivers()) receiver.jitterBufferTarget = null;
};
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", required=True, help="address of the page, with ?room=R&join=1")
    parser.add_argument("--seconds", type=float, default=10, help="how long to stay (default 10)")
    parser.add_argument("--until-expected", action="store_true", help="leave as soon as all expectations are met")
    parser.add_argument("--expect-video-from-others", type=int, default=0, metavar="N",
                        help="moving video of N streams")
    parser.add_argument("--expect-audio", type=int, nargs="?", const=1, default=0, metavar="N",
                        help="so much audio from others is heard at once (1)")
    parser.add_argument("--expect-publishing", type=int, default=0, metavar="N",
                        help="N of our camera's frames, and audio, are sent")
    parser.add_argument("--expect-problem", metavar="CODE", help="the page shows this problem with a message")
    parser.add_argument("--expect-waiting", metavar="TEXT", help="a tile shows this text, and then it is gone")
    parser.add_argument("--expect-srtp", metavar="PROFILE", help="each session's profile has this in its name (GCM)")
    parser.add_argument("--relay", action="store_true",
                        help="send and receive through TURN servers alone, and expect that")
    parser.add_argument("--expect-relay", type=int, metavar="PORT", help="sessions use TURN servers at this port")
    parser.add_argument("--expect-capture-times", type=int, default=0, metavar="N",
                        help="packets of N streams of others carry recent capture times, by the clock of this machine")
    parser.add_argument("--expect-redundancy", type=int, default=0, metavar="N",
                        help="N packets of audio come with copies, and our audio is sent with copies (RED)")
    parser.add_argument("--report-loss", type=float, default=0, metavar="SHARE",
                        help="let the page believe that the server reports these losses, 0 to 1")
    parser.add_argument("--temporal-layers", action="store_true",
                        help="send video that has no simulcast in three temporal layers (L1T3)")
    parser.add_argument("--then-refuse", action="store_true",
                        help="open the page once more afterwards, where the browser refuses camera and microphone")
    parser.add_argument("--then-lose-camera", action="store_true",
                        help="end the camera's track afterwards, then turn the camera on again")
    parser.add_argument("--then-mute", action="store_true",
                        help="turn microphone and camera off afterwards and on again, and expect that another page shows it")
    parser.add_argument("--then-roam", action="store_true",
                        help="lose the WebSocket afterwards, then the way of media, and come back")
    parser.add_argument("--then-relay", type=int, metavar="PORT",
                        help="tell the page of the same TURN servers at this port afterwards, which take the same passwords, "
                             "and expect that sessions use them when ICE restarts")
    parser.add_argument("--then-be-refused", action="store_true",
                        help="open the page where the browser refuses the camera; afterwards turn the camera on where the "
                             "server refuses it, once for good and once until the page has joined again")
    parser.add_argument("--then-watch", type=float, default=0, metavar="SECONDS",
                        help="report afterwards how evenly the videos of others are decoded; restart ICE meanwhile at "
                             "SIGUSR1, and report whether that happened")
    parser.add_argument("--then-resize", metavar="WIDTH:FRAME,...", default="",
                        help="make the only tile of others so wide, one after another, and report the width of its "
                             "frames once it is the second number")
    parser.add_argument("--then-listen", type=float, default=0, metavar="SECONDS",
                        help="report afterwards how long after each flash of the test pattern its beep is heard")
    parser.add_argument("--then-read", metavar="FILE",
                        help="print 'reading' afterwards; report the number in each frame that the tiles of others show, until "
                             "the file exists; then expect moving video of as many others as it says, and audio, unless it is "
                             "empty")
    parser.add_argument("--delay-video", type=int, default=0, metavar="MS",
                        help="delay what is seen, as a network does that repairs a lot of it")
    parser.add_argument("--screenshot", metavar="PNG")
    parser.add_argument("--window", default="1280x800", metavar="WxH")
    parser.add_argument("--rtp-dump", metavar="FILE",
                        help="write the browser's log to a file, with each packet of RTP and RTCP before encryption")
    parser.add_argument("--flag", action="append", default=[], help="one more for Chromium, as in --flag=--lang=de")
    return parser.parse_args()


def start(options, folder):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        raise LookupError("Chromium or its driver is missing: apt install chromium chromium-driver.")
    settings = webdriver.ChromeOptions()
    settings.binary_location = chromium
    flags = [
        "--headless=new", "--use-fake-device-for-media-stream", "--disable-gpu", "--disable-dev-shm-usage",
        "--autoplay-policy=no-user-gesture-required", "--no-first-run", "--disable-background-networking",
        # On a machine or in a namespace with loopback only, Chromium would otherwise find no candidate.
        "--allow-loopback-in-peer-connection",
        "--window-size=" + options.window.replace("x", ","), "--user-data-dir=" + folder,
    ]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    flags += options.flag
    log = {}
    if options.rtp_dump:
        flags += RTP_DUMP
        log = {"service_args": ["--enable-chrome-logs"], "log_path": options.rtp_dump}
    for flag in flags:
        settings.add_argument(flag)
    settings.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(executable_path=driver, **log), options=settings)
    browser.set_script_timeout(10)
    width, height = (int(number) for number in options.window.split("x"))
    # The window has a minimum width; a phone's width needs overridden metrics.
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    scripts = [REMEMBER_PEERS]
    if options.delay_video:
        scripts.append(DELAY_VIDEO % options.delay_video)
    if options.report_loss:
        scripts.append(REPORT_LOSS % options.report_loss)
    if options.temporal_layers:
        scripts.append(TEMPORAL_LAYERS)
    if options.relay:
        scripts.append(RELAY_ALONE)
    for script in scripts:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    return browser


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="connectlive-chromium-")
    browser, result, sentence = None, {}, None
    try:
        browser = start(options, folder)
        devices.allow(browser, "granted")
        if options.then_be_refused:
            devices.allow(browser, "denied", ["camera"])
        result, sentence = observe(options, browser, opens=True)
        if options.then_watch and sentence is None:
            result["watched"] = playback.watch(options, browser)
        if options.then_listen and sentence is None:
            if options.delay_video:
                browser.execute_script("window.testDelay()")
            result["heardAfterSeen"] = playback.listen(options, browser)
        if options.then_read and sentence is None:
            result["read"], sentence = playback.read(options, browser)
        if options.then_resize and sentence is None:
            result["resized"] = playback.resize(options, browser)
        if options.then_relay and sentence is None:
            sentence = returning.relay(options, browser)
        if options.then_be_refused and sentence is None:
            sentence = devices.be_refused(options, browser)
        if options.then_mute and sentence is None:
            sentence = devices.mute(options, browser)
        if options.then_roam and sentence is None:
            options.expect_publishing += result["publishing"]["framesSent"]
            sentence = returning.roam(options, browser)
        if options.then_lose_camera and sentence is None:
            options.expect_publishing += result["publishing"]["framesSent"]
            sentence = devices.lose_camera(options, browser)
        if options.then_refuse and sentence is None:
            devices.allow(browser, "denied")
            options.expect_publishing = 0
            result["refused"], sentence = observe(options, browser, opens=True)
    except (WebDriverException, LookupError) as error:
        sentence = f"Chromium could not be driven: {str(error).strip().splitlines()[0]}"
    finally:
        descendants.end(browser, folder)
    result = {"ok": sentence is None, "sentence": sentence or "Everything expected was seen and heard.", **result}
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())

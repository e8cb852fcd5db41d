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
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

import bar_codes
import descendants
from observation import Observation

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
    for flag in flags + options.flag:
        settings.add_argument(flag)
    settings.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(executable_path=driver), options=settings)
    browser.set_script_timeout(10)
    width, height = (int(number) for number in options.window.split("x"))
    # The window has a minimum width; a phone's width needs overridden metrics.
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": REMEMBER_PEERS})
    if options.delay_video:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": DELAY_VIDEO % options.delay_video})
    if options.report_loss:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": REPORT_LOSS % options.report_loss})
    if options.relay:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RELAY_ALONE})
    return browser


def age(capture):
    """How long ago, in ms, the newest frame of a stream was captured: NTP counts from 1900, the browser from 1970."""
    return capture["now"] - (capture["time"] - 2_208_988_800_000)


def missing(options, seen, result):
    """One sentence about an unmet expectation, or None."""
    if options.expect_problem:
        said = result["problem"] == options.expect_problem and bool(result["words"])
        got = f"{result['problem']} {result['words']}"
        return None if said else f"Expected the problem {options.expect_problem}, got {got}."
    if "joined" not in seen.states:
        return f"The page did not join: it is {seen.states[-1:]} and says {result['words']}."
    if seen.states[-1] != "joined":
        return f"The call ended by itself: {result['words']} [{result['problem']}]."
    moving = [v for v in result["videos"] if v["frames"] >= 5 and v["distinctPictures"] >= 3]
    if len(moving) < options.expect_video_from_others:
        return f"Expected moving video of {options.expect_video_from_others}, saw {len(moving)}: {result['videos']}."
    heard = sum(rise > 1e-7 for rise in result["audio"]["energyRises"])
    if heard < options.expect_audio or options.expect_audio and result["audio"]["packets"] <= 10:
        return f"Expected {options.expect_audio} audio from others, heard {result['audio']}."
    sent = result["publishing"]
    if sent["framesSent"] < options.expect_publishing or options.expect_publishing and sent["audioPackets"] <= 10:
        return f"Expected our camera and microphone to be sent, but {sent}."
    if options.expect_redundancy and not (
            result["audio"]["copies"] >= options.expect_redundancy and sent["audioCodecs"] == ["audio/red"]):
        return f"Expected RED both ways, got {result['audio']} and sent {sent}."
    if options.expect_waiting and options.expect_waiting not in seen.waited:
        return f"Expected a tile to show '{options.expect_waiting}' for a while, saw {seen.waited}, {seen.waiting}."
    recent = [c for c in seen.last.get("captures", {}).values() if c["offset"] == 0 and 0 <= age(c) < 30_000]
    if len(recent) < options.expect_capture_times:
        return f"Expected capture times of {options.expect_capture_times}, got {seen.last.get('captures')}."
    ways = [session["candidate"] for session in result["sessions"]]
    if options.relay and not (ways and all(way == "relay" for way in ways)):
        return f"Expected sessions through a relay, found {ways}."
    relays = [session["relay"] for session in result["sessions"]]
    if options.expect_relay and not (relays and all(f":{options.expect_relay}?" in str(relay) for relay in relays)):
        return f"Expected sessions through TURN servers at port {options.expect_relay}, found {relays}."
    profiles = [str(session["srtp"]) for session in result["sessions"]]
    if options.expect_srtp and not (profiles and all(options.expect_srtp in profile for profile in profiles)):
        return f"Expected SRTP {options.expect_srtp}, found {profiles}."
    return None


def allow(browser, setting, devices=("camera", "microphone")):
    """Sets the browser's answer, "granted" or "denied", to pages that ask for camera and microphone."""
    for name in devices:
        browser.execute_cdp_cmd("Browser.setPermission", {"permission": {"name": name}, "setting": setting})


# Ends the camera's track, as a lost device does.
LOSE_CAMERA = """
for (const sender of window.testPeers.flatMap((peer) => peer.getSenders()))
    if (sender.track?.kind === 'video') sender.track.dispatchEvent(new Event('ended'));
"""


def wait_for(browser, script, seconds):
    end = time.monotonic() + seconds
    while not browser.execute_script(script):
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def lose_camera(options, browser):
    """Loses the camera and turns it on again. One sentence about an unmet expectation, or None."""
    browser.execute_script(LOSE_CAMERA)
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio'", 10):
        return "The page still publishes the camera that it lost."
    browser.execute_script("document.querySelector('#camera').click()")
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio video'", 10):
        return "The page did not publish the camera again."
    return observe(options, browser)[1]


# Other TURN servers with the same passwords, as the server tells them. The server does not know of this message, so the page must
# not count it.
NAME_RELAY = """
const socket = window.testSockets.at(-1);
socket.send = function(text) {
    const message = JSON.parse(text);
    if (message.type === 'ack') message.received -= 1;
    WebSocket.prototype.send.call(this, JSON.stringify(message));
};
const [port] = arguments;
const iceServers = window.testPeers[0].getConfiguration().iceServers.map(({ urls, ...server }) =>
    ({ urls: [urls].flat().map((url) => url.replace(/:\\d+\\?/, `:${port}?`)), ...server }));
socket.onmessage({ data: JSON.stringify({ type: 'iceServers', iceServers }) });
"""


def relay(options, browser):
    """Restarts ICE through other TURN servers. One sentence about an unmet expectation, or None."""
    browser.execute_script(NAME_RELAY, options.then_relay)
    sentence = restart_ice(browser)
    if sentence is not None:
        return sentence
    browser.execute_script(FIND_WAY)
    options.expect_relay = options.then_relay
    return observe(options, browser)[1]


# The server refuses each publication from now on: it names no stream. The page is told the code that is given, and the pause before
# its next attempt lasts until CONTINUE.
REFUSE = """
const [code] = arguments, socket = window.testSockets.at(-1), { onmessage } = socket, refused = new Set(), { setTimeout } = window;
socket.send = function(text) {
    const message = JSON.parse(text);
    if (message.type === 'publish') {
        message.streams = [];
        refused.add(message.id);
    }
    WebSocket.prototype.send.call(this, JSON.stringify(message));
};
socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    onmessage({ data: refused.has(message.id) ? JSON.stringify({ ...message, code }) : data });
};
window.testPauses = [];
window.setTimeout = (action, time, ...more) =>
    time === 1000 ? window.testPauses.push(action) : setTimeout(action, time, ...more);
window.testAccept = () => {
    delete socket.send;
    Object.assign(socket, { onmessage });
    Object.assign(window, { setTimeout });
};
"""
ACCEPT = "window.testAccept();"
CONTINUE = """
window.testLate = [];
window.testSockets.at(-1).send = function(text) {
    if (JSON.parse(text).type === 'publish') window.testLate.push(text);
    WebSocket.prototype.send.call(this, text);
};
for (const action of window.testPauses) action();
"""
# The server no longer knows the page, which has not left by itself.
EXPEL = "window.testSockets.at(-1).send(JSON.stringify({ type: 'leave', id: 1_000_000 }));"
CLICK_CAMERA = "document.querySelector('#camera').click();"
SENDS_MICROPHONE = """
return window.testPeers.some((peer) => peer.connectionState === 'connected'
    && peer.getSenders().some(({ track }) => track?.kind === 'audio' && track.readyState === 'live'));
"""


def be_refused(options, browser):
    """One sentence about an unmet expectation, or None."""
    if not wait_for(browser, f"return document.body.dataset.publishing === 'audio' && (() => {{{SENDS_MICROPHONE}}})()", 20):
        return "The page does not publish its microphone without the camera."
    allow(browser, "granted")
    participant = browser.execute_script("return document.body.dataset.participant")
    browser.execute_script(REFUSE, "1441")
    browser.execute_script(CLICK_CAMERA)
    if not wait_for(browser, "return document.body.dataset.problem === '1441'", 20):
        return "The page does not tell that its camera was refused."
    if not browser.execute_script(SENDS_MICROPHONE):
        return "The page lost its microphone when its camera was refused."
    browser.execute_script(ACCEPT + CLICK_CAMERA)
    options.expect_publishing = 30
    result, sentence = observe(options, browser)
    if sentence is not None:
        return f"After a refused camera: {sentence}"
    if result["participant"] != participant:
        return "The page became another participant when its camera was refused."
    return rejoin(options, browser)


def rejoin(options, browser):
    """Joins again while the camera's publication waits for its next attempt, which is after that."""
    browser.execute_script(LOSE_CAMERA)
    if not wait_for(browser, "return document.body.dataset.publishing === 'audio'", 10):
        return "The page still publishes the camera that it lost."
    browser.execute_script(REFUSE, "server.too-many-requests")
    browser.execute_script(CLICK_CAMERA)
    if not wait_for(browser, "return window.testPauses.length > 0", 20):
        return "The page does not wait before it publishes its camera again."
    browser.execute_script(ACCEPT + EXPEL)
    if not has_returned(browser, 1):
        return "The page did not join again."
    result, sentence = observe(options, browser)
    if sentence is not None:
        return f"After the page joined again: {sentence}"
    browser.execute_script(CONTINUE)
    options.expect_publishing += result["publishing"]["framesSent"]
    sentence = observe(options, browser)[1]
    if sentence is None and browser.execute_script("return window.testLate.length") > 0:
        sentence = "The page repeated a publication of its former participant."
    return sentence


# What a page says about the only participant who publishes beside its own.
MUTED = """
const tile = document.querySelector('.tile:not([data-self])');
return tile && [tile.querySelector('.badge').textContent, tile.querySelector('.note').textContent].join();
"""


def mute(options, browser):
    """Mutes for a page that comes later, and unmutes for one that is there. One sentence about an unmet expectation, or None."""
    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    watching = browser.current_window_handle
    for words in ("muted,Their camera is off", ","):
        browser.switch_to.window(page)
        for button in ("microphone", "camera"):
            browser.execute_script(f"document.querySelector('#{button}').click()")
        browser.switch_to.window(watching)
        if words != ",":
            browser.get(options.page.replace("join=1", "join=0"))
            browser.execute_script("document.querySelector('#watch').click()")
        if not wait_for(browser, f"return (() => {{{MUTED}}})() === '{words}'", 20):
            return f"Another page does not show '{words}' but '{browser.execute_script(MUTED)}'."
    return None


# Ends the page's WebSocket without a farewell.
DROP_SOCKET = "window.testSockets.at(-1).close()"

# From now on, nothing gets through the WebSocket, which stays open.
MUTE_SOCKET = ("window.testMuted = performance.now();"
               "Object.assign(window.testSockets.at(-1), { send() {}, onmessage: null });")
# How long the page waited, in milliseconds, until it opened the next WebSocket.
WAITED = "return window.testSockets.at(-1).testBegan - window.testMuted"

# What a browser tells a page whose network is another one. The page looks for the server at once then.
NETWORK_EVENTS = ("dispatchEvent(new Event('online'));", "navigator.connection.dispatchEvent(new Event('change'));")
# In milliseconds: after a silence alone, the page would not look before.
SILENCE = 9000

# Tells the page that its peers have lost their way, which makes it restart ICE. The connection state is real again afterwards.
LOSE_WAY = """
window.testUfrags = window.testPeers.map((peer) => peer.localDescription.sdp.match(/ice-ufrag:(\\S+)/)[1]);
for (const peer of window.testPeers) {
    Object.defineProperty(peer, 'connectionState', { get: () => 'disconnected', configurable: true });
    peer.onconnectionstatechange();
    delete peer.connectionState;
}
"""

# Tells the page the real state of its peers again: it restarts no more.
FIND_WAY = "for (const peer of window.testPeers) peer.onconnectionstatechange();"

RESTARTED = """
return window.testPeers.every((peer, index) => peer.signalingState === 'stable'
    && peer.currentLocalDescription.sdp.match(/ice-ufrag:(\\S+)/)[1] !== window.testUfrags[index]
    && peer.connectionState === 'connected');
"""


def roam(options, browser):
    """Loses the WebSocket in several ways, then the way of media. One sentence about an unmet expectation, or None."""
    participant = browser.execute_script("return document.body.dataset.participant")
    losses = [DROP_SOCKET, DROP_SOCKET, *(MUTE_SOCKET + event for event in NETWORK_EVENTS)]
    for count, loss in enumerate(losses, 1):
        browser.execute_script(loss)
        if not has_returned(browser, count):
            return f"The page did not come back after loss {count} of its WebSocket."
        if loss is not DROP_SOCKET and browser.execute_script(WAITED) >= SILENCE:
            return f"The page did not notice loss {count} of its WebSocket before the silence."
    for sentence in (observe(options, browser)[1], restart_ice(browser)):
        if sentence is not None:
            return sentence
    browser.execute_script(FIND_WAY + MUTE_SOCKET)
    sentence = restart_ice(browser)
    if sentence is not None:
        return sentence
    if not has_returned(browser, len(losses) + 1):
        return "The page did not come back after the loss of its WebSocket and its way."
    if browser.execute_script(WAITED) >= SILENCE:
        return "The page waited for a silence, although its way was lost."
    if browser.execute_script("return document.body.dataset.participant") != participant:
        return "The page came back as another participant."
    options.expect_publishing += 100
    return observe(options, browser)[1]


def has_returned(browser, count):
    return wait_for(browser, f"return document.body.dataset.returns === '{count}'", 20)


def restart_ice(browser):
    browser.execute_script(LOSE_WAY)
    return None if wait_for(browser, RESTARTED, 20) else "The page did not restart ICE of its sessions."


def observe(options, browser, opens=False):
    if opens:
        browser.get(options.page)
    seen = Observation()
    end = time.monotonic() + options.seconds
    while True:
        seen.look(browser)
        over = time.monotonic() >= end
        if over or options.until_expected or options.expect_problem:
            result = seen.result()
            sentence = missing(options, seen, result)
            if over or (sentence is None):
                break
        time.sleep(0.2)
    if options.screenshot:
        browser.save_screenshot(options.screenshot)
    result["console"] = [entry["message"][:300] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return result, sentence


class Restart:
    """An ICE restart of the page's sessions, which begins at SIGUSR1."""

    def __init__(self):
        self.is_wanted = self.has_begun = self.is_over = False
        signal.signal(signal.SIGUSR1, self.want)

    def want(self, *_):
        self.is_wanted = True

    def advance(self, browser):
        if self.is_wanted and not self.has_begun:
            self.has_begun = True
            browser.execute_script(LOSE_WAY)
        elif self.has_begun and not self.is_over and browser.execute_script(RESTARTED):
            self.is_over = True
            browser.execute_script(FIND_WAY)


def watch(options, browser):
    """The SSRCs of the videos that are decoded, their decoded frames, and the longest time without one."""
    seen, decoded, ssrcs, first = Observation(), None, set(), 0
    restart = Restart()
    end = time.monotonic() + options.then_watch
    last, longest = time.monotonic(), 0
    while time.monotonic() < end:
        seen.look(browser)
        restart.advance(browser)
        reports = [r for r in seen.reports("inbound-rtp", "video") if r.get("framesDecoded")]
        ssrcs |= {r["ssrc"] for r in reports}
        count = sum(r["framesDecoded"] for r in reports)
        if decoded is None:
            first = count
        now = time.monotonic()
        longest = max(longest, now - last)
        if count != decoded:
            decoded, last = count, now
        time.sleep(0.1)
    return {"ssrcs": sorted(ssrcs), "framesDecoded": (decoded or 0) - first, "longestPause": longest,
            "hasRestarted": restart.is_over}


# Notes when each flash of the test pattern is shown, and when each beep is played.
LISTEN = """
window.testFlashes = []; window.testBeeps = [];
const video = document.querySelector('.tile:not([data-self]) video');
const canvas = document.createElement('canvas');
canvas.width = 16; canvas.height = 12;
const drawing = canvas.getContext('2d', { willReadFrequently: true });
let wasBright = true;
const look = (now, { expectedDisplayTime }) => {
    drawing.drawImage(video, 0, 0, 16, 12);
    const pixels = drawing.getImageData(0, 0, 16, 12).data;
    let sum = 0;
    for (let i = 0; i < pixels.length; i += 4) sum += 0.3 * pixels[i] + 0.59 * pixels[i + 1] + 0.11 * pixels[i + 2];
    const isBright = sum / (pixels.length / 4) > 180;
    if (isBright && !wasBright) window.testFlashes.push(expectedDisplayTime);
    wasBright = isBright;
    video.requestVideoFrameCallback(look);
};
video.requestVideoFrameCallback(look);
const context = new AudioContext();
const analyser = context.createAnalyser();
analyser.fftSize = 4096;
context.createMediaStreamSource(document.querySelector('#speakers audio').srcObject).connect(analyser);
const samples = new Float32Array(4096);
let last = performance.now();
setInterval(() => {
    const now = performance.now();
    analyser.getFloatTimeDomainData(samples);
    const onset = samples.findIndex((sample) => Math.abs(sample) > 0.15);
    const at = now - (samples.length - onset) / context.sampleRate * 1000;
    // A beep whose beginning is in the window.
    if (onset > 480 && at - last > 500) window.testBeeps.push(at);
    if (onset >= 0) last = now;
}, 20);
"""


def listen(options, browser):
    """How long after each flash its beep is heard, in ms, as [seconds since the beginning, ms]."""
    begun = browser.execute_script("return performance.now()")
    browser.execute_script(LISTEN)
    time.sleep(options.then_listen)
    flashes, beeps = browser.execute_script("return [window.testFlashes, window.testBeeps]")
    pairs = [(flash, min(beeps, key=lambda beep: abs(beep - flash))) for flash in flashes if beeps]
    return [[round((flash - begun) / 1000, 1), round(beep - flash, 1)] for flash, beep in pairs if abs(beep - flash) < 500]


# Makes the tile of somebody else so wide, as a smaller window would.
RESIZE = """
const tile = document.querySelector('.tile:not([data-self])');
Object.assign(tile.style, { width: arguments[0] + 'px', minWidth: '0', height: arguments[0] * 3 / 4 + 'px' });
"""
WIDTH = "return document.querySelector('.tile:not([data-self]) video').videoWidth"


def resize(options, browser):
    """The width of the frames in a tile of each width, as soon as it is the expected one, or after 20 s."""
    seen = []
    for step in options.then_resize.split(","):
        width, expected = map(int, step.split(":"))
        browser.execute_script(RESIZE, width)
        has_come = wait_for(browser, f"{WIDTH} === {expected}", 20)
        seen.append({"tile": width, "frame": expected if has_come else browser.execute_script(WIDTH)})
    return seen


def read(options, browser):
    """For each frame that was seen: its stream, its number, and when at the latest, in tenths of a second of the monotonic clock.
    And one sentence about an unmet expectation at the end, or None."""
    print("reading", flush=True)
    seen, last = [], {}
    while not os.path.exists(options.then_read):
        codes = bar_codes.read(browser)
        tick = int(time.monotonic() * 10)
        for stream, number in codes:
            if last.get(stream) != number:
                last[stream] = number
                seen.append([stream, number, tick])
        time.sleep(0.05)
    with open(options.then_read) as file:
        present = file.read()
    if not present:
        return seen, None
    options.expect_video_from_others = int(present)
    return seen, observe(options, browser)[1]


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="connectlive-chromium-")
    browser, result, sentence = None, {}, None
    try:
        browser = start(options, folder)
        allow(browser, "granted")
        if options.then_be_refused:
            allow(browser, "denied", ["camera"])
        result, sentence = observe(options, browser, opens=True)
        if options.then_watch and sentence is None:
            result["watched"] = watch(options, browser)
        if options.then_listen and sentence is None:
            if options.delay_video:
                browser.execute_script("window.testDelay()")
            result["heardAfterSeen"] = listen(options, browser)
        if options.then_read and sentence is None:
            result["read"], sentence = read(options, browser)
        if options.then_resize and sentence is None:
            result["resized"] = resize(options, browser)
        if options.then_relay and sentence is None:
            sentence = relay(options, browser)
        if options.then_be_refused and sentence is None:
            sentence = be_refused(options, browser)
        if options.then_mute and sentence is None:
            sentence = mute(options, browser)
        if options.then_roam and sentence is None:
            options.expect_publishing += result["publishing"]["framesSent"]
            sentence = roam(options, browser)
        if options.then_lose_camera and sentence is None:
            options.expect_publishing += result["publishing"]["framesSent"]
            sentence = lose_camera(options, browser)
        if options.then_refuse and sentence is None:
            allow(browser, "denied")
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

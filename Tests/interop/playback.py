"""How a page plays what it receives: how evenly, in which size, how far sound is from video, and which frames."""
import os
import time

import bar_codes
from expectations import observe, wait_for
from observation import Observation
from returning import Restart


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

#!/usr/bin/python3
"""Publishes a film from headless Chromium through the room page; prints the estimate of its link, a line of JSON each 0.2 s.

Needs Debian's chromium, chromium-driver and python3-selenium. `at` is CLOCK_MONOTONIC in seconds."""
import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# One encoding with a given maximum, whatever the page asks for; keeps the peer connections.
ONE_ENCODING = """
window.peers = [];
window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...given) { super(...given); window.peers.push(this); }
    addTransceiver(track, options) {
        const encodings = track.kind === 'video' ? { sendEncodings: [{ maxBitrate: %d }] } : {};
        return super.addTransceiver(track, { direction: options.direction, ...encodings });
    }
};
RTCRtpSender.prototype.setParameters = async () => {};
"""

ESTIMATE = """
const done = arguments[arguments.length - 1];
(async () => {
    let rate = null;
    for (const peer of window.peers ?? []) {
        if (peer.connectionState !== 'connected' || !peer.getSenders().some((sender) => sender.track)) continue;
        for (const entry of (await peer.getStats()).values()) {
            if (entry.type === 'candidate-pair' && entry.availableOutgoingBitrate) rate = entry.availableOutgoingBitrate;
        }
    }
    return { bitsPerSecond: rate };
})().then(done, () => done(null));
"""


@contextlib.contextmanager
def chromium(page, film=None, script=None):
    """Headless Chromium at a page that may use a camera: a film in Y4M, or Chromium's own pattern."""
    origin = page.split("/?", maxsplit=1)[0]
    settings = webdriver.ChromeOptions()
    settings.binary_location = shutil.which("chromium")
    with tempfile.TemporaryDirectory(prefix="chromium-") as folder:
        flags = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--use-fake-ui-for-media-stream",
                 "--use-fake-device-for-media-stream",
                 f"--unsafely-treat-insecure-origin-as-secure={origin}", f"--user-data-dir={folder}"]
        if film:
            flags.append(f"--use-file-for-fake-video-capture={film}")
        for flag in flags + (["--no-sandbox"] if os.geteuid() == 0 else []):
            settings.add_argument(flag)
        browser = webdriver.Chrome(service=Service(executable_path=shutil.which("chromedriver")), options=settings)
        try:
            browser.set_script_timeout(10)
            if script:
                browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
            browser.get(page)
            yield browser
            problem = browser.execute_script("return document.body.dataset.problem ?? null")
            if problem:
                sys.exit(f"The page has the problem {problem}.")
        finally:
            browser.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--page", required=True)
    parser.add_argument("--film", required=True, help="Y4M, which Chromium repeats")
    parser.add_argument("--bitrate", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    with chromium(options.page, options.film, ONE_ENCODING % options.bitrate) as browser:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            sample = browser.execute_async_script(ESTIMATE)
            if sample:
                print(json.dumps({"at": time.monotonic(), **sample}), flush=True)
            time.sleep(0.2)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Publishes and watches from headless Chromium through the room page; prints how the videos came, a line of JSON for each.

Needs Debian's chromium, chromium-driver and python3-selenium. Times are CLOCK_MONOTONIC in seconds."""
import argparse
import json
import time

from chromium_sender import chromium

KEPT = """
window.peers = [];
window.RTCPeerConnection = class extends RTCPeerConnection {
    constructor(...given) { super(...given); window.peers.push(this); }
};
// What the page is told of streams, and the views that it asks for.
window.carried = {};
window.publishers = {};
window.views = {};
const entered = ({ id, streams }) => streams.forEach((stream) => window.publishers[stream.id] = id);
window.WebSocket = class extends WebSocket {
    constructor(...given) {
        super(...given);
        this.addEventListener("message", ({ data }) => {
            const message = JSON.parse(data);
            if (message.type === "subscribed") window.carried[message.mid] = message.stream;
            (message.participants ?? []).forEach(entered);
            if (message.type === "participantEntered") entered(message.participant);
            if (message.type === "streamPublished") window.publishers[message.stream.id] = message.participant;
        });
    }
    send(text) {
        const message = JSON.parse(text);
        if (message.width && message.stream) window.views[message.stream] = [message.width, message.height];
        super.send(text);
    }
};
"""

VIDEOS = """
const done = arguments[arguments.length - 1];
(async () => {
    const videos = [];
    for (const peer of window.peers ?? []) {
        if (peer.connectionState !== 'connected') continue;
        for (const entry of (await peer.getStats()).values()) {
            if (entry.type !== 'inbound-rtp' || entry.kind !== 'video') continue;
            const { id, mid, frameWidth, framesDecoded, freezeCount, totalFreezesDuration } = entry;
            const stream = window.carried[mid];
            videos.push({ id, frameWidth, framesDecoded, freezeCount, totalFreezesDuration,
                participant: window.publishers[stream], view: window.views[stream] });
        }
    }
    return videos;
})().then(done, () => done([]));
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--page", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    videos = {}
    with chromium(options.page, script=KEPT) as browser:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            for entry in browser.execute_async_script(VIDEOS):
                now = time.monotonic()
                video = videos.setdefault(entry["id"], {"stream": entry["id"], "since": now, "firstFrame": None, "sizes": []})
                if not entry["framesDecoded"]:
                    continue
                video["firstFrame"] = video["firstFrame"] or now
                video |= {"participant": entry.get("participant"), "view": entry.get("view"), "frames": entry["framesDecoded"], "freezeCount": entry["freezeCount"],
                          "frozen": entry["totalFreezesDuration"], "lastFrame": now}
                width = entry["frameWidth"]
                if not video["sizes"] or video["sizes"][-1]["width"] != width:
                    video["sizes"].append({"at": now, "width": width})
            time.sleep(0.25)
    for video in videos.values():
        if video["firstFrame"]:
            print(json.dumps(video))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Publishes and watches a video in a room with aiortc for a while; prints the longest time without a decoded frame.

Needs Debian's python3-aiortc and python3-wsproto. Prints one line of JSON. aiortc neither resumes a session nor restarts
ICE."""
import argparse
import asyncio
import json
import os
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Tests", "interop"))

from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection  # noqa: E402
from aiortc.mediastreams import MediaStreamError  # noqa: E402
from aiortc_client import Signalling, answer, publish, sign_in  # noqa: E402


def configuration(servers, relay):
    """aiortc has no policy of relays alone: without host candidates, it is the same."""
    if relay:
        import aioice.ice
        gather = aioice.ice.Connection.get_component_candidates

        async def relays_alone(*arguments, **options):
            return [found for found in await gather(*arguments, **options) if found.type == "relay"]

        aioice.ice.Connection.get_component_candidates = relays_alone
    return RTCConfiguration([RTCIceServer(server["urls"], server.get("username"), server.get("credential"))
                             for server in servers if server["urls"]])


async def take_part(options, report):
    signalling = Signalling()
    await signalling.open(urllib.parse.urlsplit(options.server))
    joined = await signalling.request(type="join", version=1, token=sign_in(options), room=options.room)
    settings = configuration(joined.get("iceServers", []), options.relay)
    down, up = RTCPeerConnection(settings), RTCPeerConnection(settings)
    try:
        streams = [stream for participant in joined["participants"] for stream in participant["streams"]]
        videos = [stream for stream in streams if stream["media"] == "video"]
        while down.connectionState != "connected":
            message = await signalling.messages.get()
            if message["type"] == "offer":
                await answer(signalling, down, message)
                down.on("connectionstatechange", lambda: signalling.messages.put_nowait({"type": "state"}))
        mid = (await signalling.request(type="subscribe", stream=videos[0]["id"]))["mid"]
        track = next(t.receiver.track for t in down.getTransceivers() if t.mid == mid)
        await publish(signalling, up)
        end, last = time.monotonic() + options.seconds, None
        while (rest := end - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(track.recv(), rest)
            except (asyncio.TimeoutError, MediaStreamError) as error:
                report["ended"] = isinstance(error, MediaStreamError)
                break
            now = time.monotonic()
            report["longest"] = max(report["longest"], now - (last or now))
            report["frames"], last = report["frames"] + 1, now
        report["silent"] = time.monotonic() - (last or 0)
    finally:
        report["states"] = [down.connectionState, up.connectionState]
        await asyncio.gather(down.close(), up.close())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ["--server", "--service-id", "--service-secret", "--room"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--relay", action="store_true", help="through TURN servers alone")
    options = parser.parse_args()
    report = {"frames": 0, "longest": 0.0}
    asyncio.run(asyncio.wait_for(take_part(options, report), options.seconds + 30))
    print(json.dumps(report))


if __name__ == "__main__":
    main()

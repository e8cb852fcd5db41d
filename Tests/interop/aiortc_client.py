#!/usr/bin/python3
"""Joins a room with a stack that is not ours, by docs/signalling.md alone: receives a video, publishes one, says how.

Needs Debian's python3-aiortc and python3-wsproto. Prints one line of JSON; exits 0 if pictures moved, over AES-CM."""
import argparse
import asyncio
import hashlib
import json
import sys
import time
import urllib.parse
import urllib.request

import aioice.ice
from aiortc import RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from OpenSSL import SSL
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Ping, Request, TextMessage


class Signalling:
    async def open(self, url):
        self.reader, self.writer = await asyncio.open_connection(url.hostname, url.port)
        self.connection, self.answers, self.messages = WSConnection(ConnectionType.CLIENT), {}, asyncio.Queue()
        self.accepted = asyncio.get_running_loop().create_future()
        self.send(Request(host=url.netloc, target="/v1/room"))
        self.task = asyncio.create_task(self.read())
        await self.accepted

    def send(self, event=None, **message):
        self.writer.write(self.connection.send(event or TextMessage(json.dumps(message))))

    async def request(self, **message):
        number = len(self.answers) + 1
        self.answers[number] = asyncio.get_running_loop().create_future()
        self.send(id=number, **message)
        answer = await asyncio.wait_for(self.answers[number], 8)
        if answer["type"] == "error":
            raise RuntimeError(f"{message['type']} was refused: {answer['message']} [{answer['code']}]")
        return answer

    async def read(self):
        text = ""
        while data := await self.reader.read(65536):
            self.connection.receive_data(data)
            for event in self.connection.events():
                if isinstance(event, AcceptConnection):
                    self.accepted.set_result(None)
                elif isinstance(event, Ping):
                    self.send(event.response())
                elif isinstance(event, TextMessage):
                    text += event.data
                    if event.message_finished:
                        message, text = json.loads(text), ""
                        answer = self.answers.get(message.get("id"))
                        answer.set_result(message) if answer else self.messages.put_nowait(message)


class Bars(VideoStreamTrack):
    async def recv(self):
        frame = await super().recv()
        plane, shift = frame.planes[0], frame.pts // 500 % 256
        plane.update(bytes((column + shift) % 256 for column in range(256)) * (plane.buffer_size // 256))
        return frame


def sign_in(options):
    body = json.dumps({"serviceId": options.service_id, "serviceSecret": options.service_secret}).encode()
    request = urllib.request.Request(options.server + "/v1/sign-in", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)["accessToken"]


async def answer(signalling, peer, offer):
    """aiortc does not trickle: the server's candidates are in the offer, and ours go into the answer."""
    await peer.setRemoteDescription(RTCSessionDescription(offer["sdp"], "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    signalling.send(type="answer", session="down", revision=offer["revision"], sdp=peer.localDescription.sdp)


async def publish(signalling, peer):
    video = peer.addTransceiver(Bars(), direction="sendonly")
    await peer.setLocalDescription(await peer.createOffer())
    stream = {"mid": video.mid, "extraValue": "aiortc"}
    published = await signalling.request(type="publish", sdp=peer.localDescription.sdp, streams=[stream])
    await peer.setRemoteDescription(RTCSessionDescription(published["sdp"], "answer"))
    return published["streams"][0]["stream"]


def srtp_profile(peer):
    chosen = SSL._lib.SSL_get_selected_srtp_profile(peer.getTransceivers()[0].receiver.transport.ssl._ssl)
    return SSL._ffi.string(SSL._ffi.cast("char **", chosen)[0]).decode() if chosen else None


async def take_part(options, report):
    signalling, down, up = Signalling(), RTCPeerConnection(), RTCPeerConnection()
    try:
        await signalling.open(urllib.parse.urlsplit(options.server))
        joined = await signalling.request(type="join", version=1, token=sign_in(options), room=options.room)
        streams = [stream for participant in joined["participants"] for stream in participant["streams"]]
        down.on("connectionstatechange", lambda: signalling.messages.put_nowait({"type": down.connectionState}))
        started, videos, pictures = time.monotonic(), [], set()
        while not videos or down.connectionState != "connected":  # aiortc never asks for a keyframe that it missed
            message = await signalling.messages.get()
            if message["type"] == "offer":
                await answer(signalling, down, message)
            elif message["type"] == "streamPublished":
                streams.append(message["stream"])
            videos = [stream for stream in streams if stream["media"] == "video"]
        mid = (await signalling.request(type="subscribe", stream=videos[0]["id"]))["mid"]
        track = next(t.receiver.track for t in down.getTransceivers() if t.mid == mid)
        report.update(stream=videos[0], mid=mid, published=await publish(signalling, up))
        while report["frames"] < options.frames:
            frame = await track.recv()
            pictures.add(hashlib.sha1(frame.to_ndarray(format="yuv420p").tobytes()).digest())
            report.setdefault("firstFrameMs", round((time.monotonic() - started) * 1000))
            report.update(frames=report["frames"] + 1, distinctPictures=len(pictures), height=frame.height)
        report["srtpProfile"] = srtp_profile(down)
        report["packetsSent"] = max(getattr(s, "packetsSent", 0) for s in (await up.getStats()).values())
        await signalling.request(type="leave")
    finally:
        await asyncio.gather(down.close(), up.close())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--server", "--service-id", "--service-secret", "--room"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--frames", type=int, default=30, help="how many decoded frames to wait for (default 30)")
    parser.add_argument("--seconds", type=float, default=20, help="give up after this (default 20)")
    options = parser.parse_args()
    if not aioice.ice.get_host_addresses(True, True):  # aioice leaves loopback out, even where there is nothing else
        aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
    report, problem = {"frames": 0, "distinctPictures": 0, "packetsSent": 0}, None
    try:
        asyncio.run(asyncio.wait_for(take_part(options, report), options.seconds))
        if report["distinctPictures"] < options.frames / 2:
            problem = f"{report['frames']} frames came, only {report['distinctPictures']} of them different."
        elif report["srtpProfile"] != "SRTP_AES128_CM_SHA1_80":
            problem = f"The handshake chose {report['srtpProfile']}, and only SRTP_AES128_CM_SHA1_80 was offered."
        elif report["packetsSent"] == 0:
            problem = "Our own video was published, but no packet of it left."
    except (OSError, RuntimeError, asyncio.TimeoutError) as error:
        problem = str(error) or f"After {options.seconds:g} s only {report['frames']} frames had come."
    print(json.dumps({"ok": problem is None, "sentence": problem or "A foreign stack received moving video.", **report}))
    sys.exit(0 if problem is None else 1)


if __name__ == "__main__":
    main()

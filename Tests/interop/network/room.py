"""A participant that only signals (docs/signalling.md): observes who enters and leaves, and the server's own messages."""
import base64
import http.client
import json
import os
import re
import socket
import struct
import threading
import time

from hosts import Broken, expect, wait_for

PORT = 7880


def request(host, address, method, path, body=None, headers=None, port=PORT):
    """One HTTP exchange from a host; (status, text)."""
    with host:  # the socket that is opened here stays in the host's namespace
        connection = http.client.HTTPConnection(address, port, timeout=5)
        connection.connect()
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_reachable(host, address, port=PORT):
    with host:
        try:
            socket.create_connection((address, port), 5).close()
        except OSError:
            return False
    return True


def sign_in(host, address, service, secret):
    body = json.dumps({"serviceId": service, "serviceSecret": secret})
    status, text = request(host, address, "POST", "/v1/sign-in", body, {"Content-Type": "application/json"})
    expect(status == 200, f"sign-in from {host.name} at {address} was answered {status}: {text}")
    return json.loads(text)["accessToken"]


class Participant:
    """Joins; a thread reads and answers pings, else the server would take it as gone."""

    def __init__(self, host, address, token, room):
        self.messages, self.candidates = [], set()  # messages with the time they came at
        with host:
            self.socket = socket.create_connection((address, PORT), 5)
        host.network.participants.append(self)
        self.stream = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /v1/room HTTP/1.1\r\nHost: {address}:{PORT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        status = self.stream.readline()
        expect(b" 101 " in status, f"the WebSocket from {host.name} to {address} was refused: {status.decode()}")
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        self.socket.settimeout(None)
        threading.Thread(target=self.read, daemon=True).start()
        self.send({"type": "join", "id": 1, "version": 1, "token": token, "room": room})
        self.joined = wait_for(lambda: self.answer(1), 5, "the answer to 'join'")

    def send(self, message):
        self.frame(1, json.dumps(message).encode())

    def frame(self, opcode, data):
        """A masked frame; the mask is zeros, which leave the data as they are."""
        length = bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0x80 | 126, len(data))
        self.socket.sendall(bytes([0x80 | opcode]) + length + bytes(4) + data)

    def read(self):
        try:
            while len(head := self.stream.read(2)) == 2:
                length = head[1] & 0x7F
                if length >= 126:
                    length = int.from_bytes(self.stream.read(2 if length == 126 else 8), "big")
                data = self.stream.read(length)
                if head[0] & 15 == 9:
                    self.frame(10, data)
                elif head[0] & 15 == 1:
                    self.take(json.loads(data))
        except OSError:
            pass  # closed

    def take(self, message):
        self.messages.append((time.monotonic(), message))
        if message["type"] in ("offer", "candidate"):
            text = message.get("sdp") or message["candidate"]
            self.candidates |= set(re.findall(r"candidate:\S+ 1 udp \d+ (\S+) \d+ typ \w+", text, re.IGNORECASE))

    def answer(self, number):
        return next((message for _, message in list(self.messages) if message.get("id") == number), None)

    def offered_addresses(self):
        """The addresses at which the server says it takes media."""
        wait_for(lambda: any(m["type"] == "candidate" and m["candidate"] == "" for _, m in list(self.messages)), 5,
                 "the end of the server's candidates")
        return self.candidates

    def publishers(self):
        """The participants that have published since this one joined, in that order."""
        names = [message["participant"] for _, message in list(self.messages) if message["type"] == "streamPublished"]
        return list(dict.fromkeys(names))

    def wait_for_publisher(self, number, seconds=20):
        return wait_for(lambda: self.publishers()[number:number + 1], seconds, f"publisher {number + 1}")[0]

    def wait_for_leaving(self, participant, since, seconds):
        """When the participant was told to have left, in seconds from `since`."""
        def left():
            return next((when for when, message in list(self.messages)
                         if message["type"] == "participantLeft" and message["participant"] == participant), None)
        deadline = since + seconds - time.monotonic()
        try:
            return wait_for(left, max(0, deadline), "") - since
        except Broken:
            raise Broken(f"the others did not see {participant} leave within {seconds} s") from None

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

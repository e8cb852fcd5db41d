"""The packets of a log that chromium.py --rtp-dump writes."""
import os
import re
from dataclasses import dataclass

LINE = re.compile(rb"([IO]) \d\d:\d\d:\d\d\.\d+ 0000 ((?:[0-9a-f]{2} )+)# RTP_DUMP")


class Dump:
    """Reads a log that grows."""

    def __init__(self, path):
        self.path, self.place, self.found = path, 0, []

    def packets(self):
        """Each packet until now that came in ("I") or went out ("O")."""
        if os.path.exists(self.path):
            with open(self.path, "rb") as log:
                log.seek(self.place)
                *lines, rest = log.read().split(b"\n")
                self.place = log.tell() - len(rest)
            for line in lines:
                if found := LINE.match(line):
                    self.found.append((found[1].decode(), bytes.fromhex(found[2].decode())))
        return self.found


def is_rtcp(packet):
    return 192 <= packet[1] <= 223  # RFC 5761, section 4


@dataclass
class VideoPacket:
    timestamp: int
    picture: int
    layer: int  # TID
    base: int | None  # TL0PICIDX
    references: list  # picture ids


def payload_of(packet):
    start = 12 + 4 * (packet[0] & 15)
    if packet[0] & 16:
        start += 4 + 4 * int.from_bytes(packet[start + 2:start + 4], "big")
    return packet[start:]


def vp8(payload):
    """The fields of a payload descriptor with a picture id, TL0PICIDX and TID (RFC 7741, section 4.2)."""
    if payload[0] & 0x80 and payload[1] & 0xE0 == 0xE0 and payload[2] & 0x80:
        return int.from_bytes(payload[2:4], "big") & 0x7FFF, payload[5] >> 6, payload[4], []
    return None


def vp9(payload):
    """The fields of a payload descriptor with a picture id and TID, in flexible mode (RFC 9628, section 4.2)."""
    if payload[0] & 0xB0 != 0xB0 or not payload[1] & 0x80:
        return None
    picture, place, references = int.from_bytes(payload[1:3], "big") & 0x7FFF, 4, []
    while payload[0] & 0x40:
        references.append((picture - (payload[place] >> 1)) % 0x8000)
        if not payload[place] & 1:
            break
        place += 1
    return picture, payload[3] >> 5, None, references


# By the payload types of the server's offers.
DESCRIPTORS = {96: vp8, 100: vp9}


def video(packets):
    """The video packets that came in, by their sequence numbers, each once. Only those with temporal layers."""
    numbered, last = {}, None
    for direction, packet in packets:
        parse, payload = DESCRIPTORS.get(packet[1] & 127), payload_of(packet)
        if direction == "O" or is_rtcp(packet) or not parse or len(payload) < 6 or not (parsed := parse(payload)):
            continue
        number = int.from_bytes(packet[2:4], "big")
        if last is not None:
            number = last + (number - last + 0x8000) % 0x10000 - 0x8000
        last = number if last is None else max(number, last)
        numbered.setdefault(number, VideoPacket(int.from_bytes(packet[4:8], "big"), *parsed))
    return sorted(numbered.items())


def keyframe_requests(packets):
    """How many packets that went out have a Picture Loss Indication (RFC 4585, section 6.3.1)."""
    def requests(packet):
        while len(packet) >= 4:
            if packet[1] == 206 and packet[0] & 31 == 1:
                return True
            packet = packet[4 + 4 * int.from_bytes(packet[2:4], "big"):]
        return False
    return sum(direction == "O" and is_rtcp(packet) and requests(packet) for direction, packet in packets)

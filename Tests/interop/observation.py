"""What a browser shows and plays of the room page, and its statistics, over some time."""
from selenium.common.exceptions import WebDriverException

# One sample of the page: its state, each tile with a hash of its pixels, and the statistics of both sessions.
LOOK = """
const done = arguments[arguments.length - 1];
(async () => {
    const data = document.body.dataset;
    const canvas = document.createElement('canvas');
    canvas.width = 32; canvas.height = 24;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const tiles = [...document.querySelectorAll('.tile')].map((tile) => {
        const video = tile.querySelector('video');
        let hash = 0, spread = 0;
        if (video.videoWidth > 0) {
            context.drawImage(video, 0, 0, 32, 24);
            const pixels = context.getImageData(0, 0, 32, 24).data;
            let low = 255, high = 0;
            for (let i = 0; i < pixels.length; i += 1) {
                hash = (hash * 31 + pixels[i]) | 0;
                if (i % 4 === 1) { low = Math.min(low, pixels[i]); high = Math.max(high, pixels[i]); }
            }
            spread = high - low;
        }
        return { participant: tile.dataset.participant, stream: tile.dataset.stream ?? null,
            self: 'self' in tile.dataset, frames: Number(tile.dataset.frames), size: tile.dataset.size ?? null,
            heard: tile.dataset.heard === 'true', hash, spread, note: tile.querySelector('.note').textContent,
            waiting: tile.querySelector('.waiting').textContent };
    });
    const stats = [], captures = {}, audioCodecs = [];
    for (const peer of window.testPeers ?? []) {
        if (peer.connectionState === 'closed') continue;
        // Statistics name the codec in RED.
        for (const sender of peer.getSenders()) if (sender.track?.kind === 'audio')
            audioCodecs.push(sender.getParameters().encodings[0]?.codec?.mimeType ?? null);
        for (const receiver of peer.getReceivers()) {
            for (const source of receiver.getSynchronizationSources())
                captures[source.source] = { kind: receiver.track.kind, time: source.captureTimestamp ?? null,
                    offset: source.senderCaptureTimeOffset ?? null, now: performance.timeOrigin + performance.now() };
        }
        stats.push([...(await peer.getStats()).values()]);
    }
    return { state: data.state, problem: data.problem ?? null, participant: data.participant ?? null,
        firstFrameMs: data.firstFrameMs === undefined ? null : Number(data.firstFrameMs),
        publishing: data.publishing ?? '', words: [document.querySelector('#problem').textContent,
            document.querySelector('#word').textContent].filter(Boolean),
        soundButton: !document.querySelector('#sound').hidden, tiles, stats, captures, audioCodecs };
})().then(done, (error) => done({ failed: String(error) }));
"""


class Observation:
    """Everything seen and heard so far."""

    def __init__(self):
        self.last = {}
        self.streams = {}
        self.pictures = {}
        self.states = []
        self.waiting = {}
        self.waited = []
        # By the identifier of the receiver.
        self.audio_first = {}

    def look(self, browser):
        """Adds what the page shows now."""
        look = browser.execute_async_script(LOOK)
        if "failed" in look:
            raise WebDriverException(f"looking at the page failed: {look['failed']}")
        self.last = look
        if not self.states or self.states[-1] != look["state"]:
            self.states.append(look["state"])
        for tile in look["tiles"]:
            if tile["stream"] and not tile["self"]:
                self.streams[tile["participant"], tile["stream"]] = tile
            before = self.waiting.get(tile["stream"], "")
            if before and not tile["waiting"]:
                self.waited.append(before)
            self.waiting[tile["stream"]] = tile["waiting"]
            if tile["frames"] and tile["spread"] > 8:
                self.pictures.setdefault((tile["participant"], tile["stream"]), set()).add(tile["hash"])
        for receiver, energy in self.energies().items():
            self.audio_first.setdefault(receiver, energy)

    def reports(self, kind, media=None):
        return [r for session in self.last.get("stats", []) for r in session
                if r["type"] == kind and (media is None or r.get("kind") == media)]

    def energies(self):
        return {r["id"]: r.get("totalAudioEnergy", 0) for r in self.reports("inbound-rtp", "audio")}

    def rises(self):
        return [energy - self.audio_first[receiver] for receiver, energy in self.energies().items()]

    def videos(self):
        """Everyone's videos that were ever there, as they were when last seen."""
        return [{"participant": participant, "stream": int(stream), "size": tile["size"], "frames": tile["frames"],
                 "distinctPictures": len(self.pictures.get((participant, stream), ())), "heard": tile["heard"]}
                for (participant, stream), tile in self.streams.items()]

    def result(self):
        codecs = {r["id"]: r["mimeType"] for r in self.reports("codec")}
        def outbound(media):
            # Of several layers, the one that has sent most.
            return max(self.reports("outbound-rtp", media), key=lambda r: r.get("framesSent", 0), default={})
        def total(kind, media, field):
            return sum(r.get(field, 0) for r in self.reports(kind, media))
        sessions = []
        for stats in self.last.get("stats", []):
            by_id = {r["id"]: r for r in stats}
            for r in stats:
                if r["type"] == "transport":
                    pair = by_id.get(r.get("selectedCandidatePairId"), {})
                    sends = any(s["type"] == "outbound-rtp" for s in stats)
                    sessions.append({
                        "session": "up" if sends else "down", "srtp": r.get("srtpCipher"), "dtls": r.get("tlsVersion"),
                        "candidate": by_id.get(pair.get("localCandidateId"), {}).get("candidateType"),
                        "relay": by_id.get(pair.get("localCandidateId"), {}).get("url"),
                        "protocol": by_id.get(pair.get("localCandidateId"), {}).get("protocol"),
                        "dtlsState": r.get("dtlsState"), "roundTripMs": pair.get("currentRoundTripTime", 0) * 1000,
                        "availableBitrate": pair.get("availableOutgoingBitrate")})
        video, audio = outbound("video"), outbound("audio")
        return {
            "states": self.states, "problem": self.last.get("problem"), "words": self.last.get("words", []),
            "participant": self.last.get("participant"), "firstFrameMs": self.last.get("firstFrameMs"),
            "videos": self.videos(),
            "video": {"framesDecoded": total("inbound-rtp", "video", "framesDecoded"),
                      "packetsLost": total("inbound-rtp", "video", "packetsLost"),
                      "freezes": total("inbound-rtp", "video", "freezeCount"),
                      "plis": total("inbound-rtp", "video", "pliCount"),
                      "nacks": total("inbound-rtp", "video", "nackCount"),
                      "codecs": sorted({codecs.get(r.get("codecId"), "?") for r in self.reports("inbound-rtp", "video")
                                        if r.get("framesDecoded")})},
            "audio": {"energy": sum(self.energies().values()), "energyRises": self.rises(),
                      "packets": total("inbound-rtp", "audio", "packetsReceived"),
                      "copies": total("inbound-rtp", "audio", "fecPacketsReceived"),
                      "concealedSamples": total("inbound-rtp", "audio", "concealedSamples"),
                      "soundButton": self.last.get("soundButton")},
            "publishing": {"kinds": self.last.get("publishing"), "framesSent": video.get("framesSent", 0),
                           "layers": [{key: r.get(key) for key in (
                               "rid", "active", "framesSent", "frameWidth", "targetBitrate", "qualityLimitationReason",
                               "keyFramesEncoded")} for r in self.reports("outbound-rtp", "video")],
                           "width": video.get("frameWidth"), "height": video.get("frameHeight"),
                           "codec": codecs.get(video.get("codecId")), "plis": video.get("pliCount", 0),
                           "nacks": video.get("nackCount", 0), "audioPackets": audio.get("packetsSent", 0),
                           "audioCodecs": self.last.get("audioCodecs", []),
                           "audioEnergy": total("media-source", "audio", "totalAudioEnergy")},
            "sessions": sessions,
        }

// The two peer connections of a participant: down (the server offers) and up (this page offers).

import { Refusal, words } from "./words.js";

// How long a session may look for a way through before the page says that there is none.
const connectWithin = 10000;
// By the number of pixels at 30 frames/s, as docs/bitrates.md has them; the server gives no estimate to go beyond.
const bitrates = [[320 * 240, 300_000], [480 * 360, 600_000], [640 * 480, 1_000_000], [960 * 540, 1_500_000],
    [1280 * 720, 2_200_000], [Infinity, 4_000_000]];
// The server forwards to each viewer the layer that suits its view and its link (simulcast). Lowest quality first. Chromium
// sends no more layers than these for cameras of so many pixels, and would leave out the highest ones.
const layers = [{ rid: "q", scaleResolutionDownBy: 4 }, { rid: "h", scaleResolutionDownBy: 2 },
    { rid: "f", scaleResolutionDownBy: 1 }];
const layerCounts = [[960 * 540, 3], [640 * 360, 2], [0, 1]];
// With VP9, one encoding has the layers instead (SVC), for which the server needs no keyframe to change to a lower one.
const prefersVP9 = new URLSearchParams(location.search).get("codec")?.toLowerCase() === "vp9";
// Of VP8's rate, for the same quality.
const economyOfVP9 = 0.75;
// A layer that is active needs this much.
const leastBitrate = 30_000;
// Of its rate. With less, a layer shows no more than the one below.
const leastShare = 0.5;
// From this lost share of audio on, each packet also carries the one before (RED), until the share is below the second one.
const redundantFrom = 0.03, redundantUntil = 0.015;
const redundancyInterval = 1000;
// A report counts for so much if it has more losses than the average, and if it has less: as for the server's own audio. One of
// fewer packets than a second has counts for less.
const rise = 0.3, fall = 0.1, usualPackets = 50;
// Whether silence is not sent, but for a packet each 400 ms (DTX).
const dtx = new URLSearchParams(location.search).get("dtx") === "1";
// A browser may refuse parameters for a while, such as during a negotiation.
const limitAgainAfter = 1000;
const limitAttempts = 10;

function bitrate(pixels) {
    const rate = bitrates.find(([most]) => pixels <= most)[1];
    // Below the table's smallest size, with the side of the frame.
    return Math.round(rate * Math.min(1, Math.sqrt(pixels / bitrates[0][0])));
}

/** Lowest quality first, at most so many. */
function encodings(track, most = layers.length) {
    const { width = 640, height = 480 } = track.getSettings();
    const pixels = width * height;
    const count = Math.min(most, layerCounts.find(([least]) => pixels >= least)[1]);
    if (count === 1) return [{ maxBitrate: bitrate(pixels) }];
    return layers.slice(-count).map((layer) =>
        ({ ...layer, maxBitrate: bitrate(pixels / layer.scaleResolutionDownBy ** 2) }));
}

/**
 * The codecs of this browser with VP9 first, of the profile that rooms carry. Empty if it has none, or cannot choose. The choice is
 * among the codecs that it receives, also for what it only sends; it may send levels of H.264 that it does not receive.
 */
function codecsFromVP9() {
    if (!prefersVP9 || !RTCRtpTransceiver.prototype.setCodecPreferences) return [];
    const isVP9 = ({ mimeType, sdpFmtpLine = "" }) =>
        mimeType.toLowerCase() === "video/vp9" && !/profile-id=[1-9]/.test(sdpFmtpLine);
    const codecs = RTCRtpReceiver.getCapabilities("video")?.codecs ?? [];
    if (!codecs.some(isVP9) || !RTCRtpSender.getCapabilities("video")?.codecs.some(isVP9)) return [];
    return [...codecs.filter(isVP9), ...codecs.filter((codec) => !isVP9(codec))];
}

/** The spatial layers of a track in VP9, at most so many, each with three temporal ones, in one encoding. */
function scalableEncoding(track, most) {
    const simulcast = encodings(track, most);
    const rate = simulcast.reduce((sum, { maxBitrate }) => sum + maxBitrate, 0);
    const count = simulcast.length;
    return { maxBitrate: Math.round(rate * economyOfVP9), scalabilityMode: count > 1 ? `L${count}T3_KEY` : "L1T3" };
}

/** Viewers align sound and picture by the times of their capture. Browsers send them only if asked to. */
function sendCaptureTimes(transceiver) {
    const extensions = transceiver.getHeaderExtensionsToNegotiate?.() ?? [];
    const captureTime = extensions.find(({ uri }) => uri.endsWith("/abs-capture-time"));
    if (!captureTime) return;
    captureTime.direction = "sendrecv";
    transceiver.setHeaderExtensionsToNegotiate(extensions);
}

// A session that lost its way may find it again by itself, such as after a short cut. Then ICE restarts, again and again.
const restartAfter = 2000;
const restartEvery = 5000;
const giveUpAfter = 60000;

class Session {
    /** Called once with a Problem when media cannot get through (any more). */
    onfailed = () => {};

    /** Called when the way to the server is lost: restarts ICE. */
    onrestart = () => {};

    #waiting = [];
    #timer;
    #lostSince = null;
    #restart;

    constructor(direction, signalling) {
        this.direction = direction;
        this.signalling = signalling;
        this.peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
        this.peer.onicecandidate = ({ candidate }) => this.#found(candidate?.candidate ?? "");
        this.peer.onconnectionstatechange = () => this.#changed(this.peer.connectionState);
    }

    /** Sets the STUN and TURN servers. A session that has a way uses them when it restarts ICE. */
    use(iceServers) {
        if (this.peer.signalingState === "closed") return;
        try {
            this.peer.setConfiguration({ ...this.peer.getConfiguration(), iceServers });
        } catch (error) {
            console.warn("ICE servers not taken:", error);
        }
    }

    #found(candidate) {
        this.signalling.send({ type: "candidate", session: this.direction, candidate });
    }

    #changed(state) {
        if (state === "connected") {
            clearTimeout(this.#timer);
            clearTimeout(this.#restart);
            this.connected = true;
            this.#lostSince = null;
        } else if (["failed", "disconnected"].includes(state) && this.connected && this.signalling.resumes) {
            if (this.#lostSince !== null) return;
            this.#lostSince = performance.now();
            this.#restart = setTimeout(() => this.#tryRestart(), restartAfter);
            // Perhaps the whole network is lost.
            this.signalling.doubt();
        } else if (state === "failed") {
            this.fail();
        }
    }

    #tryRestart() {
        if (this.peer.signalingState === "closed") return;
        // While signalling is away, its own patience counts.
        if (this.signalling.isAway) this.#lostSince = performance.now();
        else if (performance.now() - this.#lostSince > giveUpAfter) return this.fail();
        else this.onrestart();
        this.#restart = setTimeout(() => this.#tryRestart(), restartEvery);
    }

    /** Signalling is back. If media lost its way too, or the machine has moved to another network, it needs another one. */
    returned(hasMoved) {
        if (this.#lostSince !== null) {
            clearTimeout(this.#restart);
            this.#tryRestart();
        } else if (hasMoved && this.connected) {
            this.onrestart();
        }
    }

    fail() {
        if (this.peer.signalingState === "closed") return;
        this.onfailed(this.connected ? words.mediaLost() : words.noMediaPath());
    }

    /** Takes the server's description, then the candidates that came before it. */
    async remote(description) {
        await this.peer.setRemoteDescription(description);
        this.#timer ??= setTimeout(() => this.connected || this.fail(), connectWithin);
        for (const candidate of this.#waiting.splice(0)) await this.candidate(candidate);
    }

    async candidate(candidate) {
        if (!this.peer.remoteDescription) {
            this.#waiting.push(candidate);
            return;
        }
        try {
            // All m-lines share one transport: the first stands for it.
            await this.peer.addIceCandidate(candidate ? { candidate, sdpMLineIndex: 0 } : undefined);
        } catch (error) {
            console.warn("candidate not taken:", candidate, error);
        }
    }

    close() {
        clearTimeout(this.#timer);
        clearTimeout(this.#restart);
        this.peer.close();
    }
}

export class DownSession extends Session {
    #last = Promise.resolve();

    constructor(signalling) {
        super("down", signalling);
    }

    /** Answers an offer; offers are taken one after another. */
    offer({ sdp, revision }) {
        this.#last = this.#last.then(async () => {
            if (this.peer.signalingState === "closed") return;
            await this.remote({ type: "offer", sdp });
            await this.peer.setLocalDescription();
            const answer = this.peer.localDescription.sdp;
            this.signalling.send({ type: "answer", session: "down", revision, sdp: answer });
        });
        return this.#last;
    }

    /** The receiver behind an m-line, once its offer was taken. */
    receiver(mid) {
        return this.peer.getTransceivers().find((transceiver) => transceiver.mid === mid)?.receiver;
    }
}

export class UpSession extends Session {
    /** By kind: {transceiver, stream, wished, count, spatialLayers}, with the id of the stream while it is published, and the
     * encodings of its present track. It may have fewer than the m-line, which keeps those of the first one: `count`. */
    #lines = new Map();
    /** Stream id -> its last {bitsPerSecond, layers}. One may arrive before the answer that names its stream. */
    #limits = new Map();
    #limiting = Promise.resolve();
    #protecting = setInterval(() => this.#protect().catch((error) => console.warn("RED not taken:", error)),
        redundancyInterval);

    constructor(signalling) {
        super("up", signalling);
    }

    close() {
        clearInterval(this.#protecting);
        super.close();
    }

    /** The description for the server. With `usedtx`, the server's answer has it too, and then the browser's encoder does it. */
    get #offer() {
        const { sdp } = this.peer.localDescription;
        return dtx ? sdp.replace(/;useinbandfec=1/g, "$&;usedtx=1") : sdp;
    }

    /** Sends RED while the server reports losses of audio. Browsers that cannot choose a codec ignore it. */
    async #protect() {
        const line = this.#lines.get("audio");
        if (!line || line.stream === null || this.peer.signalingState === "closed") return;
        const reports = [...(await line.transceiver.sender.getStats()).values()];
        const report = reports.find(({ type }) => type === "remote-inbound-rtp");
        if (report?.fractionLost === undefined || report.timestamp === line.reported) return;
        line.reported = report.timestamp;
        const sent = reports.find(({ type }) => type === "outbound-rtp")?.packetsSent ?? 0;
        const weight = Math.min(Math.max(sent - (line.sent ?? 0), 0) / usualPackets, 1);
        line.sent = sent;
        line.loss = line.loss === undefined ? report.fractionLost * weight
            : line.loss + (report.fractionLost - line.loss) * (report.fractionLost > line.loss ? rise : fall) * weight;
        const isRedundant = line.loss >= (line.isRedundant ? redundantUntil : redundantFrom);
        if (isRedundant === (line.isRedundant ?? false)) return;
        this.#limiting = this.#limiting.then(() => this.#setCodec(line, isRedundant)).catch((error) => {
            console.warn("RED not taken:", error);
        });
        await this.#limiting;
    }

    /** After a failure, the next report tries again. */
    async #setCodec(line, isRedundant) {
        const { sender } = line.transceiver;
        const parameters = sender.getParameters();
        const name = isRedundant ? "audio/red" : "audio/opus";
        const codec = parameters.codecs?.find(({ mimeType }) => mimeType.toLowerCase() === name);
        if (!codec || !parameters.encodings?.length) return;
        const { mimeType, clockRate, channels, sdpFmtpLine } = codec;
        parameters.encodings[0].codec = { mimeType, clockRate, channels, sdpFmtpLine };
        await sender.setParameters(parameters);
        line.isRedundant = isRedundant;
    }

    /** Whether the server has answered an offer. */
    get isAnswered() {
        return this.peer.remoteDescription !== null;
    }

    /** Publishes tracks; a published kind gets the new track in place, with nothing renegotiated. A refusal costs no other track. */
    async publish(tracks) {
        const fresh = [];
        for (const track of tracks) {
            const line = this.#lines.get(track.kind);
            if (!line) {
                const added = this.#add(track);
                sendCaptureTimes(added.transceiver);
                this.#lines.set(track.kind, { ...added, stream: null, count: added.wished.length });
                fresh.push(added.transceiver);
                continue;
            }
            await line.transceiver.sender.replaceTrack(track);
            if (track.kind === "video") {
                line.wished = line.spatialLayers
                    ? [scalableEncoding(track, line.spatialLayers)] : encodings(track, line.count);
                await this.#applyLimit(line);
            }
            if (line.stream !== null) continue;
            line.transceiver.direction = "sendonly";
            fresh.push(line.transceiver);
        }
        if (fresh.length === 0) return;
        await this.peer.setLocalDescription();
        const published = await this.#announced(fresh);
        await this.remote({ type: "answer", sdp: published.sdp });
        for (const line of this.#lines.values()) {
            line.stream = published.streams.find(({ mid }) => mid === line.transceiver.mid)?.stream ?? line.stream;
            await this.#applyLimit(line);
        }
    }

    /** Offers m-lines. If the server refuses them, they are inactive, as after `unpublish`. */
    async #announced(transceivers) {
        try {
            return await this.#requested({
                type: "publish",
                sdp: this.#offer,
                streams: transceivers.map(({ mid, sender: { track } }) => ({
                    mid, extraValue: track.kind === "video" ? "camera" : "microphone",
                    ...track.enabled ? {} : { active: false }, spatialLayers: this.#lines.get(track.kind).spatialLayers,
                })),
            });
        } catch (error) {
            if (error instanceof Refusal && this.peer.signalingState !== "closed") {
                for (const transceiver of transceivers) {
                    transceiver.direction = "inactive";
                    await transceiver.sender.replaceTrack(null);
                }
                await this.peer.setLocalDescription({ type: "rollback" });
            }
            throw error;
        }
    }

    /** Repeats the request for half a minute while the room has too many announcements, as when a server has restarted. */
    async #requested(message) {
        for (let attempt = 1; ; attempt += 1) {
            try {
                return await this.signalling.request(message);
            } catch (error) {
                if (error.code !== "server.too-many-requests" || attempt === 30) throw error;
                await new Promise((resolve) => setTimeout(resolve, 1000));
                // By now, the page may be another participant.
                if (this.peer.signalingState === "closed") throw error;
            }
        }
    }

    /** Adds an m-line for a track: with VP9 in spatial layers if that is asked for and the browser takes it, or else with simulcast. */
    #add(track) {
        const codecs = track.kind === "video" ? codecsFromVP9() : [];
        if (codecs.length > 0) {
            let transceiver;
            try {
                const wished = [scalableEncoding(track)];
                transceiver = this.peer.addTransceiver(track, { direction: "sendonly", sendEncodings: wished });
                transceiver.setCodecPreferences(codecs);
                return { transceiver, wished, spatialLayers: encodings(track).length };
            } catch (error) {
                console.warn("VP9 not taken:", error);
                transceiver?.stop();
            }
        }
        const wished = track.kind === "video" ? encodings(track) : [];
        const encoding = wished.length > 0 ? { sendEncodings: wished } : {};
        const transceiver = this.peer.addTransceiver(track, { direction: "sendonly", ...encoding });
        return { transceiver, wished };
    }

    /** Tells the others whether a kind is on. It has been muted or not already, also with a server that does not know this. */
    async setActive(kind, active) {
        const stream = this.#lines.get(kind)?.stream ?? null;
        if (stream !== null) await this.signalling.request({ type: "setStream", stream, active });
    }

    /** Offers again with other ICE credentials. */
    async restart() {
        await this.peer.setLocalDescription(await this.peer.createOffer({ iceRestart: true }));
        const sdp = this.#offer;
        const published = await this.signalling.request({ type: "publish", sdp, streams: [] });
        await this.remote({ type: "answer", sdp: published.sdp });
    }

    /**
     * The best link of a viewer carries so much of each layer of a stream; without a number, all of it. Nobody watches other
     * layers than the listed ones; without a list, all may be watched.
     */
    async limit(stream, bitsPerSecond, layers) {
        this.#limits.set(stream, { bitsPerSecond, layers });
        const line = [...this.#lines.values()].find((line) => line.stream === stream);
        if (line) await this.#applyLimit(line);
    }

    /** Parameters are read and set in turn: a browser refuses those that were read before another change. */
    #applyLimit(line, attempts = limitAttempts) {
        clearTimeout(line.again);
        this.#limiting = this.#limiting.then(() => this.#setParameters(line)).catch((error) => {
            console.warn("limit not taken:", error);
            if (attempts <= 1 || this.peer.signalingState === "closed") return;
            // The newest limit by then.
            line.again = setTimeout(() => this.#applyLimit(line, attempts - 1), limitAgainAfter);
        });
        return this.#limiting;
    }

    async #setParameters({ transceiver: { sender }, stream, wished }) {
        const parameters = sender.getParameters();
        if (sender.track?.kind !== "video" || !parameters.encodings?.length) return;
        const { bitsPerSecond, layers } = this.#limits.get(stream) ?? {};
        const limit = bitsPerSecond ?? Infinity;
        // Another codec refuses the layers.
        const isVP9 = parameters.codecs?.[0]?.mimeType.toLowerCase() === "video/vp9";
        let changed = false;
        parameters.encodings.forEach((encoding, index) => {
            const { maxBitrate: most = leastBitrate, scaleResolutionDownBy = 1, scalabilityMode } = wished[index] ?? {};
            const isWatched = !layers || !encoding.rid || layers.includes(encoding.rid);
            const active = index < wished.length && (index === 0 || isWatched && limit >= most * leastShare);
            const next = { active, maxBitrate: Math.max(leastBitrate, Math.min(most, limit)), scaleResolutionDownBy };
            if (scalabilityMode && isVP9) next.scalabilityMode = scalabilityMode;
            changed ||= Object.keys(next).some((key) => encoding[key] !== next[key]);
            Object.assign(encoding, next);
        });
        if (changed) await sender.setParameters(parameters);
    }

    /** Ends the stream of a kind. Its m-line is inactive from the next offer on, until the kind is published again. */
    async unpublish(kind) {
        const line = this.#lines.get(kind);
        if (!line || line.stream === null) return;
        const { transceiver, stream } = line;
        line.stream = null;
        this.#limits.delete(stream);
        transceiver.direction = "inactive";
        await transceiver.sender.replaceTrack(null);
        await this.signalling.request({ type: "unpublish", streams: [stream] });
    }
}

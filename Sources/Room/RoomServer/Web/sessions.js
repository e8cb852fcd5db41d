// The two peer connections of a participant: down (the server offers) and up (this page offers).

import { words } from "./words.js";

// How long a session may look for a way through before the page says that there is none.
const connectWithin = 10000;
// A session that lost its way may find it again by itself, such as after a short cut. Then ICE restarts, again and again.
const restartAfter = 2000;
const restartEvery = 5000;
const giveUpAfter = 60000;
// 640x480 at 30 frames/s looks good with this; the server gives no bandwidth estimate to go beyond.
const videoBitrate = 1_000_000;

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
        } else if (state === "failed") {
            this.fail();
        }
    }

    #tryRestart() {
        if (this.peer.signalingState === "closed") return;
        if (performance.now() - this.#lostSince > giveUpAfter) return this.fail();
        this.onrestart();
        this.#restart = setTimeout(() => this.#tryRestart(), restartEvery);
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
    /** By kind: {transceiver, stream}, with the id of the stream while it is published. */
    #lines = new Map();
    /** Stream id -> its last limit in bits per second. One may arrive before the answer that names its stream. */
    #limits = new Map();

    constructor(signalling) {
        super("up", signalling);
    }

    /** Publishes tracks; a published kind gets the new track in place, with nothing renegotiated. */
    async publish(tracks) {
        const fresh = [];
        for (const track of tracks) {
            const line = this.#lines.get(track.kind);
            if (!line) {
                const encoding = track.kind === "video" ? { sendEncodings: [{ maxBitrate: videoBitrate }] } : {};
                const transceiver = this.peer.addTransceiver(track, { direction: "sendonly", ...encoding });
                this.#lines.set(track.kind, { transceiver, stream: null });
                fresh.push(transceiver);
                continue;
            }
            await line.transceiver.sender.replaceTrack(track);
            if (line.stream !== null) continue;
            line.transceiver.direction = "sendonly";
            fresh.push(line.transceiver);
        }
        if (fresh.length === 0) return;
        await this.peer.setLocalDescription();
        const published = await this.signalling.request({
            type: "publish",
            sdp: this.peer.localDescription.sdp,
            streams: fresh.map(({ mid, sender }) => ({
                mid, extraValue: sender.track.kind === "video" ? "camera" : "microphone",
            })),
        });
        await this.remote({ type: "answer", sdp: published.sdp });
        for (const line of this.#lines.values()) {
            line.stream = published.streams.find(({ mid }) => mid === line.transceiver.mid)?.stream ?? line.stream;
            await this.#applyLimit(line);
        }
    }

    /** Offers again with other ICE credentials. */
    async restart() {
        await this.peer.setLocalDescription(await this.peer.createOffer({ iceRestart: true }));
        const sdp = this.peer.localDescription.sdp;
        const published = await this.signalling.request({ type: "publish", sdp, streams: [] });
        await this.remote({ type: "answer", sdp: published.sdp });
    }

    /** The links of those who watch a stream carry so much of it; without a number, all of it. */
    async limit(stream, bitsPerSecond) {
        this.#limits.set(stream, bitsPerSecond);
        const line = [...this.#lines.values()].find((line) => line.stream === stream);
        if (line) await this.#applyLimit(line);
    }

    async #applyLimit({ transceiver: { sender }, stream }) {
        const parameters = sender.getParameters();
        if (sender.track?.kind !== "video" || !parameters.encodings?.length) return;
        const rate = Math.min(videoBitrate, this.#limits.get(stream) ?? videoBitrate);
        if (parameters.encodings[0].maxBitrate === rate) return;
        parameters.encodings[0].maxBitrate = rate;
        await sender.setParameters(parameters).catch((error) => console.warn("limit not taken:", error));
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

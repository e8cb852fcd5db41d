// Lip-sync: plays a participant's sound and picture as they were captured.
//
// A browser aligns tracks of one stream id. Here an m-line carries one participant after another, and nothing is
// renegotiated, so the page aligns them: packets carry the time of their capture by the sender's clock (abs-capture-time),
// and the browser tells which packet it plays. The track that plays ahead gets a larger jitterBufferTarget. Browsers that
// lack either play each track as soon as they can.

/** How long a change takes to show, in milliseconds. */
export const syncInterval = 1000;
// In milliseconds: nobody notices less, the most that a track is delayed, and the most of one step.
const unnoticed = 10;
const longestDelay = 1000;
// Browsers refuse larger ones (webrtc-extensions).
const largestTarget = 4000;
const longestStep = 80;
// Of what is left, in one step.
const gain = 0.5;
// Ticks of video timestamps in a millisecond (RFC 3551).
const videoClock = 90;

/** The age of what a receiver plays now, by the sender's clock, and its delays so far. Undefined while it plays nothing. */
async function playing(receiver, shown) {
    const [source] = receiver.getSynchronizationSources();
    if (!source?.captureTimestamp) return undefined;
    const { timestamp, captureTimestamp, rtpTimestamp } = source;
    // The display is later than the receiver; loudspeakers do not tell.
    const at = shown === undefined ? timestamp : performance.timeOrigin + shown + rtpTimestamp / videoClock;
    for (const report of (await receiver.getStats()).values()) {
        if (report.type !== "inbound-rtp" || !(report.jitterBufferEmittedCount > 0)) continue;
        const { jitterBufferMinimumDelay: delay, jitterBufferEmittedCount: count } = report;
        return { age: at - captureTimestamp, delay, count };
    }
    return undefined;
}

function setTarget(receiver, milliseconds) {
    const target = milliseconds === null ? null : Math.round(Math.min(largestTarget, Math.max(0, milliseconds)));
    const known = receiver.jitterBufferTarget;
    if (target === known || target !== null && known !== null && Math.abs(target - known) < unnoticed / 2) return;
    receiver.jitterBufferTarget = target;
}

class Pair {
    /** Milliseconds by which the sound is delayed; below zero, the picture. */
    #delay = 0;
    #before = null;

    constructor({ audio, video }) {
        [this.audio, this.video] = [audio, video];
    }

    async step(shown) {
        const [audio, video] = await Promise.all([playing(this.audio), playing(this.video, shown)]);
        const before = this.#before;
        this.#before = audio && video ? { audio, video } : null;
        if (!before || !this.#before) return;
        // What each waits for its own sake, without a target.
        const own = (now, { delay, count }) => now.count > count ? (now.delay - delay) / (now.count - count) * 1000 : NaN;
        const [sound, picture] = [own(audio, before.audio), own(video, before.video)];
        // One of them has stopped, or the browser does not tell.
        const ahead = video.age - audio.age;
        if (Number.isNaN(sound) || Number.isNaN(picture) || Number.isNaN(ahead)) return;
        if (Math.abs(ahead) > unnoticed) {
            const step = Math.max(-longestStep, Math.min(longestStep, ahead * gain));
            this.#delay = Math.max(-longestDelay, Math.min(longestDelay, this.#delay + step));
        }
        setTarget(this.audio, this.#delay > 0 ? sound + this.#delay : null);
        setTarget(this.video, this.#delay < 0 ? picture - this.#delay : null);
    }

    end() {
        setTarget(this.audio, null);
        setTarget(this.video, null);
    }
}

export class LipSync {
    #pairs = new Map();

    /** Once each `syncInterval`: aligns these {key, audio, video, stream}, with receivers, and lets go of those before.
     * `shown` is `Grid.shown`. */
    async step(pairs, shown) {
        for (const [key, pair] of this.#pairs) {
            // After a rejoin, other receivers carry the same streams.
            if (pairs.some((other) => other.key === key && other.audio === pair.audio && other.video === pair.video)) continue;
            this.#pairs.delete(key);
            pair.end();
        }
        for (const pair of pairs) {
            if (!("jitterBufferTarget" in pair.audio && "jitterBufferTarget" in pair.video)) continue;
            if (!this.#pairs.has(pair.key)) this.#pairs.set(pair.key, new Pair(pair));
        }
        await Promise.all(pairs.map(({ key, stream }) => this.#pairs.get(key)?.step(shown(stream))));
    }
}

// Who is in the room, which streams they publish, and which receiver of the down session carries which stream.

import { DownSession, UpSession } from "./sessions.js";
import { Signalling, pageToken } from "./signalling.js";
import { Problem, Refusal, words } from "./words.js";

const version = 1;
const receivers = { initial: 9, maximum: 20, growth: 1 };

export class Room {
    /** Called after anything changed that is worth drawing. */
    onchange = () => {};
    /** Called when someone enters or leaves: ("entered" | "left", participant id). */
    onpresence = () => {};
    /** Called when the server is lost, and when it is back: (seconds, whether this page joined again). */
    onaway = () => {};
    onback = () => {};
    /** Called once with a Problem when the call ended by itself. */
    onended = () => {};

    /**
     * Participant id -> Map of stream id -> {id, media, codec, extraValue, active?, state?, text?, refused?}; without
     * ourselves.
     */
    participants = new Map();
    /** Stream id -> mid of the receiver that carries it. */
    carriers = new Map();
    /** Stream id -> {width, height} of its view in pixels of the screen. */
    #views = new Map();
    /** Whether nobody sees the page. */
    #paused = false;

    #signalling;
    #down;
    #up = null;
    #iceServers = [];
    /** What is published, in turn. The next participation has another queue, and the rest of this one is dropped. */
    #queue = { last: Promise.resolve() };
    /** Kind -> whether it is on, as the others shall see it, and the timer of telling it again. */
    #active = new Map();
    #tellings = new Map();
    #over = false;
    #name;
    #rejoined = false;
    #restarting = false;
    /** Whether the machine came into another network, and signalling is not back since. */
    #moved = false;
    #watching = new AbortController();

    static async join(name) {
        if (!globalThis.RTCPeerConnection) throw words.browserTooOld();
        const token = await pageToken(name);
        const room = new Room(await Signalling.open());
        try {
            await room.#join(name, token);
        } catch (problem) {
            room.leave();
            throw problem;
        }
        return room;
    }

    constructor(signalling) {
        this.#signalling = signalling;
        this.#openDown();
        signalling.onaway = (problem) => this.onaway(problem);
        signalling.onback = (seconds) => {
            const [rejoined, moved] = [this.#rejoined, this.#moved];
            [this.#rejoined, this.#moved] = [false, false];
            for (const session of [this.#down, this.#up]) session?.returned(moved);
            this.onback(seconds, rejoined);
        };
        signalling.renew = () => pageToken(this.#name);
        signalling.onunknown = () => this.#joinAgain();
        signalling.onmessage = (message) => this.#take(message);
        signalling.onended = (problem) => this.#end(problem);
        const { signal } = this.#watching;
        addEventListener("online", () => this.#move(), { signal });
        // It may only be slower or faster. Not all browsers tell.
        navigator.connection?.addEventListener("change", () => signalling.doubt(), { signal });
    }

    #move() {
        this.#moved = true;
        this.#signalling.moved();
    }

    #openDown() {
        this.#down = new DownSession(this.#signalling);
        this.#down.onfailed = (problem) => this.#end(problem);
        this.#down.onrestart = () => this.#signalling.send({ type: "restartICE", session: "down" });
    }

    async #join(name, token) {
        this.#name = name;
        const joined = await this.#signalling.request({
            type: "join", version, token, room: name, receivers, resume: true,
        });
        if (joined.resume && !this.id) this.#signalling.keep(joined.participant, joined.resume.secret, token);
        this.id = joined.participant;
        this.#useServers(joined.iceServers);
        for (const participant of joined.participants) this.#enter(participant);
        return joined;
    }

    /** The server no longer knows this page: everything begins anew, except the page's own tracks. */
    async #joinAgain() {
        const token = await pageToken(this.#name);
        this.#down.close();
        this.#up?.close();
        this.#up = null;
        this.#queue = { last: Promise.resolve() };
        this.#restarting = false;
        this.participants.clear();
        this.carriers.clear();
        this.#openDown();
        this.#rejoined = true;
        const joined = await this.#join(this.#name, token);
        this.#signalling.joinedAgain(joined.participant, joined.resume?.secret, token);
        this.onchange();
    }

    /** An offer includes the answer to the one before, so the restart waits for that. */
    #restartUp() {
        if (this.#restarting) return;
        this.#restarting = true;
        const up = this.#up;
        this.#inTurn(() => up === this.#up ? up?.restart() : undefined)
            .catch((problem) => console.warn("ICE restart:", problem))
            .finally(() => { this.#restarting = false; });
    }

    /** Uses STUN and TURN servers from now on, also to restart ICE: the credentials of former ones expire. */
    #useServers(iceServers) {
        this.#iceServers = iceServers ?? [];
        for (const session of [this.#down, this.#up]) session?.use(this.#iceServers);
    }

    /** The live track that carries a stream, or null while none does. */
    track(stream) {
        return this.#receiver(stream)?.track ?? null;
    }

    /** Loudness of an audio stream now, 0...1. */
    loudness(stream) {
        const [source] = this.#receiver(stream)?.getSynchronizationSources?.() ?? [];
        return source?.audioLevel ?? 0;
    }

    /** The receivers of each participant who is seen and heard: {key, audio, video, stream}, the last of the video. */
    pairs() {
        return [...this.participants].flatMap(([id, streams]) => {
            const first = (kind) => [...streams.values()].find((stream) => stream.media === kind && this.#receiver(stream.id));
            const [audio, video] = [first("audio"), first("video")];
            return audio && video ? [{ key: `${id} ${audio.id} ${video.id}`, audio: this.#receiver(audio.id),
                video: this.#receiver(video.id), stream: video.id }] : [];
        });
    }

    #receiver(stream) {
        const mid = this.carriers.get(stream);
        return mid === undefined ? undefined : this.#down.receiver(mid);
    }

    /**
     * Publishes tracks of camera and microphone, one call after another. If the page joins again meanwhile, it ends early, because
     * all tracks are published again then.
     */
    publish(tracks) {
        return this.#inTurn(async () => {
            const up = this.#up ??= this.#makeUp();
            try {
                await up.publish(tracks);
            } catch (error) {
                if (up !== this.#up) return;
                const problem = error instanceof Problem ? error : words.answerRefused(error);
                // A refused camera costs no microphone.
                problem.endsAll = !(error instanceof Refusal && up.isAnswered);
                if (problem.endsAll) {
                    up.close();
                    this.#up = null;
                }
                throw problem;
            }
        });
    }

    #makeUp() {
        const up = new UpSession(this.#signalling);
        up.use(this.#iceServers);
        up.onrestart = () => this.#restartUp();
        up.onfailed = (problem) => this.#end(problem);
        return up;
    }

    /** Tells the others that a kind is muted, or not any longer. */
    setActive(kind, active) {
        this.#active.set(kind, active);
        return this.#tellActive(kind);
    }

    /** The newest value is told until the server takes it. An older server does not, and the kind is muted nevertheless. */
    #tellActive(kind) {
        clearTimeout(this.#tellings.get(kind));
        return this.#inTurn(() => this.#active.has(kind) ? this.#up?.setActive(kind, this.#active.get(kind)) : undefined)
            .catch((error) => {
                if (error.code !== "server.too-many-requests") return;
                clearTimeout(this.#tellings.get(kind));
                this.#tellings.set(kind, setTimeout(() => this.#tellActive(kind), 1000));
            });
    }

    /** Ends what is published of a kind. */
    unpublish(kind) {
        this.#active.delete(kind);
        return this.#inTurn(() => this.#up?.unpublish(kind));
    }

    /** An action of a former participation neither begins nor fails. */
    #inTurn(action) {
        const queue = this.#queue;
        const isFormer = () => this.#over || queue !== this.#queue;
        const done = queue.last.then(() => isFormer() ? undefined : action()).catch((error) => {
            if (!isFormer()) throw error;
        });
        queue.last = done.catch(() => {});
        return done;
    }

    leave() {
        this.#over = true;
        this.#watching.abort();
        this.#signalling.leave();
        this.#down.close();
        this.#up?.close();
    }

    #end(problem) {
        if (this.#over) return;
        this.leave();
        this.onended(problem);
    }

    #take(message) {
        switch (message.type) {
        case "offer":
            this.#down.offer(message).then(() => this.onchange(), (error) =>
                this.#end(words.offerRefused(error)));
            return;
        case "candidate":
            (message.session === "up" ? this.#up : this.#down)?.candidate(message.candidate);
            return;
        case "participantEntered":
            this.#enter(message.participant);
            this.onpresence("entered", message.participant.id);
            break;
        case "participantLeft":
            for (const id of this.participants.get(message.participant)?.keys() ?? []) {
                this.carriers.delete(id);
                this.#views.delete(id);
            }
            if (this.participants.delete(message.participant)) this.onpresence("left", message.participant);
            this.#subscribeRefused();
            break;
        case "streamPublished":
            this.#published(message.participant, message.stream);
            break;
        case "streamUnpublished":
            this.carriers.delete(message.stream);
            this.#views.delete(message.stream);
            this.participants.get(message.participant)?.delete(message.stream);
            this.#subscribeRefused();
            break;
        case "streamChanged":
            this.#changed(message);
            break;
        case "streamQuality":
            this.#qualityChanged(message);
            break;
        case "receiverAssigned":
            this.#assigned(message.mid, message.stream);
            break;
        case "iceServers":
            this.#useServers(message.iceServers);
            return;
        case "streamLimit":
            this.#up?.limit(message.stream, message.bitsPerSecond, message.layers);
            return;
        default:
            return;
        }
        this.onchange();
    }

    #enter({ id, streams }) {
        if (id === this.id) return;
        if (!this.participants.has(id)) this.participants.set(id, new Map());
        for (const stream of streams) this.#published(id, stream);
    }

    #published(participant, stream) {
        if (participant === this.id) return;
        const streams = this.participants.get(participant);
        if (!streams || streams.has(stream.id)) return;
        streams.set(stream.id, { ...stream });
        if (stream.media === "video") this.#subscribe(streams.get(stream.id));
    }

    /** A stream waits for its source, with a text, or is live again. Attributes that are missing stay. */
    #changed({ participant, stream, state, text, active, extraValue }) {
        const known = this.participants.get(participant)?.get(stream);
        if (!known) return;
        Object.assign(known, { state, text });
        if (active !== undefined) known.active = active;
        if (extraValue !== undefined) known.extraValue = extraValue;
    }

    /** Why a video arrives worse than its publisher could send it. Without a cause, it does not. */
    #qualityChanged(quality) {
        for (const streams of this.participants.values()) {
            const known = streams.get(quality.stream);
            if (known) known.quality = quality.cause ? quality : undefined;
        }
    }

    async #subscribe(stream) {
        delete stream.quality;
        try {
            const [view, paused] = [this.#views.get(stream.id), this.#paused];
            const { mid } = await this.#signalling.request({ type: "subscribe", stream: stream.id, ...view, paused });
            this.#assigned(mid, stream.id);
            if (this.#views.get(stream.id) !== view || this.#paused !== paused) this.#sendView(stream.id);
        } catch (problem) {
            stream.refused = problem.code === "1322" ? words.tooManyVideos(receivers.maximum) : problem.message;
        }
        this.onchange();
    }

    /** Tells the server how large a stream is shown, so that it sends the layer for that size. */
    setView(stream, width, height) {
        const known = this.#views.get(stream);
        if (known?.width === width && known?.height === height) return;
        this.#views.set(stream, { width, height });
        if (this.carriers.has(stream)) this.#sendView(stream);
    }

    /** Pauses all videos while nobody sees the page. */
    setPaused(paused) {
        if (this.#paused === paused) return;
        this.#paused = paused;
        const videos = [...this.participants.values()].flatMap((streams) => [...streams.values()])
            .filter(({ id, media }) => media === "video" && this.carriers.has(id));
        for (const { id } of videos) this.#sendView(id);
    }

    /** Older servers do not know the message, and a stream may have ended meanwhile: both do no harm. */
    #sendView(stream) {
        this.#signalling.request({ type: "setView", stream, ...this.#views.get(stream), paused: this.#paused }).catch(() => {});
    }

    /** Receivers may have become free for those who found none. */
    #subscribeRefused() {
        for (const stream of [...this.participants.values()].flatMap((streams) => [...streams.values()])) {
            if (!stream.refused) continue;
            delete stream.refused;
            this.#subscribe(stream);
        }
    }

    /** A receiver carries one stream at a time; without a stream it is free. */
    #assigned(mid, stream) {
        for (const [carried, by] of this.carriers) if (by === mid) this.carriers.delete(carried);
        if (stream !== undefined && stream !== null) this.carriers.set(stream, mid);
    }
}

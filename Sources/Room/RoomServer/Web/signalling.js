// The way to the room server: requests with answers, the rest as messages, and an eye on a server that vanishes. It outlives its
// WebSocket: another one resumes with the messages that either end lacks.

import { Problem, words } from "./words.js";

// The server pings too but a page cannot see that; these keep "vanished" within 10 s and survive a cut of 5 s.
const pingEvery = 900;
const silentAfter = 9000;
// Where something else shows that the way may be lost, an answer to a ping takes no longer.
const doubtfulAfter = 2000;
const answerWithin = 8000;
// What the server says unasked when a session cannot carry media (any more): media failed, our answer was refused.
const fatal = new Set(["1411", "1433"]);
// How long to try to come back, and the pauses between attempts: random, so that not all pages come at once.
const patience = 120000;
const firstPause = 500;
const longestPause = 8000;
// A server that restarts is usually back soon.
const early = 30000;
const longestEarlyPause = 2000;
// What neither end counts among the messages that a resume continues.
const uncounted = new Set(["join", "joined", "resume", "resumed", "ack", "ping", "pong", "closed"]);
const acknowledgeAfter = 256;
const acknowledgeAfterCharacters = 64 * 1024;

/** Asks for the token that opens one room for some minutes; the page never holds the service's secret. */
export async function pageToken(room) {
    const url = new URL("v1/page-token", location.href);
    url.searchParams.set("room", room);
    let response;
    try {
        response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(answerWithin) });
    } catch {
        throw words.serverUnreachable();
    }
    const body = await response.json().catch(() => null);
    if (response.status === 403) throw words.tokenRefused(body?.code ?? "-11004", body?.message);
    if (!response.ok && body?.code) throw words.refused(body.code, body.message);
    if (!response.ok || typeof body?.accessToken !== "string") throw words.notOurServer(response.status);
    return body.accessToken;
}

/** Why a WebSocket failed: browsers hide that from pages, but a POST to the same place is answered with the reason. */
async function refusal(place) {
    let response;
    try {
        const url = new URL(place.pathname, location.href);
        response = await fetch(url, { method: "POST", cache: "no-store", signal: AbortSignal.timeout(answerWithin) });
    } catch {
        return words.serverUnreachable();
    }
    const body = await response.json().catch(() => null);
    // The server has nothing against this page: it only misses the WebSocket's handshake.
    if (body?.code === "protocol.malformed") return words.noWebSocket();
    return body?.code ? words.refused(body.code, body.message) : words.serverUnreachable();
}

export class Signalling {
    /** Called with each message that answers no request. */
    onmessage = () => {};
    /** Called once with a Problem when the connection ends without `leave`. */
    onended = () => {};
    /** Called when the server is lost, and when it is back: with the seconds that it took. */
    onaway = () => {};
    onback = () => {};
    /** Called when the server no longer knows the participant: joins again, and resolves then. */
    onunknown = () => Promise.reject(words.serverClosed());
    /** Resolves with another access token. */
    renew = () => Promise.reject(words.serverClosed());

    #socket;
    #requests = new Map();
    #nextId = 1;
    #heard = 0;
    #ticked = 0;
    #asked = 0;
    #timer;
    /** The timer of a ping on whose answer depends whether the server is lost. */
    #doubt = null;
    #ended = false;
    /** {participant, secret, token} once the server lets this page resume. */
    #terms = null;
    /** While there is no WebSocket: since when, the pause, and the timer of the next attempt. */
    #away = null;
    #received = 0;
    #told = 0;
    #untold = 0;
    #acknowledged = 0;
    /** The texts that the server has not acknowledged. */
    #kept = [];

    constructor(socket) {
        this.#use(socket);
        this.#heard = this.#ticked = performance.now();
        this.#timer = setInterval(() => this.#watch(), 1000);
    }

    #use(socket) {
        this.#socket = socket;
        socket.onmessage = ({ data }) => this.#receive(data);
        socket.onclose = () => this.#lost(words.serverClosed());
    }

    static open() {
        return Signalling.#connect().then((socket) => new Signalling(socket));
    }

    /** - signal: aborts the attempt. Who passes one tries again, so a failure needs no reason. */
    static #connect(signal) {
        const url = new URL("v1/room", location.href);
        url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
        return new Promise((resolve, reject) => {
            const socket = new WebSocket(url);
            const timer = setTimeout(() => socket.close(), answerWithin);
            const settle = (action) => {
                clearTimeout(timer);
                socket.onopen = socket.onclose = null;
                action();
            };
            socket.onopen = () => settle(() => resolve(socket));
            socket.onclose = () => settle(() => signal ? reject(words.serverUnreachable()) : refusal(url).then(reject));
            signal?.addEventListener("abort", () => {
                if (socket.readyState !== WebSocket.CONNECTING) return;
                settle(() => reject(words.serverUnreachable()));
                socket.close();
            });
        });
    }

    /** Keeps messages from now on, so that another WebSocket can resume. */
    keep(participant, secret, token) {
        this.#terms = { participant, secret, token };
    }

    /** Whether the server is lost, and not back yet. */
    get isAway() {
        return this.#away !== null;
    }

    get resumes() {
        return this.#terms !== null;
    }

    send(message) {
        const text = JSON.stringify(message);
        if (this.#terms && !uncounted.has(message.type)) this.#kept.push(text);
        if (!this.#away) this.#transmit(text);
    }

    /** Media has stopped, or the network is another one: unless the server answers soon, it is lost. */
    doubt() {
        if (this.#away || this.#ended || !this.#terms || this.#doubt !== null) return;
        const asked = performance.now();
        this.#ping(asked);
        this.#doubt = setTimeout(() => {
            this.#doubt = null;
            if (!this.#away && this.#heard < asked) this.#lost(words.serverVanished(), 0);
        }, doubtfulAfter);
    }

    /** This machine is in a network again, which the WebSocket does not belong to: tries to come back at once. */
    moved() {
        if (!this.#terms || this.#ended) return;
        if (!this.#away) return this.#lost(words.serverVanished(), 0);
        if (!this.#away.isBusy) return void this.#return();
        // The present attempt may wait for the former network. The next one begins as soon as it has failed.
        this.#away.pause = 0;
        this.#away.connecting.abort();
        this.#lost(words.serverVanished());
    }

    #transmit(text) {
        if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
    }

    /** Resolves with the answer; rejects with a Problem when it is refused, late, or the connection ends. */
    request(message) {
        if (this.#ended) return Promise.reject(words.serverClosed());
        // The WebSocket closed while its owner fetched a token.
        if (message.type === "join" && this.#away?.missed) return Promise.reject(this.#away.missed);
        if (message.type === "join") this.#forget();
        const id = this.#nextId++;
        return new Promise((resolve, reject) => {
            const request = { resolve, reject, type: message.type };
            this.#requests.set(id, request);
            if (!this.#away || message.type === "join") this.#await(id, request);
            if (message.type === "join") this.#transmit(JSON.stringify({ ...message, id }));
            else this.send({ ...message, id });
        });
    }

    /** Another participation begins. All messages so far are of the one before. */
    #forget() {
        for (const { reject } of this.#requests.values()) reject(words.serverClosed());
        this.#requests.clear();
        [this.#received, this.#told, this.#untold, this.#acknowledged, this.#kept] = [0, 0, 0, 0, []];
    }

    /**
     * If an answer is late, the page resumes over another WebSocket, which brings the answer if the server has the request. If it
     * is late again, the request fails.
     */
    #await(id, request) {
        request.timer = setTimeout(() => {
            const problem = words.noAnswer(request.type);
            if (this.#terms && !this.#away && !request.isLate) {
                for (const pending of this.#requests.values()) pending.isLate = true;
                return this.#lost(problem);
            }
            this.#requests.delete(id);
            request.reject(problem);
        }, answerWithin);
    }

    /** Says goodbye, so that the others see it at once, and closes. */
    leave() {
        this.send({ type: "leave", id: this.#nextId++ });
        this.#end(null);
    }

    #receive(data) {
        this.#heard = performance.now();
        let message = {};
        try {
            message = JSON.parse(data);
        } catch {
            // It counts nevertheless.
        }
        if (message.type === "ack") return this.#acknowledge(message.received);
        if (this.#terms && !this.#away && !uncounted.has(message.type)) {
            this.#received += 1;
            this.#untold += data.length;
            if (this.#received - this.#told >= acknowledgeAfter || this.#untold >= acknowledgeAfterCharacters) this.#ack();
        }
        const request = this.#requests.get(message.id);
        if (request) {
            this.#requests.delete(message.id);
            clearTimeout(request.timer);
            if (message.type === "error") request.reject(words.refused(message.code, message.message));
            else request.resolve(message);
        } else if (message.type === "closed") {
            const problem = words.refused(message.code ?? message.reason, message.message);
            const returns = message.reason === "destroyed" && message.code === "1302"
                || message.reason === "disconnected" && ["1312", "1411"].includes(message.code)
                // The WebSocket was too slow to join again. Another one may be faster.
                || this.#away !== null && message.code === "protocol.out-of-order";
            if (returns) this.#lost(problem); else this.#end(problem);
        } else if (message.type === "error") {
            const problem = words.refused(message.code, message.message);
            if (fatal.has(message.code)) this.#end(problem);
            else console.warn(`${problem.message} [${problem.code}]`);
        } else if (message.type !== "pong") {
            this.onmessage(message);
        }
    }

    #acknowledge(count) {
        this.#kept.splice(0, Math.max(0, count - this.#acknowledged));
        this.#acknowledged = Math.max(count, this.#acknowledged);
    }

    #ack() {
        [this.#told, this.#untold] = [this.#received, 0];
        this.#transmit(JSON.stringify({ type: "ack", received: this.#received }));
    }

    // MARK: coming back

    /** - pause: before the first attempt, in milliseconds. */
    #lost(problem, pause = firstPause) {
        if (this.#ended) return;
        if (!this.#terms) return this.#end(problem);
        // An attempt to come back fails, and makes the next one itself.
        for (const [id, request] of this.#requests) {
            if (request.type !== "resume" && request.type !== "join") continue;
            this.#requests.delete(id);
            clearTimeout(request.timer);
            return request.reject(problem);
        }
        if (this.#away?.isBusy) return void (this.#away.missed = problem);
        const socket = this.#socket;
        socket.onmessage = socket.onclose = null;
        // Without a code: 1000 would say goodbye.
        socket.close();
        if (!this.#away) {
            this.#away = { since: performance.now(), pause };
            for (const request of this.#requests.values()) clearTimeout(request.timer);
            this.onaway(problem);
        }
        const { since, pause: present } = this.#away;
        const passed = performance.now() - since;
        if (passed > patience) return this.#end(problem);
        this.#away.pause = Math.min(Math.max(present * 2, firstPause), passed < early ? longestEarlyPause : longestPause);
        clearTimeout(this.#away.timer);
        this.#away.timer = setTimeout(() => this.#return(), present * (0.5 + Math.random() / 2));
    }

    async #return() {
        const away = this.#away;
        clearTimeout(away.timer);
        [away.timer, away.isBusy, away.missed, away.connecting] = [null, true, null, new AbortController()];
        const failed = (problem) => {
            away.isBusy = false;
            this.#lost(problem);
        };
        try {
            this.#use(await Signalling.#connect(away.connecting.signal));
            if (this.#ended) return this.#socket.close();
            const { participant, secret, token } = this.#terms;
            const resumed = await this.#resume({ token, participant, secret, received: this.#received });
            this.#terms.secret = resumed.secret;
            this.#acknowledge(resumed.received);
            // The server then knows that the secret has arrived.
            this.#ack();
            this.#back();
        } catch (problem) {
            if (this.#ended) return;
            try {
                if (problem.code === "-11005") this.#terms.token = await this.renew();
                if (problem.code === "resume.unknown") return await this.onunknown();
            } catch (other) {
                return failed(other);
            }
            failed(problem);
        }
    }

    #resume(message) {
        const id = this.#nextId++;
        return new Promise((resolve, reject) => {
            const request = { resolve, reject, type: "resume" };
            this.#requests.set(id, request);
            this.#await(id, request);
            this.#transmit(JSON.stringify({ ...message, type: "resume", id }));
        });
    }

    /** The way to the server is there again. After another `join`, its caller says so. */
    #back() {
        const away = this.#away;
        if (!away) return;
        this.#away = null;
        // Those of `onback` come after them.
        for (const text of this.#kept) this.#transmit(text);
        if (!this.#terms) this.#kept = [];
        this.#heard = this.#ticked = performance.now();
        for (const [id, request] of this.#requests) {
            clearTimeout(request.timer);
            this.#await(id, request);
        }
        this.onback((performance.now() - away.since) / 1000);
    }

    /** Another `join` was answered. */
    joinedAgain(participant, secret, token) {
        this.#terms = secret ? { participant, secret, token } : null;
        this.#back();
    }

    #watch() {
        if (this.#away) return;
        const now = performance.now();
        // After a sleep of the machine or a frozen tab nothing was heard because nothing ran: ask first.
        if (now - this.#ticked > 5000) this.#heard = now;
        this.#ticked = now;
        if (now - this.#heard > silentAfter) {
            this.#lost(words.serverVanished());
        } else if (now - this.#asked > pingEvery) {
            this.#ping(now);
            if (this.#terms && (this.#received > this.#told || this.#kept.length > 0)) this.#ack();
        }
    }

    #ping(now) {
        this.#asked = now;
        this.send({ type: "ping", id: this.#nextId++ });
    }

    #end(problem) {
        if (this.#ended) return;
        this.#ended = true;
        clearInterval(this.#timer);
        clearTimeout(this.#doubt);
        clearTimeout(this.#away?.timer);
        for (const { reject, timer } of this.#requests.values()) {
            clearTimeout(timer);
            reject(problem ?? new Problem("left", "You left."));
        }
        this.#requests.clear();
        this.#socket.close();
        if (problem) this.onended(problem);
    }
}

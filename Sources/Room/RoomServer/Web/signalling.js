// One WebSocket to the room server: requests with answers, the rest as messages, and an eye on a server that vanishes.

import { Problem, words } from "./words.js";

// The server pings too but a page cannot see that; these keep "vanished" within 10 s and survive a cut of 5 s.
const pingEvery = 900;
const silentAfter = 9000;
const answerWithin = 8000;
// What the server says unasked when a session cannot carry media (any more): media failed, our answer was refused.
const fatal = new Set(["1411", "1433"]);

/** Asks for the token that opens one room for some minutes; the page never holds the service's secret. */
export async function pageToken(room) {
    const url = new URL("/v1/page-token", location.href);
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

    #socket;
    #requests = new Map();
    #nextId = 1;
    #heard = 0;
    #ticked = 0;
    #asked = 0;
    #timer;
    #ended = false;

    constructor(socket) {
        this.#socket = socket;
        socket.onmessage = ({ data }) => this.#receive(data);
        socket.onclose = () => this.#end(words.serverClosed());
        this.#heard = this.#ticked = performance.now();
        this.#timer = setInterval(() => this.#watch(), 1000);
    }

    static open() {
        const url = new URL("/v1/room", location.href);
        url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
        return new Promise((resolve, reject) => {
            const socket = new WebSocket(url);
            const timer = setTimeout(() => socket.close(), answerWithin);
            socket.onopen = () => {
                clearTimeout(timer);
                resolve(new Signalling(socket));
            };
            socket.onclose = () => {
                clearTimeout(timer);
                refusal(url).then(reject);
            };
        });
    }

    send(message) {
        if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
    }

    /** Resolves with the answer; rejects with a Problem when it is refused, late, or the connection ends. */
    request(message) {
        if (this.#ended) return Promise.reject(words.serverClosed());
        const id = this.#nextId++;
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                this.#requests.delete(id);
                reject(words.noAnswer(message.type));
            }, answerWithin);
            this.#requests.set(id, { resolve, reject, timer });
            this.send({ ...message, id });
        });
    }

    /** Says goodbye, so that the others see it at once, and closes. */
    leave() {
        this.send({ type: "leave", id: this.#nextId++ });
        this.#end(null);
    }

    #receive(data) {
        this.#heard = performance.now();
        let message;
        try {
            message = JSON.parse(data);
        } catch {
            return;
        }
        const request = this.#requests.get(message.id);
        if (request) {
            this.#requests.delete(message.id);
            clearTimeout(request.timer);
            if (message.type === "error") request.reject(words.refused(message.code, message.message));
            else request.resolve(message);
        } else if (message.type === "closed") {
            this.#end(words.refused(message.code ?? message.reason, message.message));
        } else if (message.type === "error") {
            const problem = words.refused(message.code, message.message);
            if (fatal.has(message.code)) this.#end(problem);
            else console.warn(`${problem.message} [${problem.code}]`);
        } else if (message.type !== "pong") {
            this.onmessage(message);
        }
    }

    #watch() {
        const now = performance.now();
        // After a sleep of the machine or a frozen tab nothing was heard because nothing ran: ask first.
        if (now - this.#ticked > 5000) this.#heard = now;
        this.#ticked = now;
        if (now - this.#heard > silentAfter) {
            this.#end(words.serverVanished());
        } else if (now - this.#asked > pingEvery) {
            this.#asked = now;
            this.send({ type: "ping", id: this.#nextId++ });
        }
    }

    #end(problem) {
        if (this.#ended) return;
        this.#ended = true;
        clearInterval(this.#timer);
        for (const { reject, timer } of this.#requests.values()) {
            clearTimeout(timer);
            reject(problem ?? new Problem("left", "You left."));
        }
        this.#requests.clear();
        this.#socket.close();
        if (problem) this.onended(problem);
    }
}

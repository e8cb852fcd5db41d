// The page: the door to a room, the call, and what is said about both.

import { canPublish, open } from "./devices.js";
import { Room } from "./room.js";
import { LipSync, syncInterval } from "./sync.js";
import { Grid, shortName } from "./tiles.js";
import { Problem, deviceLost, roomNameProblem, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const body = document.body;
const grid = new Grid($("grid"));
const lipSync = new LipSync();
/** Our own tracks by kind; one that is there is published. */
const own = new Map();
/** One element for each audio receiver, made when it first carries someone. */
const speakers = new Map();

let room = null;
let roomName = "";
let joinedAt = 0;
let silence;

function setState(state) {
    body.dataset.state = state;
    const inside = state === "joined";
    $("lobby").hidden = inside;
    $("call").hidden = !inside;
    for (const id of ["room", "join", "watch"]) $(id).disabled = state === "joining";
    $("door").setAttribute("aria-busy", state === "joining");
    document.title = inside ? `${roomName} · ConnectLive` : "ConnectLive";
}

/** Says a sentence for a while, aloud for those who listen to the page. */
function say(sentence, lasting = 4000) {
    clearTimeout(silence);
    $("word").textContent = sentence;
    silence = setTimeout(() => { $("word").textContent = ""; }, lasting);
}

function complain(problem) {
    body.dataset.problem = problem.code ?? "page";
    console.warn(`${problem.message} [${problem.code ?? "page"}]`);
    say(problem.message, 12000);
}

// MARK: the door

function refuse(problem) {
    const known = problem instanceof Problem;
    if (!known) console.error(problem);
    body.dataset.problem = problem.code ?? "page";
    $("problem").textContent = known ? problem.message : `Something in this page failed: ${problem.message}.`;
    $("room").setAttribute("aria-invalid", problem.code === "1301");
    setState("idle");
    (problem.code === "1301" ? $("room") : door()).focus();
}

/** The button that enters the room: without a camera to ask for it is the other one. */
const door = () => $(canPublish() ? "join" : "watch");

async function join(publishes) {
    if (body.dataset.state !== "idle") return;
    $("problem").textContent = "";
    $("room").removeAttribute("aria-invalid");
    delete body.dataset.problem;
    roomName = $("room").value.trim();
    const wrong = roomNameProblem(roomName);
    if (wrong) return refuse(wrong);
    setState("joining");
    say(`Joining ${roomName}…`, 10000);
    joinedAt = performance.now();
    // The question for the camera and the way into the room take their time side by side.
    const devices = publishes ? open(["video", "audio"]) : null;
    try {
        const entered = await Room.join(roomName);
        entered.onchange = () => draw();
        entered.onpresence = (what, id) => say(`${shortName(id)} ${what === "entered" ? "came in" : "left"}.`);
        entered.onended = (problem) => leave(problem);
        entered.onaway = () => away(true);
        entered.onback = (seconds, rejoined) => back(entered, seconds, rejoined);
        room = entered;
        room.setPaused(document.hidden);
    } catch (problem) {
        devices?.then(({ tracks }) => tracks.forEach((track) => track.stop()));
        say("");
        return refuse(problem);
    }
    const address = new URLSearchParams(location.search);
    address.set("room", roomName);
    address.delete("join");
    history.replaceState(null, "", `?${address}`);
    body.dataset.participant = room.id;
    $("title").textContent = roomName;
    setState("joined");
    $("title").focus();
    say(`You are in ${roomName}.`);
    draw();
    if (devices) await publish(devices);
}

function away(isAway) {
    body.dataset.connection = isAway ? "lost" : "back";
    if (isAway) say(words.connectionLost(), 130000);
}

/** The server is back. A page that joined again publishes what it published before. */
function back(call, seconds, rejoined) {
    if (room !== call) return;
    away(false);
    body.dataset.returns = `${Number(body.dataset.returns ?? 0) + 1}`;
    say(words.connectionBack(seconds));
    if (!rejoined) return draw();
    body.dataset.participant = call.id;
    for (const speaker of speakers.values()) speaker.remove();
    speakers.clear();
    draw();
    if (own.size > 0) announce(call, [...own.values()]);
}

function leave(problem = null) {
    room?.leave();
    room = null;
    lipSync.step([]).catch(() => {});
    for (const track of own.values()) track.stop();
    own.clear();
    for (const speaker of speakers.values()) speaker.remove();
    speakers.clear();
    $("sound").hidden = true;
    grid.show([]);
    setState("idle");
    for (const name of ["participant", "publishing", "firstFrameMs", "connection", "returns"]) delete body.dataset[name];
    say("");
    if (problem) return refuse(problem);
    say(`You left ${roomName}.`);
    door().focus();
}

// MARK: what we publish

async function publish(devices) {
    const call = room;
    const { tracks, problem } = await devices;
    if (room !== call || call === null) {
        tracks.forEach((track) => track.stop());
        return;
    }
    if (problem) complain(problem);
    if (tracks.length === 0) return draw();
    for (const track of tracks) {
        own.set(track.kind, track);
        track.onended = () => lost(track);
    }
    draw();
    await announce(call, tracks);
}

/** Publishes tracks of ours. Those end if that fails. The others stay, unless the failure ends the session that carries all. */
async function announce(call, tracks) {
    try {
        await call.publish(tracks);
    } catch (failure) {
        for (const track of failure.endsAll ? [...own.values()] : tracks) {
            track.stop();
            if (own.get(track.kind) === track) own.delete(track.kind);
        }
        if (room === call) complain(failure);
    }
    if (room === call) body.dataset.publishing = [...own.keys()].sort().join(" ");
    draw();
}

function lost(track) {
    if (own.get(track.kind) !== track) return;
    own.delete(track.kind);
    complain(deviceLost(track.kind));
    body.dataset.publishing = [...own.keys()].sort().join(" ");
    room?.unpublish(track.kind).catch(complain);
    draw();
}

async function toggle(kind, button) {
    const track = own.get(kind);
    if (track) {
        track.enabled = !track.enabled;
        room?.setActive(kind, track.enabled);
        return draw();
    }
    if (button.disabled) return;
    if (!canPublish()) return complain(words.insecure());
    button.disabled = true;
    await publish(open([kind]));
    button.disabled = false;
}

function drawButton(button, kind, names) {
    const track = own.get(kind);
    const on = Boolean(track?.enabled);
    button.classList.toggle("off", !on);
    button.querySelector("span").textContent = on ? names.on : names.off;
    button.title = `${on ? names.turnOff : names.turnOn} (${button.getAttribute("aria-keyshortcuts")})`;
    button.setAttribute("aria-label", on ? names.turnOff : names.turnOn);
}

// MARK: what we see and hear

function ownEntries() {
    if (own.size === 0) return [];
    const video = own.get("video");
    const audio = own.get("audio");
    return [{
        key: "self", self: true, participant: room.id, track: video ?? null, hidden: video && !video.enabled,
        note: video && !video.enabled ? "Your camera is off" : undefined,
        badge: audio && !audio.enabled ? words.muted() : "", heard: Boolean(audio?.enabled),
    }];
}

function entries(participant, streams) {
    const all = [...streams.values()];
    const sounds = all.filter(({ media }) => media === "audio");
    const heard = sounds.some(({ id }) => room.carriers.has(id));
    const away = sounds.find(({ state }) => state === "waiting");
    const isMuted = sounds.length > 0 && sounds.every(({ active }) => active === false);
    const common = {
        participant, heard, sounds,
        ...isMuted ? { badge: words.muted(), badgeTitle: "" } : away ? { badge: words.waiting(away.text), badgeTitle: "" } : sounds.length > 0 && !heard ? {
            badge: "not heard", badgeTitle: "Four people are heard at once; this one has no place yet.",
        } : {},
    };
    const videos = all.filter(({ media }) => media === "video");
    if (videos.length === 0) return sounds.length > 0 ? [{ key: participant, ...common }] : [];
    return videos.map(({ id, extraValue, active, state, text, refused, quality }) => ({
        ...words.quality(quality), ...common, key: `${participant} ${id}`, stream: id, track: room.track(id),
        note: refused ?? (active === false ? words.cameraOff() : undefined), hidden: active === false,
        waiting: active !== false && state === "waiting" ? words.waiting(text) : "",
        label: extraValue && extraValue !== "camera" ? extraValue.slice(0, 24) : "",
    }));
}

function draw() {
    drawButton($("microphone"), "audio", {
        on: "Mic on", off: own.has("audio") ? "Muted" : "Mic off", turnOff: "Mute your microphone",
        turnOn: own.has("audio") ? "Unmute your microphone" : "Turn your microphone on",
    });
    drawButton($("camera"), "video", {
        on: "Camera on", off: "Camera off", turnOff: "Turn your camera off", turnOn: "Turn your camera on",
    });
    if (!room) return;
    const others = [...room.participants].flatMap(([id, streams]) => entries(id, streams));
    grid.show([...others, ...ownEntries()]);
    const publishing = [...room.participants.values()].filter((streams) => streams.size > 0).length + (own.size > 0);
    const all = room.participants.size + 1;
    $("people").textContent = `${all} here${all > publishing ? `, ${all - publishing} only watching` : ""}`;
    $("alone").hidden = others.length > 0;
    hear();
}

function hear() {
    for (const streams of room.participants.values()) {
        for (const { id, media } of streams.values()) {
            const mid = room.carriers.get(id);
            const track = media === "audio" && room.track(id);
            if (!track || speakers.has(mid)) continue;
            const speaker = document.createElement("audio");
            speaker.srcObject = new MediaStream([track]);
            speakers.set(mid, speaker);
            $("speakers").append(speaker);
            play(speaker);
        }
    }
}

/** Browsers hold sound back until somebody touched the page: one button for all of it. */
async function play(speaker) {
    try {
        await speaker.play();
    } catch (error) {
        if (error.name === "NotAllowedError") $("sound").hidden = false;
    }
}

// MARK: the page itself

$("door").addEventListener("submit", (event) => {
    event.preventDefault();
    join(canPublish());
});
$("watch").addEventListener("click", () => join(false));
$("leave").addEventListener("click", () => leave());
$("microphone").addEventListener("click", () => toggle("audio", $("microphone")));
$("camera").addEventListener("click", () => toggle("video", $("camera")));
$("sound").addEventListener("click", () => {
    $("sound").hidden = true;
    for (const speaker of speakers.values()) play(speaker);
});
$("copy").addEventListener("click", async () => {
    const link = `${location.origin}${location.pathname}?room=${encodeURIComponent(roomName)}`;
    try {
        await navigator.clipboard.writeText(link);
        say("Link copied.");
    } catch {
        say(link, 12000);
    }
});
addEventListener("keydown", (event) => {
    if (!room || !event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
    const button = { KeyM: "microphone", KeyV: "camera" }[event.code];
    if (!button) return;
    event.preventDefault();
    $(button).click();
});
addEventListener("pagehide", () => room?.leave());
document.addEventListener("visibilitychange", () => {
    grid.wake();
    room?.setPaused(document.hidden);
    // Audio receivers go on from one participant to another, whose sound nothing aligns meanwhile.
    if (document.hidden) lipSync.step([], () => undefined);
});
grid.onview = ({ stream }, width, height) => room?.setView(stream, width, height);
grid.onfirst = () => { body.dataset.firstFrameMs ??= Math.round(performance.now() - joinedAt); };

setInterval(() => {
    if (!room || document.hidden) return;
    grid.loudness(({ sounds }) => Math.max(0, ...(sounds ?? []).map(({ id }) => room.loudness(id))));
}, 150);
setInterval(() => room && !document.hidden && grid.check(), 500);
// Hidden pages show no frames.
setInterval(() => room && !document.hidden && lipSync.step(room.pairs(), (stream) => grid.shown(stream))
    .catch((error) => console.warn("lip-sync:", error)), syncInterval);

const query = new URLSearchParams(location.search);
$("room").value = query.get("room") ?? "";
if (!canPublish()) {
    $("join").hidden = true;
    $("watch").classList.add("primary");
    $("notice").hidden = false;
    $("notice").textContent = words.insecure().message;
}
draw();
if (query.get("join") === "1") join(true);
else ($("room").value ? door() : $("room")).focus();

// Every sentence that the page says when something goes wrong: what happened, to what, and what would help.

/** Something that the person should read. `code` is stable; tests and bug reports use it. */
export class Problem extends Error {
    constructor(code, message) {
        super(message);
        this.code = code;
    }
}

/** Why the server refused a request. Nothing has changed there. */
export class Refusal extends Problem {}

const kinds = { audio: "microphone", video: "camera" };

export const words = {
    serverUnreachable: () =>
        new Problem("1305", `The server at ${location.host} does not answer. Check that it is running and that this `
            + "machine can reach it, then try again."),
    noWebSocket: () =>
        new Problem("1305", `The server at ${location.host} answers, but no WebSocket gets through to it. A proxy in front of `
            + "the server has to forward WebSocket upgrades. Try again, or report this sentence to the administrator."),
    serverVanished: () =>
        new Problem("1312", `The server at ${location.host} has gone silent, so the call ended. Check the network and `
            + "that the server is still running, then join again."),
    serverClosed: () =>
        new Problem("1312", `The server at ${location.host} closed the connection, so the call ended. Join again when `
            + "it is back."),
    noAnswer: (what) =>
        new Problem("1312", `The server at ${location.host} did not answer to “${what}” in time. Try again.`),
    notOurServer: (status) =>
        new Problem("1303", `The server at ${location.host} answered ${status} where a token was expected. Is this `
            + "page served by the room server itself?"),
    tokenRefused: (code, message) =>
        new Problem(code, message ?? "The server lets no page in from another machine unless it runs with “--open”."),
    refused: (code, message) => new Refusal(code, message ?? "The server refused, without saying why."),
    noMediaPath: () =>
        new Problem("1411", `The server at ${location.host} answers, but no UDP packet gets through between it and `
            + "this browser. A firewall or VPN may stand between; a server that listens on 127.0.0.1 only can be reached "
            + "only from its own machine."),
    mediaLost: () =>
        new Problem("1411", "Pictures and sound stopped getting through, so the call ended. Check the network, then "
            + "join again."),
    connectionLost: () => "The connection to the server is lost; trying again…",
    connectionBack: (seconds) => `The server is back after ${seconds.toFixed(1)} s.`,
    offerRefused: (error) =>
        new Problem("1431", `This browser cannot take what the server offers (${error.message ?? error}). A current `
            + "Firefox, Chromium, Chrome, Edge or Safari should; please report it with this sentence."),
    answerRefused: (error) =>
        new Problem("1433", `This browser cannot take the server's answer, so camera and microphone are not published `
            + `(${error.message ?? error}).`),
    browserTooOld: () =>
        new Problem("browser.no-webrtc", "This browser cannot carry calls (it has no WebRTC, or it is switched off). "
            + "A current Firefox, Chromium, Chrome, Edge or Safari can."),
    insecure: () =>
        new Problem("browser.insecure", `Browsers hide camera and microphone from pages that come over plain HTTP from `
            + `another machine, as this one does from ${location.host}. You can watch and listen. To be seen, open the `
            + "page on the server's own machine (http://localhost…), or start the server with --tls-certificate."),
    muted: () => "muted",
    cameraOff: () => "Their camera is off",
    waiting: (text) => text ? `${text}, waiting` : "Waiting for the source",
    /** The badge of a video that arrives worse than it could, and what more there is to say. A small tile wants no more. */
    quality: (quality) => {
        const { cause, reason, lacksFrames, bitsPerSecond, width, height, fullWidth, fullHeight } = quality ?? {};
        const rate = bitsPerSecond ? `Your network carries ${Math.round(bitsPerSecond / 1000)} kbit/s` : "Your network is slow";
        const [badge, why] = {
            link: ["slow network", rate],
            publisher: {
                network: ["their network is slow", "The publisher's network is too slow"],
                loss: ["their network loses packets", "The publisher's network loses packets"],
                processor: ["their computer is slow", "The publisher's computer encodes too slowly"],
                connection: ["their connection is lost", "The publisher's connection to the server is lost"],
            }[reason],
        }[cause] ?? [];
        if (!badge) return {};
        const what = lacksFrames ? "frames are missing"
            : width && fullWidth > width ? `${width}x${height} instead of ${fullWidth}x${fullHeight}` : "less detail";
        return { badge, badgeTitle: `${why}: ${what}.` };
    },
    tooManyVideos: (maximum) =>
        `No free place for this video: ${maximum} are shown already.`,
};

/** What is wrong with a room name, or null. */
export function roomNameProblem(name) {
    if (name === "") return new Problem("1301", "Give the room a name, such as “kitchen”.");
    const allowed = "Only letters from a to z, digits and hyphens are allowed, 32 at most";
    const length = [...name].length;
    if (length > 32) {
        return new Problem("1301", `This room name has ${length} characters. ${allowed}.`);
    }
    const wrong = [...name].find((character) => !/[A-Za-z0-9-]/.test(character));
    if (wrong === undefined) return null;
    const shown = /\s/.test(wrong) ? "a space" : `“${wrong}”`;
    const remedy = name.trim().replace(/[^A-Za-z0-9-]+/g, "-").replace(/^-+|-+$/g, "");
    return new Problem("1301", `The room name has ${shown} in it. ${allowed}${remedy ? `: try “${remedy}”.` : "."}`);
}

/** Why the browser gave no camera or microphone; `wanted` lists "video", "audio" or both. */
export function deviceProblem(error, wanted) {
    const things = wanted.map((kind) => kinds[kind]);
    const thing = things.join(" and ");
    const [is, it] = things.length > 1 ? ["are", "them"] : ["is", "it"];
    const again = `then press the ${thing} button${things.length > 1 ? "s" : ""} below`;
    switch (error?.name) {
    case "NotAllowedError":
    case "SecurityError":
        return new Problem("device.denied", `The browser was not allowed to use your ${thing}. Allow ${it} for this `
            + `page in the address bar or in the system's privacy settings, ${again}.`);
    case "NotFoundError":
    case "OverconstrainedError":
        return new Problem("device.absent", `This machine has no ${things.join(" or ")} that the browser can see. `
            + `Plug one in, ${again}.`);
    case "NotReadableError":
    case "AbortError":
        return new Problem("device.busy", `Your ${thing} ${is} there but cannot be opened: another program probably `
            + `uses ${it}. Close that program, ${again}.`);
    default:
        return new Problem("device.failed", `Your ${thing} cannot be opened: ${error?.message ?? error}.`);
    }
}

export const deviceLost = (kind) =>
    new Problem("device.lost", `Your ${kinds[kind]} was unplugged or stopped. Plug it in, then press the `
        + `${kinds[kind]} button below.`);

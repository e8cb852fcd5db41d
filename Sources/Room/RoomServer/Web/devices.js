// The browser's camera and microphone: as many of those wanted as it gives, and why not the others.

import { deviceProblem, words } from "./words.js";

// The page's address may ask for another size of the camera, as in "&size=1280x720".
const [width, height] = /^\d{2,4}x\d{2,4}$/.exec(new URLSearchParams(location.search).get("size"))?.[0].split("x").map(Number)
    ?? [640, 480];
const constraints = {
    video: { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 } },
    audio: true,
};

export const canPublish = () => Boolean(navigator.mediaDevices?.getUserMedia);

/**
 * Opens what is wanted ("video", "audio") and answers {tracks, problem}: one missing or busy device does not cost the
 * other one.
 */
export async function open(wanted) {
    if (!canPublish()) return { tracks: [], problem: words.insecure() };
    const { tracks, error } = await attempt(wanted);
    if (!error) return { tracks, problem: null };
    if (wanted.length > 1 && await mayTryAlone(error, wanted)) {
        const alone = [];
        for (const kind of wanted) alone.push({ kind, ...await attempt([kind]) });
        const failed = alone.filter((one) => one.error);
        const problem = failed.length > 0 ? deviceProblem(failed[0].error, failed.map((one) => one.kind)) : null;
        return { tracks: alone.flatMap((one) => one.tracks), problem };
    }
    return { tracks: [], problem: deviceProblem(error, wanted) };
}

async function attempt(kinds) {
    try {
        const asked = Object.fromEntries(kinds.map((kind) => [kind, constraints[kind]]));
        return { tracks: (await navigator.mediaDevices.getUserMedia(asked)).getTracks(), error: null };
    } catch (error) {
        return { tracks: [], error };
    }
}

/** After a refusal ask again only for what is granted already: nobody wants the same question three times. */
async function mayTryAlone(error, wanted) {
    if (error.name !== "NotAllowedError") return true;
    const names = { video: "camera", audio: "microphone" };
    try {
        const states = await Promise.all(wanted.map((kind) => navigator.permissions.query({ name: names[kind] })));
        return states.some(({ state }) => state === "granted") && states.every(({ state }) => state !== "prompt");
    } catch {
        return false;
    }
}
